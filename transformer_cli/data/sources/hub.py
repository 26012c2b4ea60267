"""Sentence pairs from data sets that the Hugging Face `datasets` library can load: each downloaded only once, and its commit."""

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_cli.config.data import HubCorpus, HubData
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.lines import RawPair, beginning_digest, decode_pairs, file_digest
from transformer_cli.data.sources.local_files import (
    WHOLE,
    CorpusPart,
    expand_path,
    is_streamed,
    name_under_root,
    with_home,
)
from transformer_cli.data.sources.records import (
    load_saved,
    pairs_of_records,
    rows_of_dataset,
    saved_files,
    saved_splits,
)
from transformer_cli.data.sources.tables import Fields
from transformer_cli.process.errors import DataError, MissingInputError, TryAgainError
from transformer_cli.storage.filesystem import NO_SPACE, size_in_words

logger = logging.getLogger(__name__)

COMMIT_OF = "commit of"
"""The beginning of the names of commits in a fingerprint."""


def read_hub(
    data: HubData, index: int, report: ReadingReport, *, first: int = 0, part: CorpusPart = WHOLE
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a part of `data.corpora[index]`, in the order of the data set, from row `first` of the part on.

    Raises:
        MissingInputError: the hub cannot be reached, or has no such data set.
        DataError: the data set has no such configuration, split or field, or has no pair.
    """
    corpus = data.corpora[index]
    name = " ".join(filter(None, (corpus.dataset, corpus.config)))
    num_rows_before = report.num_rows
    rows = _raw_pairs(data, index, name, first, part)
    yield from decode_pairs(rows, (name, name), "error", report)
    if not first and report.num_rows == num_rows_before:
        raise DataError(f"{name}: its split {corpus.dataset_split} has no rows")


def fingerprint_hub(data: HubData, index: int) -> dict[str, str]:
    """Name -> SHA-256 of what `data.corpora[index]` asks the hub for, and of its local files.

    The commit of a data set on the hub is in it too if it can be known.
    """
    corpus = data.corpora[index]
    asked = (corpus.dataset, corpus.config, corpus.revision, corpus.dataset_split, corpus.max_pairs)
    name = " ".join(str(part) for part in asked if part is not None)
    digests = {name: sha256(repr(asked).encode()).hexdigest()}
    digest = beginning_digest if is_streamed(data, index) else file_digest
    digests |= {name: digest(path) for name, path in hub_files(data, index).items()}
    is_local = _local_folder(corpus, data) is not None
    if not is_local and (commit := commit_of(corpus)) is not None:
        digests[f"{COMMIT_OF} {corpus.dataset}"] = commit
    return digests


def hub_files(data: HubData, index: int) -> dict[str, Path]:
    """Name in the fingerprint -> path, for each file on this machine that `data.corpora[index]` names."""
    corpus = data.corpora[index]
    folder = _local_folder(corpus, data)
    paths = [*_local_files(corpus, data), *(saved_files(folder) if folder is not None else [])]
    return {name_under_root(path, data.root): path for path in paths}


def _raw_pairs(data: HubData, index: int, name: str, first: int, part: CorpusPart) -> Iterator[RawPair]:
    corpus = data.corpora[index]
    rows = pairs_of_records(_rows(corpus, data, name, first, part), Fields.of(data, index), name)
    pairs = islice(rows, corpus.max_pairs and max(0, part.num_rows(corpus.max_pairs) - first))
    if not corpus.streamed:
        return pairs
    # The split and the weight decide nothing about the rows that are read.
    settings = corpus.model_dump_json(exclude={"split", "weight"})
    languages = " ".join(data.directions_of(index)[0])
    return read_once(name, f"{settings} {languages} {data.root}", pairs)


def _rows(corpus: HubCorpus, data: HubData, name: str, first: int, part: CorpusPart) -> Iterator[Mapping[str, Any]]:
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    files = [str(path.absolute()) for path in _local_files(corpus, data)]
    folder = _local_folder(corpus, data)
    try:
        if folder is not None and saved_splits(folder) is not None:
            yield from _rows_of_part(load_saved(folder, corpus.dataset_split), part, first)
            return
        rows = datasets.load_dataset(
            str(folder or corpus.dataset),
            corpus.config,
            split=corpus.dataset_split,
            revision=corpus.revision,
            streaming=corpus.streamed or data.streaming,
            data_files=files or corpus.data_files,
        )
        yield from _rows_of_part(rows, part, first)
    except datasets.exceptions.DatasetNotFoundError as error:
        raise MissingInputError(
            f"{name}: the Hugging Face hub has no such data set, or restricts access to it: {_first_line(error)}",
            hint="give its name as OWNER/NAME; if its page asks for a login, run `hf auth login`",
        ) from error
    except OSError as error:
        _refuse_full_disk(name, error)
        raise MissingInputError(
            f"{name}: the Hugging Face hub cannot be reached: {_first_line(error)}",
            hint="without a network, train on the built-in corpus (--config en-it.yaml) or on local "
            "files (data.source: files); a data set that was downloaded before is still on this machine",
        ) from error
    except Exception as error:  # the library raises many types, those of its parsers included
        _refuse_full_disk(name, error)
        raise DataError(
            f"{name}: the datasets library cannot read it: {_first_line(error)}",
            hint=f"check dataset, config and dataset_split ({corpus.dataset_split}) under data.corpora",
        ) from error


def _refuse_full_disk(name: str, error: BaseException) -> None:
    """Raise TryAgainError if an error of the library, or one behind it, is that its cache has no space left."""
    from datasets import config

    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    # The library compares the size of a data set with the free space, and then raises an error without a number.
    if any(getattr(one, "errno", None) in NO_SPACE or str(one).startswith("Not enough disk space") for one in causes):
        raise TryAgainError(
            f"{name}: the disk is full on which the datasets library keeps its copy, in {config.HF_DATASETS_CACHE}: {_first_line(error)}",
            hint="free some space, or name a folder on another disk as HF_HOME, then run the same command again",
        ) from error


def _rows_of_part(rows: Any, part: CorpusPart, first: int) -> Iterator[Mapping[str, Any]]:
    """The rows of a part, from its row `first` on; a streamed data set is split by files if they can be dealt out equally."""
    import datasets

    is_stream = isinstance(rows, datasets.IterableDataset)
    if is_stream and part.num_parts > 1 and rows.num_shards % part.num_parts == 0:
        rows = rows.shard(num_shards=part.num_parts, index=part.number, contiguous=False)
        return rows_of_dataset(rows.skip(first))
    return islice(rows_of_dataset(rows.skip(part.row(first))), 0, None, part.num_parts)


def _local_files(corpus: HubCorpus, data: HubData) -> list[Path]:
    if corpus.data_files is None or "://" in corpus.data_files or "/" in corpus.dataset:
        return []
    return expand_path(corpus.data_files, data.root)


def _local_folder(corpus: HubCorpus, data: HubData) -> Path | None:
    """The folder that `dataset` names; None for a format, and for a name on the hub.

    A folder in the current folder comes before a name on the hub, as in the library; under data.root, only a
    folder that `save_to_disk` wrote.
    """
    if is_format(corpus.dataset):
        return None
    given = with_home(corpus.dataset)
    under_root = with_home(data.root) / given
    if under_root.is_dir() and saved_splits(under_root) is not None:
        return under_root
    return given if given.is_dir() else None


def _first_line(error: BaseException) -> str:
    """The first line of the message; a DatasetGenerationError is skipped, because it has no details."""
    while type(error).__name__ == "DatasetGenerationError" and error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# Pairs of streamed data sets on disk, so that each data set is downloaded only once.
#
# The preparation of data reads a corpus once for each split: it must know all held-out pairs before it cleans the
# first training pair. A streamed data set has no copy on this machine, so its first reading writes the pairs to a
# file, from which they are read again. The file is deleted when the data are prepared.


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


# The commit of a data set on the Hugging Face hub, as far as it can be known.


_COMMIT = re.compile(r"[0-9a-f]{40}")
_TIMEOUT_SECONDS = 10.0


def commit_of(corpus: HubCorpus) -> str | None:
    """The commit that would be read now: the one of the hub, else the one of the copy on this machine.

    None for a format such as parquet, and if neither the hub nor a copy knows the data set.
    """
    if is_format(corpus.dataset) or Path(corpus.dataset).exists():
        return None
    if corpus.revision is not None and _COMMIT.fullmatch(corpus.revision):
        return corpus.revision
    return _commit_on_the_hub(corpus) or _commit_of_copy(corpus)


def is_format(dataset: str) -> bool:
    """Whether this is the name of a format that the library reads, such as parquet, and no data set."""
    from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

    return dataset in _PACKAGED_DATASETS_MODULES


def _commit_on_the_hub(corpus: HubCorpus) -> str | None:
    from huggingface_hub import HfApi

    try:
        info = HfApi().dataset_info(corpus.dataset, revision=corpus.revision, timeout=_TIMEOUT_SECONDS)
    except Exception:  # no network, data set or permission: reading the data set raises the error
        return None
    return info.sha


def _commit_of_copy(corpus: HubCorpus) -> str | None:
    """The commit of the revision when its files were downloaded, else the newest downloaded commit."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    name = repo_folder_name(repo_id=corpus.dataset, repo_type="dataset")
    folder = Path(constants.HF_HUB_CACHE) / name
    try:
        return (folder / "refs" / (corpus.revision or "main")).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        pass
    if corpus.revision is not None or not (folder / "snapshots").is_dir():
        return None
    snapshots = [path for path in (folder / "snapshots").iterdir() if _COMMIT.fullmatch(path.name)]
    newest = max(snapshots, key=lambda path: path.stat().st_mtime, default=None)
    return newest.name if newest else None
