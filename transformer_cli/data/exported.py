"""Prepared data for other programs: texts, ids, the place of each pair in its corpus, and why pairs were dropped."""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import compress, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from transformer_cli.config import Config, FilesData, HubData, SplitName
from transformer_cli.data.encoded import EncodedPairs, encode_pairs, encode_short_pairs
from transformer_cli.data.pairs import PAIRS_AT_ONCE, CleaningReport, ReadingReport, SentencePair, rows_of_pairs
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.selection import (
    DigestSet,
    all_held_out_pairs,
    clean,
    held_out_digests,
    is_drawn,
    rules_of_given_splits,
)
from transformer_cli.data.sources.corpus import corpus_pairs, has_split, read_pairs
from transformer_cli.process.errors import CannotCreateError, ConfigError
from transformer_cli.storage import require_place, staged_folder
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.token_ids import IdLists
from transformer_cli.text.tokenizer import AS_SPM, SHARED, Tokenizers

PARQUET = "parquet"
"""The folder of the Parquet files, beside the splits that `datasets.load_from_disk` opens."""
DROPPED = "dropped"
"""The name of the split of the pairs that were dropped."""


class _Placed(NamedTuple):
    """A pair and the row of its corpus, from 1."""

    pair: SentencePair
    row: int


class _Judged(NamedTuple):
    """A pair as it is used, or as it was read if it is dropped, with the rule that dropped it."""

    pair: SentencePair
    row: int
    reason: str | None


def export_prepared(prepared: PreparedData, folder: Path) -> dict[str, int]:
    """Write prepared data to a new folder; returns the number of pairs of each split.

    `datasets.load_from_disk(folder)` opens it: the splits train, validation, test and dropped, as far as they have pairs.
    The same rows are in folder/parquet. For the tokenizers see `save_tokenizers`. The folder appears complete or not at all.

    Raises: as `require_exportable`.
    """
    require_exportable(prepared.config, folder)
    with staged_folder(folder) as staged:
        (staged / PARQUET).mkdir()
        counts = _write_splits(prepared, staged / PARQUET)
        # The library datasets opens no saved split without rows.
        _save_for_datasets(staged, [split for split, count in counts.items() if count])
        save_tokenizers(staged, prepared.tokenizers)
    return counts


def require_exportable(config: Config, folder: Path) -> None:
    """Check what can be checked before the data are prepared.

    Raises:
        ConfigError: the pairs are read while the model trains.
        CannotCreateError: the folder exists, or cannot be made.
    """
    if isinstance(config.data, FilesData | HubData) and config.data.streaming:
        raise ConfigError(
            "data.streaming: true, so the pairs are read while the model trains, and none are prepared",
            hint="--set data.streaming=false",
        )
    require_place(folder)
    if os.path.lexists(folder):
        raise CannotCreateError(f"{folder}: exists already", hint="give the name of a new folder")


def _write_splits(prepared: PreparedData, folder: Path) -> dict[str, int]:
    config, tables = prepared.config, _Tables(prepared.config, folder)
    splits: list[SplitName] = ["train", "validation", "test"]
    for split in splits:
        if not has_split(config.data, split):
            continue
        with closing(DigestSet(folder)) as seen:
            _write_split(split, _judged(config, split, seen), prepared, tables)
    return tables.close()


def _write_split(split: SplitName, judged: Iterator[_Judged], prepared: PreparedData, tables: "_Tables") -> None:
    tokenizers = prepared.tokenizers
    sequences = SequenceFormat.of(prepared.config.data)
    limit = prepared.config.model.max_length
    while chunk := list(islice(judged, PAIRS_AT_ONCE)):
        kept = [one for one in chunk if one.reason is None]
        rows = rows_of_pairs([one.pair for one in kept])
        if split == "train":
            encoded, is_short = encode_short_pairs(rows, tokenizers, sequences, limit)
        else:
            encoded, is_short = (encode_pairs(rows, *tokenizers, sequences), np.ones(len(kept), bool))
        tables.add(split, list(compress(kept, is_short)), encoded)
        too_long = [one._replace(reason="model.max_length") for one in compress(kept, ~is_short)]
        tables.add_dropped(split, [one for one in chunk if one.reason is not None] + too_long)


def _judged(config: Config, split: SplitName, seen: DigestSet) -> Iterator[_Judged]:
    """The pairs of a split, cleaned by the same function as for the training, each with its row and the verdict."""
    placed = _placed_pairs(config, split)
    if split == "train":
        digests = held_out_digests(config, all_held_out_pairs(config))
        yield from _cleaned(placed, partial(clean, rules=config.applied_cleaning, held_out=digests, seen=seen))
        return
    for drawn, group in groupby(placed, key=lambda one: is_drawn(config, one.pair)):
        rules = config.applied_cleaning if drawn else rules_of_given_splits(config.applied_cleaning)
        yield from _cleaned(group, partial(clean, rules=rules))


