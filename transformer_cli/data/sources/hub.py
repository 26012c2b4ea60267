"""Sentence pairs from data sets that the Hugging Face `datasets` library can load."""

import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_cli.config.data import HubCorpus, HubData
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.decompression import file_digest
from transformer_cli.data.sources.fields import Fields, field_paths, value_at
from transformer_cli.data.sources.lines import RawPair, decode_pairs
from transformer_cli.data.sources.paths import expand_path, name_under_root
from transformer_cli.errors import DataError, MissingInputError

_BATCH_ROWS = 1000


def read_hub(data: HubData, index: int, report: ReadingReport) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `data.corpora[index]`, in the order of the data set.

    Raises:
        MissingInputError: the hub cannot be reached, or has no such data set.
        DataError: the data set has no such configuration, split or field, or has no pair.
    """
    corpus = data.corpora[index]
    name = " ".join(filter(None, (corpus.dataset, corpus.config)))
    num_rows_before = report.num_rows
    rows = islice(_raw_pairs(data, index, name), corpus.max_pairs)
    yield from decode_pairs(rows, (name, name), "error", report)
    if report.num_rows == num_rows_before:
        raise DataError(f"{name}: its split {corpus.dataset_split} has no rows")


def fingerprint_hub(data: HubData, index: int) -> dict[str, str]:
    """Name -> SHA-256 of what `data.corpora[index]` asks the hub for, and of its local files."""
    corpus = data.corpora[index]
    asked = (corpus.dataset, corpus.config, corpus.revision, corpus.dataset_split, corpus.max_pairs)
    name = " ".join(str(part) for part in asked if part is not None)
    digests = {name: sha256(repr(asked).encode()).hexdigest()}
    for path in _local_files(corpus, data):
        digests[name_under_root(path, data.root)] = file_digest(path)
    return digests


def _raw_pairs(data: HubData, index: int, name: str) -> Iterator[RawPair]:
    fields = Fields.of(data, index)
    paths: tuple[str, str] | None = None
    for number, row in enumerate(_rows(data.corpora[index], data, name), start=1):
        paths = paths or field_paths(list(row), fields, name)
        yield RawPair.limited(number, *(value_at(row, path, f"{name}:{number}") for path in paths))


def _rows(corpus: HubCorpus, data: HubData, name: str) -> Iterator[Mapping[str, Any]]:
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    files = [str(path.absolute()) for path in _local_files(corpus, data)]
    try:
        rows = datasets.load_dataset(
            corpus.dataset,
            corpus.config,
            split=corpus.dataset_split,
            revision=corpus.revision,
            streaming=corpus.streamed,
            data_files=files or corpus.data_files,
        )
        for batch in rows.iter(batch_size=_BATCH_ROWS):
            for values in zip(*batch.values(), strict=True):
                yield dict(zip(batch, values, strict=True))
    except datasets.exceptions.DatasetNotFoundError as error:
        raise MissingInputError(
            f"{name}: the Hugging Face hub has no such data set, or restricts access to it: {_first_line(error)}",
            hint="give its name as OWNER/NAME; if its page asks for a login, run `hf auth login`",
        ) from error
    except OSError as error:
        raise MissingInputError(
            f"{name}: the Hugging Face hub cannot be reached: {_first_line(error)}",
            hint="without a network, train on the built-in corpus (--config en-it.yaml) or on local "
            "files (data.source: files); a data set that was downloaded before is still on this machine",
        ) from error
    except Exception as error:  # the library raises many types, those of its parsers included
        raise DataError(
            f"{name}: the datasets library cannot read it: {_first_line(error)}",
            hint=f"check dataset, config and dataset_split ({corpus.dataset_split}) under data.corpora",
        ) from error


def _local_files(corpus: HubCorpus, data: HubData) -> list[Path]:
    if corpus.data_files is None or "://" in corpus.data_files or "/" in corpus.dataset:
        return []
    return expand_path(corpus.data_files, data.root)


def _first_line(error: BaseException) -> str:
    """The first line of the message; a DatasetGenerationError is skipped, because it has no details."""
    while type(error).__name__ == "DatasetGenerationError" and error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).splitlines()[0]
