"""Files that grow, and stay readable after a crash at any byte: JSON Lines, and bytes with notes beside them."""

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from transformer_cli.process.errors import DataError, TryAgainError
from transformer_cli.process.messages import escaped_in_json
from transformer_cli.storage import filesystem
from transformer_cli.storage.filesystem import REAL, FileSystem, errors_explained, try_lock
from transformer_cli.storage.writing import replace_file

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 1 << 20


def append_json_line(path: Path, record: Mapping[str, Any], *, fs: FileSystem = REAL) -> None:
    """Append an object; NaN and infinity become null, because JSON has no such numbers.

    An incomplete last line, left by a crash, is removed first. If writing fails, the new line is removed.
    """
    line = _encoded(_finite(record))
    with errors_explained(path, fs=fs, creating=True, needed_bytes=len(line)):
        file = fs.open_to_append(path)
        try:
            size = _cut_torn_line(file)
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[fs.write(file, rest) :]
            except OSError:
                os.ftruncate(file, size)
                raise
        finally:
            fs.close(file)


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects, oldest first, without lines that are incomplete, longer than 1 MiB, or no JSON object."""
    if not path.exists():
        return
    with errors_explained(path, fs=REAL), path.open("rb") as file:
        is_begun = False
        while piece := file.readline(MAX_LINE_BYTES):
            record = None if is_begun else _parse(piece)
            is_begun = not piece.endswith(b"\n")
            if record is not None:
                yield record


def broken_json_lines(path: Path) -> Iterator[int]:
    """The numbers, from 1 on, of the lines that `read_json_lines` leaves out."""
    with errors_explained(path, fs=REAL), path.open("rb") as file:
        number, is_begun = 1, False
        while piece := file.readline(MAX_LINE_BYTES):
            if not is_begun and _parse(piece) is None:
                yield number
            is_begun = not piece.endswith(b"\n")
            number += not is_begun


def cut_json_lines(path: Path, *, after_step: int) -> int:
    """Remove the objects of later steps, which a resumed run writes again; return their number."""
    return keep_json_lines(path, lambda record: _step(record) <= after_step)


def keep_json_lines(path: Path, is_kept: Callable[[Mapping[str, Any]], bool]) -> int:
    """Remove all other objects from the file; return their number."""
    records = list(read_json_lines(path))
    kept = list(filter(is_kept, records))
    if len(kept) < len(records):
        replace_file(path, b"".join(map(_encoded, kept)))
    return len(records) - len(kept)


def _encoded(record: Any) -> bytes:
    """One line; control characters and lone surrogates are written as codes of JSON."""
    text = escaped_in_json(json.dumps(record, ensure_ascii=False))
    return text.encode(errors="backslashreplace") + b"\n"


def _step(record: Mapping[str, Any]) -> float:
    step = record.get("step")
    return step if isinstance(step, int | float) else -math.inf


def _parse(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _cut_torn_line(file: int) -> int:
    """Remove an incomplete last line; return the size that remains."""
    size = os.fstat(file).st_size
    end = size
    while end and filesystem.read_at(file, 1, end - 1) != b"\n":
        end -= 1
    if end < size:
        os.ftruncate(file, end)
    return end


# A file that grows piece by piece; notes beside it say which of its bytes are valid after a crash.


NOTES_SUFFIX = ".notes.jsonl"

_DIGEST = "bytes_sha256"
_READ_BYTES = 1 << 20


class GrowingFile:
    """A file that one process at a time extends; a crash at any moment loses the last piece at most.

    A piece is flushed to disk before its note is written. So all bytes of which a note tells are there, and bytes
    without a note are removed when the file is opened again. The notes are JSON Lines, in a file of the same name
    with the suffix .notes.jsonl. Each note has the SHA-256 of all bytes up to it, so that a file whose bytes were
    changed is noticed.
    """

    def __init__(self, path: Path, *, fs: FileSystem = REAL) -> None:
        self.path = path
        self.notes_path = path.with_name(path.name + NOTES_SUFFIX)
        self._fs = fs
        self.notes: list[dict[str, Any]] = []
        """The notes that were there when the file was opened, oldest first; empty for a new file."""
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        """Open or create the file, and remove what has no note.

        Raises:
            TryAgainError: another process extends the file.
            DataError: bytes of which a note tells are not those that were written.
        """
        with errors_explained(self.path, fs=self._fs, creating=True):
            self._file = self._fs.open_to_append(self.path)
        try:
            if try_lock(self._file) is False:
                raise TryAgainError(
                    f"{self.path}: another process writes to this file",
                    hint="wait until it has ended, or name another output",
                )
            self._restore()
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._fs.close(self._file)

    @property
    def num_bytes(self) -> int:
        """The size of the file."""
        return os.fstat(self._file).st_size

    def add(self, piece: bytes, note: Mapping[str, Any]) -> None:
        """Append a piece, and then a note of what the file now holds."""
        with errors_explained(self.path, fs=self._fs, needed_bytes=len(piece)):
            rest = memoryview(piece)
            while rest:
                rest = rest[self._fs.write(self._file, rest) :]
            self._fs.flush(self._file)
        self._digest.update(piece)
        facts = {"num_bytes": self.num_bytes, _DIGEST: self._digest.hexdigest()}
        append_json_line(self.notes_path, {**note, **facts}, fs=self._fs)

    def remove(self) -> None:
        """Delete the file and its notes, which nobody needs any more."""
        with errors_explained(self.path, fs=self._fs):
            self._fs.remove_file(self.path)
            if self.notes_path.exists():
                self._fs.remove_file(self.notes_path)

    def _restore(self) -> None:
        self.notes = list(read_json_lines(self.notes_path))
        # A note about bytes that are not there: the file was deleted or cut by somebody, so nothing of it counts.
        if self.notes and self.notes[-1].get("num_bytes", 0) > self.num_bytes:
            self.notes = []
        if not self.notes and self.notes_path.exists():
            with errors_explained(self.notes_path, fs=self._fs):
                self._fs.remove_file(self.notes_path)
        if not self.notes and self.num_bytes:
            logger.warning(
                "%s: it does not fit its notes in %s, so it begins again",
                self.path,
                self.notes_path,
            )
        num_valid = self.notes[-1]["num_bytes"] if self.notes else 0
        self._read(num_valid)
        written = self.notes[-1].get(_DIGEST) if self.notes else None
        if written not in (None, self._digest.hexdigest()):  # an earlier version noted no digest
            raise DataError(
                f"{self.path}: the file has changed: its first {num_valid:,} bytes are not the bytes that were written",
                hint=f"put the old bytes back; or delete {self.path}, to begin again",
            )
        with errors_explained(self.path, fs=self._fs):
            os.ftruncate(self._file, num_valid)

    def _read(self, num_bytes: int) -> None:
        """Add the first bytes of the file to the digest."""
        with errors_explained(self.path, fs=self._fs), self.path.open("rb") as file:
            while piece := file.read(min(_READ_BYTES, num_bytes)):
                self._digest.update(piece)
                num_bytes -= len(piece)
