"""A file that grows piece by piece; notes beside it say which of its bytes are valid after a crash."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from transformer_cli.errors import TryAgainError
from transformer_cli.storage.filesystem import REAL, FileSystem, errors_explained
from transformer_cli.storage.json_lines import append_json_line, read_json_lines
from transformer_cli.storage.lock import try_lock

NOTES_SUFFIX = ".notes.jsonl"


class GrowingFile:
    """A file that one process at a time extends; a crash at any moment loses the last piece at most.

    A piece is flushed to disk before its note is written. So all bytes of which a note tells are there, and bytes
    without a note are removed when the file is opened again. The notes are JSON Lines, in a file of the same name
    with the suffix .notes.jsonl.
    """

    def __init__(self, path: Path, *, fs: FileSystem = REAL) -> None:
        self.path = path
        self.notes_path = path.with_name(path.name + NOTES_SUFFIX)
        self._fs = fs
        self.notes: list[dict[str, Any]] = []
        """The notes that were there when the file was opened, oldest first; empty for a new file."""

    def __enter__(self) -> Self:
        """Open or create the file, and remove what has no note.

        Raises:
            TryAgainError: another process extends the file.
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
        append_json_line(self.notes_path, {**note, "num_bytes": self.num_bytes}, fs=self._fs)

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
        with errors_explained(self.path, fs=self._fs):
            os.ftruncate(self._file, self.notes[-1]["num_bytes"] if self.notes else 0)
