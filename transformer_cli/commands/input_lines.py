"""The lines that `tfm translate` reads: of a file, compressed or not, of a pipe, or of standard input."""

import codecs
import logging
import math
import os
import select
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path

from transformer_cli.commands.output import STANDARD, descriptor_of
from transformer_cli.config.decoding import WINDOW_LINES
from transformer_cli.data.sources.lines import (
    UTF_16_FOUND,
    UTF_16_MARKS,
    compression_of,
    read_chunks,
    refuse_binary,
    refuse_carriage_returns,
    refuse_utf_16,
)
from transformer_cli.process.errors import (
    DataError,
    MissingInputError,
    StorageError,
    TryAgainError,
    UsageError,
)
from transformer_cli.text.legacy_encodings import is_not_utf_8, not_utf_8_in_words

PAUSE_SECONDS = 0.05
"""If no bytes come through a pipe for this time, the lines that were read so far are translated."""
LONGEST_WAIT_SECONDS = 1.0
"""A line waits no longer than this for the lines after it."""
_READ_BYTES = 1 << 18
_BEGINNING_BYTES = 4096
_CHECKED_BYTES = 1 << 24

logger = logging.getLogger(__name__)


def check_input(path: Path, option: str = "--input") -> os.stat_result:
    """Refuse an input that cannot be read as text, before a model is loaded; returns the status of the file.

    Args:
        option: the one that names the path; for the hint of an error.

    Raises:
        MissingInputError: there is no such file.
        DataError: the file is damaged, or it holds no text in UTF-8.
    """
    status = input_status(path, f"{option} takes a text file, one sentence per line; - is standard input")
    if descriptor_of(path) is None and stat.S_ISREG(status.st_mode):
        beginning = b""
        for piece in read_chunks(path, by_content=True):
            beginning += piece
            if len(beginning) >= _BEGINNING_BYTES:
                break
        refuse_utf_16(beginning[:_BEGINNING_BYTES], path)
        _refuse_other_data(beginning[:_BEGINNING_BYTES], str(path))
        refuse_carriage_returns(beginning[:_BEGINNING_BYTES], path, may_be_short=True)
    return status


def require_utf_8(path: Path) -> None:
    """Refuse a file whose lines are in another encoding, before half of them are translated; a few bad bytes may be there.

    Raises:
        DataError: with the encodings in which it can be read.
    """
    if not is_regular_file(path):
        return
    text = b""
    for piece in read_chunks(path, by_content=True):
        text += piece
        if len(text) > _CHECKED_BYTES:
            text = text[: text.rfind(b"\n") + 1] or text
            break
    if is_not_utf_8(text):
        message, hint = not_utf_8_in_words(text)
        raise DataError(f"{path}: {message}", hint=hint)


def input_status(path: Path, hint: str) -> os.stat_result:
    """The status of a file, pipe or device that is to be read.

    Raises:
        MissingInputError: there is no such file, with this hint.
    """
    number = descriptor_of(path)
    try:
        status = path.stat() if number is None else os.fstat(number)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise MissingInputError(f"{path}: no such file", hint=hint) from error
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}", hint=hint) from error
    if stat.S_ISDIR(status.st_mode):
        raise MissingInputError(f"{path}: a folder, where a file is expected", hint=hint)
    return status


@contextmanager
def opened_lines(path: Path | None, *, warns: bool = True) -> Iterator[Iterator[list[str]]]:
    """The lines of a file, or of standard input if `path` is None or -, in batches of at most WINDOW_LINES lines.

    A named pipe is opened first: this waits for a program that writes to it. If lines come slowly, a batch
    has the lines that have arrived, so that a line is translated before the next one arrives.

    Args:
        path: of the file.
        warns: as of `LineDecoder`.
    """
    if path is None or path == STANDARD:
        yield _decoded(_batches_of_stream(0, "standard input"), "standard input", warns=warns)
    elif (number := descriptor_of(path)) is not None:
        yield _decoded(_batches_of_stream(number, str(path)), str(path), warns=warns)
    elif path.is_file():
        batches = _batches(_pieces_of_file(path), lambda seconds: True, math.inf)
        yield _decoded(batches, str(path), warns=warns)
    else:
        with opened_stream(path) as descriptor:
            yield _decoded(_batches_of_stream(descriptor, str(path)), str(path), warns=warns)


def check_given_pairs(source: Path, target: Path) -> None:
    """Refuse files of given pairs that cannot be read, before a model is loaded; see `given_pairs`.

    Raises:
        UsageError: both are standard input.
        MissingInputError, DataError: as of `check_input`.
    """
    if source == target == STANDARD:
        raise UsageError("--source - and --target - name the same input", hint="name two different files")
    for path, option in ((source, "--source"), (target, "--target")):
        if path != STANDARD:
            check_input(path, option)


def given_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Line N of the source with line N of the target, without a carriage return at their ends.

    Raises:
        DataError: the files have different numbers of lines.
    """
    with opened_lines(source) as source_windows, opened_lines(target) as target_windows:
        pairs = zip_longest(chain.from_iterable(source_windows), chain.from_iterable(target_windows))
        for number, (one, other) in enumerate(pairs):
            if one is None or other is None:
                shorter, longer = (source, target) if one is None else (target, source)
                raise DataError(
                    f"{shorter} has {number} lines, but {longer} has more",
                    hint="line N of one must translate line N of the other; empty lines count",
                )
            yield one.removesuffix("\r"), other.removesuffix("\r")


def is_regular_file(path: Path) -> bool:
    """Whether a path names a file on a disk, not a pipe, a device or an open descriptor."""
    return path != STANDARD and descriptor_of(path) is None and path.is_file()


def count_lines(path: Path) -> int:
    """The number of lines of a file, compressed or not."""
    num_lines, last = 0, b"\n"
    for piece in _pieces_of_file(path):
        num_lines += piece.count(b"\n")
        last = piece[-1:] or last
    return num_lines + (last != b"\n")


@contextmanager
def opened_stream(path: Path) -> Iterator[int]:
    """The descriptor of a named pipe or a device; a named pipe waits for a program that writes to it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _pieces_of_file(path: Path) -> Iterator[bytes]:
    try:
        yield from read_chunks(path, by_content=True)
    except TryAgainError:  # raised after the last piece, so all lines were read
        logger.warning("%s: changed while it was read; some of its lines may be old, others new", path)


