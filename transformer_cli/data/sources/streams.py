"""Pairs of streamed data sets on disk, so that each data set is downloaded only once.

The preparation of data reads a corpus once for each split: it must know all held-out pairs before it cleans the
first training pair. A streamed data set has no copy on this machine, so its first reading writes the pairs to a
file, from which they are read again. The file is deleted when the data are prepared.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_cli.data.sources.lines import RawPair
from transformer_cli.storage.file_sizes import size_in_words

logger = logging.getLogger(__name__)

_folder: ContextVar[Path | None] = ContextVar("folder of streamed pairs", default=None)
_PAIRS_AT_ONCE = 10_000
_ENDING = ".stream"


@contextmanager
def streams_kept_in(folder: Path) -> Iterator[None]:
    """During the block, keep the pairs of streamed data sets in a folder."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)
        for file in folder.glob(f"*{_ENDING}*"):
            file.unlink()


def read_once(name: str, settings: str, rows: Iterator[RawPair]) -> Iterator[RawPair]:
    """The rows; from their file, if an earlier reading with the same settings has reached the last row.

    Args:
        name: the name of the data set, for messages.
        settings: everything that decides which rows are read.
        rows: iterated only if there is no such file.
    """
    folder = _folder.get()
    if folder is None:
        yield from rows
        return
    file = folder / f"{sha256(settings.encode()).hexdigest()[:16]}{_ENDING}"
    if file.exists():
        yield from _read(file)
        return
    partial = file.with_name(file.name + "-partial")
    yield from _written(rows, partial)
    os.replace(partial, file)
    size = size_in_words(file.stat().st_size)
    logger.info(
        "%s: downloaded; its pairs take %s on disk until the data are prepared, because each split is read separately",
        name,
        size,
    )


def _written(rows: Iterator[RawPair], path: Path) -> Iterator[RawPair]:
    """Yield the rows, and write them to a file, some thousands at a time."""
    import pyarrow as pa

    schema = pa.schema({"number": pa.int64(), "source": pa.binary(), "target": pa.binary()})
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema, options=options) as to:
        while chunk := list(islice(rows, _PAIRS_AT_ONCE)):
            columns = [list(column) for column in zip(*chunk, strict=True)]
            to.write_batch(pa.record_batch(columns, schema=schema))
            yield from chunk


def _read(path: Path) -> Iterator[RawPair]:
    import pyarrow as pa

    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as batches:
        batch: Any
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            yield from map(RawPair._make, zip(*columns, strict=True))