def _cleaned(placed: Iterable[_Placed], cleaning: Callable[..., Iterator[SentencePair]]) -> Iterator[_Judged]:
    """What `cleaning` makes of each pair: it takes one pair after the other, and counts what each rule drops."""
    report = CleaningReport()
    waiting: list[_Placed] = []
    refused: list[_Judged] = []
    counts: dict[str, int] = {}

    def handed_over() -> Iterator[SentencePair]:
        for one in placed:
            settle()
            waiting.append(one)
            yield one.pair

    def settle() -> None:
        """A pair that still waits when the next one is asked for was dropped, by the rule whose count has grown."""
        if waiting:
            found = {rule: finding.count for rule, finding in report.dropped.items()}
            [rule] = [rule for rule, count in found.items() if count > counts.get(rule, 0)]
            counts.update(found)
            one = waiting.pop()
            refused.append(_Judged(one.pair, one.row, rule))

    for pair in cleaning(handed_over(), report=report):
        one = waiting.pop()
        yield from refused
        refused.clear()
        yield _Judged(pair, one.row, None)
    settle()
    yield from refused


def _placed_pairs(config: Config, split: SplitName) -> Iterator[_Placed]:
    data = config.data
    if not isinstance(data, FilesData | HubData):
        num_directions = len(data.directions)
        for number, pair in enumerate(read_pairs(data, split, seed=config.seed)):
            yield _Placed(pair, number // num_directions + 1)
        return
    for index, corpus in enumerate(data.corpora):
        if corpus.split not in (None, split):
            continue
        reading = ReadingReport(split)
        for drawn, pair in corpus_pairs(data, index, reading):
            if drawn == split:
                yield _Placed(pair, reading.num_rows)


def _corpus_names(config: Config) -> list[str]:
    data = config.data
    if isinstance(data, FilesData):
        return [one.path or f"{one.source_path} {one.target_path}" for one in data.corpora]
    if isinstance(data, HubData):
        return [" ".join(filter(None, (one.dataset, one.config))) for one in data.corpora]
    return [data.source]


class _Tables:
    """The Parquet files, which grow."""

    def __init__(self, config: Config, folder: Path) -> None:
        self._corpora, self._folder = _corpus_names(config), folder
        self._directions = [str(one) for one in config.data.directions]
        self._writers: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self.add_dropped("train", [])

    def add(self, split: str, judged: list[_Judged], encoded: EncodedPairs) -> None:
        """Append pairs and their ids."""
        ids = {"source_ids": _list_column(encoded.source), "target_ids": _list_column(encoded.target)}
        self._append(split, judged, ids)

    def add_dropped(self, split: str, judged: list[_Judged]) -> None:
        """Append pairs that were dropped from a split, with the reason."""
        import pyarrow as pa

        why = {
            "split": pa.array([split] * len(judged), pa.string()),
            "reason": pa.array([one.reason for one in judged], pa.string()),
        }
        self._append(DROPPED, judged, why)

    def _append(self, name: str, judged: list[_Judged], further: dict[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        rows = rows_of_pairs([one.pair for one in judged])
        corpora = [self._corpora[one.pair.corpus] for one in judged]
        directions = [self._directions[one.pair.direction] for one in judged]
        table = pa.table(
            {
                "source": rows.column("source"),
                "target": rows.column("target"),
                **further,
                "corpus": pa.array(corpora, pa.string()),
                "row": pa.array([one.row for one in judged], pa.int64()),
                "direction": pa.array(directions, pa.string()),
            }
        )
        if name not in self._writers:
            path = self._folder / f"{name}.parquet"
            self._writers[name] = parquet.ParquetWriter(path, table.schema)
        if judged:  # the library datasets reads no empty group of rows
            self._writers[name].write_table(table)
        self._counts[name] = self._counts.get(name, 0) + len(judged)

    def close(self) -> dict[str, int]:
        """Finish the files; the number of pairs of each."""
        for writer in self._writers.values():
            writer.close()
        dropped = {DROPPED: self._counts.pop(DROPPED)}
        return self._counts | dropped


def _list_column(lists: IdLists) -> Any:
    import pyarrow as pa

    offsets = np.concatenate([[0], np.cumsum(lists.lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(lists.ids, pa.uint32()))


def _save_for_datasets(folder: Path, splits: list[str]) -> None:
    import datasets

    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".") as cache:
        opened = {
            split: datasets.Dataset.from_parquet(str(folder / PARQUET / f"{split}.parquet"), cache_dir=cache)
            for split in splits
        }
        datasets.DatasetDict(opened).save_to_disk(str(folder))


def save_tokenizers(folder: Path, tokenizers: Tokenizers) -> None:
    """Write the folder `tokenizer`, or `tokenizer.source` and `tokenizer.target` if they differ.

    `AutoTokenizer.from_pretrained` opens it; a model of SentencePiece that has no tokenizer.json is there as tokenizer.spm.
    """
    source, target = tokenizers
    if source.to_file() == target.to_file():
        _save_tokenizer(folder / "tokenizer", source)
        return
    _save_tokenizer(folder / "tokenizer.source", source)
    _save_tokenizer(folder / "tokenizer.target", target)


def _save_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    folder.mkdir()
    if not tokenizer.has_json:
        (folder / AS_SPM[SHARED]).write_bytes(tokenizer.to_file())
        return
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "bos_token": "[SOS]",
        "eos_token": "[EOS]",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")
