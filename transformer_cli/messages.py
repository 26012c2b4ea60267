"""Log lines for people: on standard error and in the run's log file."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tqdm import tqdm

from transformer_cli.errors import TfmError

logger = logging.getLogger("transformer_cli")


class _AboveTheBar(logging.Handler):
    """Writes log lines to standard error, above a progress bar; skips lines that the bar already shows."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "is_on_the_bar", False):
            return
        try:
            tqdm.write(self.format(record), file=sys.stderr)
        except (OSError, ValueError):
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore the error: a closed standard error must not stop the work."""


class _ToRoot(logging.Handler):
    """Passes log lines on to the root logger, if its level allows them."""

    def emit(self, record: logging.LogRecord) -> None:
        root = logging.getLogger()
        if record.levelno >= root.level:
            root.handle(record)


class _LogFile(logging.FileHandler):
    """Writes the run's log file; on an error, such as a full disk, the run continues without this file."""

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
    """Send the log lines of this package to standard error; `cli.main` calls this once."""
    logger.handlers.clear()
    handler = _AboveTheBar()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    logger.propagate = False


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Write log lines to this file too, with the time, and also the exception that ends the block."""
    handler = _LogFile(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    logger.addHandler(handler)
    level, propagates, to_root = logger.level, logger.propagate, _ToRoot()
    if level == logging.NOTSET:
        # Used from Python: the file gets every line, the root logger only those of its own level.
        logger.setLevel(logging.INFO)
        if propagates:
            logger.addHandler(to_root)
        logger.propagate = False
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
        logger.removeHandler(to_root)
        logger.propagate = propagates
        logger.removeHandler(handler)
        with suppress(OSError):  # the warning about a full disk was logged before
            handler.close()
