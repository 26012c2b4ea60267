"""Files with one JSON object per line (JSON Lines), which stay readable after a crash at any byte."""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_cli.process.escaping import escaped_in_json
from transformer_cli.storage import filesystem
from transformer_cli.storage.filesystem import REAL, FileSystem, errors_explained
from transformer_cli.storage.writing import replace_file

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
