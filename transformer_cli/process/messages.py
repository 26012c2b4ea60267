"""Log lines for people, on standard error and in the run's log file; and texts in them: control characters become codes, and long texts are cut."""

import logging
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from transformer_cli.process.errors import TfmError
from transformer_cli.process.torchrun import NUM_PROCESSES, read_launch

logger = logging.getLogger("transformer_cli")


class _Escaping(logging.Formatter):
    """Formats log lines; control characters of a corpus or a file name are written as codes."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record))


class _AboveTheBar(logging.Handler):
    """Writes log lines to standard error, above a progress bar; skips lines that the bar already shows.

    The lines of a table (`extra={"is_table": True}`) are cut to the width of a terminal.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "is_on_the_bar", False):
            return
        try:
            line = self.format(record)
            if getattr(record, "is_table", False) and (width := terminal_width(sys.stderr)):
                line = fitted(line, width)
            if "tqdm" in sys.modules:
                from tqdm import tqdm

                tqdm.write(line, file=sys.stderr)
            else:  # without it there is no bar
                sys.stderr.write(f"{line}\n")
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

    def _open(self) -> TextIOWrapper:
        """Open the file; a symbolic link is not followed, and a pipe does not block."""
        if os.path.islink(self.baseFilename):
            raise OSError(f"{self.baseFilename} is a symbolic link")
        if_possible = ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | sum(getattr(os, name, 0) for name in if_possible)
        file = os.open(self.baseFilename, flags, 0o666)
        return open(file, "a", encoding="utf-8", errors="backslashreplace", newline="\n")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # opening it failed
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        logger.removeHandler(self)
        logger.warning("%s cannot be written any more; the run goes on without it", self.baseFilename)


def terminal_width(stream: TextIO) -> int | None:
    """Number of columns of the terminal that shows a stream; None for a file or a pipe."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def fitted(line: str, num_columns: int | None) -> str:
    """The line, cut to a number of columns; a Chinese character takes two."""
    from tqdm.utils import disp_len, disp_trim

    if num_columns is None or disp_len(line) <= num_columns:
        return line
    return f"{disp_trim(line, num_columns - 1)}…"


def talk_on_stderr(*, debug: bool = False) -> None:
    """Send the log lines of this package to standard error; each command calls this once.

    Of the processes that torchrun has started, rank 0 writes them; the others write errors only, with their rank.
    """
    logger.handlers.clear()
    handler, rank = _AboveTheBar(), 0
    if os.environ.get(NUM_PROCESSES):
        rank = read_launch().rank
    handler.setFormatter(_Escaping(f"rank {rank}: %(message)s" if rank else "%(message)s"))
    logger.addHandler(handler)
    level = logging.ERROR if rank else logging.INFO
    logger.setLevel(logging.DEBUG if debug else level)
    logger.propagate = False


@contextmanager
def only_warnings() -> Iterator[None]:
    """Inside the block, standard error gets warnings and errors only; the log file of a run gets every line."""
    handlers = [one for one in logger.handlers if isinstance(one, _AboveTheBar)]
    levels = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for handler, level in zip(handlers, levels, strict=True):
            handler.setLevel(level)


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Write log lines to this file too, with the time, and also the exception that ends the block.

    Lines with the extra `is_no_record` are left out: they tell of nothing that has happened to what the file records.
    """
    handler = _LogFile(path, encoding="utf-8", delay=True)
    handler.addFilter(lambda record: not getattr(record, "is_no_record", False))
    handler.setFormatter(_Escaping("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
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
        handler.handle(logging.LogRecord(logger.name, logging.ERROR, __file__, 0, "%s", (error,), traceback))
        raise
    finally:
        logger.setLevel(level)
        logger.removeHandler(to_root)
        logger.propagate = propagates
        logger.removeHandler(handler)
        with suppress(OSError):  # the warning about a full disk was logged before
            handler.close()


# Texts for messages and terminals: control characters become codes, and long texts are cut.


# C0 without tab and line feed, DEL and C1; then the characters that change the direction of the text around them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")
_BREAKS = re.compile("[\t\n]")


def escaped(text: str) -> str:
    """The text with control characters written as \\x1b or \\u202e; tabs and line feeds stay."""
    return _CONTROLS.sub(lambda match: _as_code(match[0]), text)


def on_one_line(text: str, max_characters: int | None = None) -> str:
    """As `escaped`, and a tab or a line feed is written as \\x09 or \\x0a: for a text from a corpus.

    Args:
        text: any text.
        max_characters: a longer result is cut; None: it is never cut.
    """
    line = _BREAKS.sub(lambda match: _as_code(match[0]), escaped(text))
    return line if max_characters is None else shortened(line, max_characters)


def shortened(text: str, max_characters: int) -> str:
    """The text, or its beginning with "…" at the end if it has more characters than allowed."""
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"


def counted(number: int, noun: str) -> str:
    """A number of things, such as 1 update or 1,500 updates."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def for_shell(word: object, system: str = os.name) -> str:
    """A path, a name or a sentence as one word of a command line, in quotation marks if a shell would split or change it.

    Args:
        system: as of `os.name`. The shell of Windows, nt, knows double quotation marks only.
    """
    text = str(word)
    if system != "nt":
        return shlex.quote(text)
    if re.fullmatch(r"[\w@+=:.,/\\~-]+", text):
        return text
    # A program of Windows reads backslashes as themselves, but before a quotation mark in pairs.
    return '"' + re.sub(r'(\\*)("|\Z)', lambda found: found[1] * 2 + ('\\"' if found[2] else ""), text) + '"'


def escaped_in_json(json_text: str) -> str:
    """JSON that means the same, without the control characters that JSON itself would allow."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def for_output(text: str, output: Any) -> str:
    """The text of a translation: unchanged for a file or a pipe, with control characters as codes for a terminal."""
    return escaped(text) if output.isatty() else text


def _as_code(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
