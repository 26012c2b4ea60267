"""A file of JSON objects, one per line, that survives being cut off anywhere."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_cli.storage.filesystem import REAL, FileSystem, errors_explained
from transformer_cli.storage.writing import replace_file


class JsonLines:
    """Grows by whole lines. A last line that a crash cut off is not read, and removed on writing."""

    def __init__(self, path: Path, *, fs: FileSystem = REAL) -> None:
        self.path = path
        self._fs = fs
        self._file: int | None = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a line; numbers that are not finite become null, which JSON can say."""
        line = json.dumps(_finite(record), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with errors_explained(
            self.path, fs=self._fs, creating=self._file is None, needed_bytes=len(line)
        ):
            if self._file is None:
                self._file = self._fs.open_to_append(self.path)
                _cut_torn_line(self._file)
            size = os.fstat(self._file).st_size
            try:
                self._write(self._file, line)
            except OSError:
                os.ftruncate(self._file, size)
                raise

    def _write(self, file: int, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[self._fs.write(file, rest) :]

    def flush(self) -> None:
        """Flush what was added to the disk."""
        if self._file is not None:
            with errors_explained(self.path, fs=self._fs):
                self._fs.flush(self._file)

    def close(self) -> None:
        if self._file is not None:
            self._fs.close(self._file)
            self._file = None

    def read(self) -> Iterator[dict[str, Any]]:
        """The objects, oldest first; lines that are not whole are left out."""
        if not self.path.exists():
            return
        with errors_explained(self.path, fs=self._fs), self.path.open("rb") as file:
            for line in file:
                record = _parse(line)
                if record is not None:
                    yield record

    def cut_after(self, step: int) -> int:
        """Remove the objects of later steps, as a resumed run will write them again; how many went."""
        self.close()
        records = list(self.read())
        kept = [record for record in records if _step(record) <= step]
        if len(kept) < len(records):
            lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)
            replace_file(self.path, lines.encode(), fs=self._fs)
        return len(records) - len(kept)


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


def _cut_torn_line(file: int) -> None:
    size = os.fstat(file).st_size
    end = size
    while end and os.pread(file, 1, end - 1) != b"\n":
        end -= 1
    if end < size:
        os.ftruncate(file, end)
