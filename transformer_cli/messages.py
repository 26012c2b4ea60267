"""What the package says to people: log lines on stderr and in the run's log."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tqdm import tqdm

from transformer_cli.errors import TfmError

logger = logging.getLogger("transformer_cli")


class _AboveTheBar(logging.Handler):
    """Log lines on stderr, above a progress bar where there is one, and without what the bar says."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "is_on_the_bar", False):
            return
        try:
            tqdm.write(self.format(record), file=sys.stderr)
        except (OSError, ValueError):
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """A closed stderr must not stop the work."""


class _LogFile(logging.FileHandler):
    """The run's log; when the disk is full, training matters more than its log."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # opening it failed
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        logger.removeHandler(self)
        logger.warning(
            "%s cannot be written any more; the run goes on without it", self.baseFilename
        )


def talk_on_stderr(*, debug: bool = False) -> None:
    """Messages of this package go to stderr; done once, by the command line."""
    logger.handlers.clear()
    handler = _AboveTheBar()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    logger.propagate = False


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Messages go to this file too, with their time, and so does the error that ends the work."""
    handler = _LogFile(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    logger.addHandler(handler)
    level = logger.level
    if level == logging.NOTSET:  # used from Python, where nobody has asked for messages
        logger.setLevel(logging.INFO)
    try:
        yield
    except Exception as error:
        traceback = None if isinstance(error, TfmError) else sys.exc_info()
        handler.handle(
            logging.LogRecord(logger.name, logging.ERROR, __file__, 0, "%s", (error,), traceback)
        )
        raise
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        with suppress(OSError):  # a full disk was told of before
            handler.close()
