"""A file that grows piece by piece; notes beside it say which of its bytes are valid after a crash."""

import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from transformer_cli.process.errors import DataError, TryAgainError
from transformer_cli.storage.filesystem import REAL, FileSystem, errors_explained, try_lock
from transformer_cli.storage.writing import append_json_line, read_json_lines

logger = logging.getLogger(__name__)

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
            logger.warning("%s: it does not fit its notes in %s, so it begins again", self.path, self.notes_path)
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