def _batches_of_stream(descriptor: int, name: str) -> Iterator[list[bytes]]:
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)

    def more_comes(seconds: float) -> bool:
        return is_file or _is_ready(descriptor, seconds)

    return _batches(pieces_of_stream(descriptor, name), more_comes)


def pieces_of_stream(descriptor: int, name: str) -> Iterator[bytes]:
    """The bytes that come through a file descriptor, each piece as soon as it arrives."""
    is_first = True
    while True:
        try:
            piece = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:  # another program set the descriptor to non-blocking
            _is_ready(descriptor, None)
            continue
        except OSError as error:
            raise StorageError(f"{name}: cannot be read: {error.strerror}") from error
        if not piece:
            return
        if is_first:
            beginning = piece[:_BEGINNING_BYTES]
            refuse_utf_16(beginning, name)
            _refuse_other_data(beginning, name)
            refuse_carriage_returns(beginning, name, may_be_short=True)
        is_first = False
        yield piece


def _is_ready(descriptor: int, seconds: float | None) -> bool:
    """Whether a file descriptor has bytes to read, or reaches its end, within this time; None: no limit."""
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    except (OSError, ValueError):  # `select` of Windows waits for sockets only
        return False


def _batches(
    pieces: Iterable[bytes],
    more_comes: Callable[[float], bool],
    longest_wait_seconds: float = LONGEST_WAIT_SECONDS,
) -> Iterator[list[bytes]]:
    """Lines as bytes, without their line feeds; only a line feed ends a line.

    Args:
        pieces: bytes as they were read.
        more_comes: waits for at most that many seconds, and returns whether there is more to read.
        longest_wait_seconds: after this time lines are given, even if there are fewer than WINDOW_LINES; infinite for a
            file, so that it is always cut in the same places.
    """
    lines: list[bytes] = []
    unfinished: list[bytes] = []  # pieces of a line whose end has not come yet
    since = 0.0
    for piece in pieces:
        if not lines:
            since = time.monotonic()
        first, *others = piece.split(b"\n")
        unfinished.append(first)
        if others:
            lines += [b"".join(unfinished), *others[:-1]]
            unfinished = [others[-1]]
        while len(lines) >= WINDOW_LINES:
            yield lines[:WINDOW_LINES]
            lines, since = lines[WINDOW_LINES:], time.monotonic()
        is_late = time.monotonic() - since > longest_wait_seconds
        if lines and (is_late or not more_comes(PAUSE_SECONDS)):
            yield lines
            lines = []
    if last := b"".join(unfinished):
        lines.append(last)
    if lines:
        yield lines


def _decoded(batches: Iterable[list[bytes]], name: str, *, warns: bool) -> Iterator[list[str]]:
    decoder = LineDecoder(name, warns=warns)
    for batch in batches:
        yield [decoder.decode(line) for line in batch]
    decoder.finish()


class LineDecoder:
    """Decodes lines in order, with the carriage return at their ends. Bytes that are not UTF-8 become U+FFFD; `finish`
    warns of such lines.

    It warns at once of a line that begins with the byte-order mark of UTF-16.

    Args:
        name: of the input, for messages.
        warns: whether it does; if not, the caller deals with U+FFFD. The advice is that of `tfm translate`.
    """

    def __init__(self, name: str, *, warns: bool = True) -> None:
        self._name = name
        self._warns = warns
        self._num_lines = 0
        self._num_replaced = 0
        self._found_utf_16 = False

    def decode(self, raw: bytes) -> str:
        """The text of the next line, whose line feed was removed."""
        self._num_lines += 1
        line = raw.removeprefix(codecs.BOM_UTF8) if self._num_lines == 1 else raw
        if self._warns and not self._found_utf_16 and line.startswith(UTF_16_MARKS):
            self._found_utf_16 = True
            logger.warning(
                "%s:%d: %s; its translation makes no sense; convert the text first: "
                "iconv -f UTF-16 -t UTF-8 FILE | tfm translate",
                self._name,
                self._num_lines,
                UTF_16_FOUND,
            )
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            self._num_replaced += 1
            return line.decode("utf-8", errors="replace")

    def finish(self) -> None:
        """Warn of the lines that were not UTF-8."""
        if self._num_replaced and self._warns:
            logger.warning(
                "%s: the bad bytes of lines that are not UTF-8 were replaced; number of lines: %d; "
                "to keep their letters, name the encoding of the text, such as --encoding windows-1252, "
                "or convert it first: iconv -f WINDOWS-1252 -t UTF-8",
                self._name,
                self._num_replaced,
            )


def _refuse_other_data(beginning: bytes, name: str) -> None:
    """Raise DataError if the data is compressed or binary; text with some bad bytes is accepted."""
    suffix = compression_of(beginning)
    if suffix is not None:
        raise DataError(
            f"{name}: compressed data ({suffix}), where text is expected",
            hint=f"give the path of the file, FILE{suffix}, instead of its content",
        )
    refuse_binary(beginning, name)
