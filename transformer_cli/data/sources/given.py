"""Data sets of the library `datasets` that a program gives to `train`: they become files of the run, which goes on without the program."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_cli.config import Config, FilesData, SequencesData, SplitName
from transformer_cli.data.sources.lines import file_digest
from transformer_cli.data.sources.records import rows_of_dataset
from transformer_cli.data.sources.tables import Fields, field_paths, value_at
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.storage import REAL, errors_explained, make_folders
from transformer_cli.text.languages import code_of_language, primary_language

Given = Any
"""A `datasets.DatasetDict`, `IterableDatasetDict` or another mapping from split to data set; or one `Dataset` or `IterableDataset`."""

_SPLITS: dict[str, SplitName] = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_DRAWN = "all"
"""The name of the file of a data set without splits, from which validation and test pairs are drawn."""
_HOW_TO_NAME = "call rename_column, or remove_columns for those that are not needed"


def named_splits(given: Given) -> dict[str, Given]:
    """The data set of each split: train, validation and test; `all` if validation pairs must be drawn from it.

    Raises:
        TypeError: this is no data set of the library `datasets`.
        DataError: a split has another name, two mean the same, or there is none to train on.
    """
    if not isinstance(given, Mapping):
        _require_data_set(given, "data")
        return {_DRAWN: given}
    splits: dict[str, Given] = {}
    for name, rows in given.items():
        _require_data_set(rows, f"data[{name!r}]")
        split = _SPLITS.get(str(name))
        if split is None or split in splits:
            problem = "no split of this name" if split is None else f"a second {split} split"
            raise DataError(
                f"data[{name!r}]: {problem}; found {', '.join(map(str, given))}",
                hint="the splits are train, validation (also valid, val, dev) and test; give those that you mean: "
                'data={"train": ..., "validation": ...}',
            )
        splits[split] = rows
    if "train" not in splits:
        raise DataError(
            f"data: no split train, found {', '.join(map(str, given)) or 'none'}",
            hint='data={"train": ..., "validation": ...}',
        )
    if "validation" not in splits:  # drawn from the training split, by a hash of each pair
        splits[_DRAWN] = splits.pop("train")
    return splits


def _require_data_set(rows: Given, name: str) -> None:
    import datasets

    if not isinstance(rows, datasets.Dataset | datasets.IterableDataset):
        raise TypeError(f"{name}: {type(rows).__name__} is no Dataset of the library datasets")


def config_of_given(
    config: Config, splits: Mapping[str, Given], folder: Path, languages: tuple[str, str] | None
) -> Config:
    """The config of a run whose corpus is what `write_given` writes to a folder.

    Args:
        languages: of source and target; None: those of the config.

    Raises:
        ConfigError: the config is one of the tasks with symbols.
    """
    if isinstance(config.data, SequencesData):
        raise ConfigError(
            f"data: given to a config whose data are the task {config.data.task}",
            hint="take a config of a corpus, such as load_config('en-it.yaml')",
        )
    settings = config.data.model_dump(exclude_unset=True)
    kept = {
        name: value
        for name, value in settings.items()
        if name in FilesData.model_fields
        and name not in ("corpora", "root", "streaming", "tokenizer_pairs", "stream_parts", "temperature")
    }
    source, target = languages or (config.data.source_language, config.data.target_language)
    corpora = [
        {
            "path": f"{split}.jsonl",
            "split": None if split == _DRAWN else split,
            "source_field": "source",
            "target_field": "target",
        }
        for split in splits
    ]
    shares = {"test_share": 0.0} if "test" in splits else {}
    data = FilesData.model_validate(
        kept
        | {
            "source": "files",
            "root": str(folder),
            "source_language": source,
            "target_language": target,
            "corpora": corpora,
        }
        | shares
    )
    return config.model_copy(update={"data": data})


def write_given(splits: Mapping[str, Given], languages: tuple[str, str], folder: Path, *, may_change: bool) -> None:
    """Write each split to a file with one JSON object per pair: the same file for the same pairs.

    Args:
        languages: of source and target; they name the columns, or the entries of the column `translation`.
        may_change: whether files that are there may be replaced by others.

    Raises:
        DataError: a column is missing or holds no text; or a file is there, has other pairs, and must not change.
    """
    fs = REAL
    make_folders(folder)
    partial = {split: folder / f"{split}.partial" for split in splits}
    try:
        for split, rows in splits.items():
            _write(partial[split], rows, languages, f"data[{split!r}]" if split != _DRAWN else "data")
        if not may_change:
            _require_same(partial, folder)
        for split, file in partial.items():
            fs.rename(file, folder / f"{split}.jsonl")
        for file in {*folder.glob("*.jsonl")} - {folder / f"{split}.jsonl" for split in splits}:
            fs.remove_file(file)
    finally:
        for file in partial.values():
            if file.exists():
                fs.remove_file(file)


def _require_same(partial: Mapping[str, Path], folder: Path) -> None:
    before = {file.stem: file_digest(file) for file in folder.glob("*.jsonl")}
    now = {split: file_digest(file) for split, file in partial.items()}
    changed = sorted(split for split in {*before, *now} if before.get(split) != now.get(split))
    if before and changed:
        shown = "".join(
            f"\n    {split}: was {before.get(split, 'not there')[:12]}, now {now.get(split, 'not there')[:12]}"
            for split in changed
        )
        raise DataError(
            f"{folder}: the data differs from the data on which this run was trained:{shown}",
            hint="give the same data in the same order; or continue with the changed data: accept_data_change=True",
        )


def _write(path: Path, rows: Given, languages: tuple[str, str], name: str) -> None:
    with errors_explained(path, fs=REAL, creating=True), path.open("wb") as file:
        for source, target in _pairs(rows, languages, name):
            line = json.dumps({"source": source, "target": target}, ensure_ascii=False)
            file.write(line.encode("utf-8", "surrogatepass") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _pairs(rows: Given, languages: tuple[str, str], name: str) -> Iterator[tuple[str, str]]:
    paths: tuple[str, str] | None = None
    for number, row in enumerate(rows_of_dataset(rows), start=1):
        paths = paths or _paths(row, languages, name)
        sides = (value_at(row, path, f"{name}, row {number}") for path in paths)
        source, target = (side.decode("utf-8", "surrogatepass") for side in sides)
        yield source, target


def _paths(row: Mapping[str, Any], languages: tuple[str, str], name: str) -> tuple[str, str]:
    """The fields of source and target: those of the languages, `source` and `target`, or the only two."""
    names = list(row)
    translation = row.get("translation")
    if isinstance(translation, Mapping):
        missing = [one for one in languages if one not in translation]
        if missing:
            raise DataError(
                f"{name}: its column translation has no language {missing[0]}, found {', '.join(translation)}",
                hint=f"name source and target: train(config, data=..., languages={tuple(translation)[:2]!r})",
            )
        return f"translation.{languages[0]}", f"translation.{languages[1]}"
    for pair in (languages, ("source", "target")):
        if all(one in names for one in pair):
            return pair
    if len(names) != 2:
        raise DataError(
            f"{name}: no columns {languages[0]} and {languages[1]}, nor source and target; found {', '.join(names)}",
            hint=_HOW_TO_NAME,
        )
    codes = [code_of_language(one) for one in names]
    if all(codes) and {*map(primary_language, names)} != {*map(primary_language, languages)}:
        raise DataError(
            f"{name}: its columns are named {names[0]} and {names[1]}, but the languages are {languages[0]} and {languages[1]}",
            hint=f"name source and target: train(config, data=..., languages={tuple(names)!r}); {_HOW_TO_NAME}",
        )
    return field_paths(names, Fields(None, None, *languages, "data"), name)
