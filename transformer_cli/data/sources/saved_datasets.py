"""Folders that the `datasets` library wrote with `save_to_disk`: recognising them, and reading their rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_cli.data.sources.fields import Fields, field_paths, value_at
from transformer_cli.data.sources.lines import RawPair
from transformer_cli.process.errors import DataError

_BATCH_ROWS = 1000


def saved_splits(folder: Path) -> list[str] | None:
    """The splits of a saved DatasetDict; an empty list for a saved Dataset; None for any other folder."""
    if (folder / "dataset_dict.json").is_file():
        return sorted(path.name for path in folder.iterdir() if saved_splits(path) == [])
    names = ("state.json", "dataset_info.json")
    return [] if all((folder / name).is_file() for name in names) else None


def saved_files(folder: Path) -> list[Path]:
    """The files of a data set in a folder, sorted, without hidden ones."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part[0] == "." for part in path.relative_to(folder).parts)
    )


def load_saved(folder: Path, split: str) -> Any:
    """The `datasets.Dataset` of a split, or of a slice such as train[:10%].

    Raises:
        ValueError: there is no such split.
    """
    import datasets

    saved = datasets.load_from_disk(str(folder))
    if not isinstance(saved, dict):
        # A Dataset may store the name of its split; otherwise it is used as the requested split.
        name = str(saved.split) if saved.split else split.partition("[")[0].strip()
        saved = {name: saved}
    sizes = {name: len(rows) for name, rows in saved.items()}
    parts = [
        saved[part.splitname].select(range(part.from_ or 0, _end(part.to, sizes[part.splitname])))
        for part in datasets.ReadInstruction.from_spec(split).to_absolute(sizes)
    ]
    return datasets.concatenate_datasets(parts)


def rows_of(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Each row of a `datasets.Dataset`, or of a streamed one."""
    for batch in rows.iter(batch_size=_BATCH_ROWS):
        for values in zip(*batch.values(), strict=True):
            yield dict(zip(batch, values, strict=True))


def pairs_of(rows: Iterator[Mapping[str, Any]], fields: Fields, name: str) -> Iterator[RawPair]:
    """The two sides of each row.

    Raises:
        DataError: a field is missing, or does not hold text.
    """
    paths: tuple[str, str] | None = None
    for number, row in enumerate(rows, start=1):
        paths = paths or field_paths(list(row), fields, name)
        yield RawPair.limited(number, *(value_at(row, path, f"{name}:{number}") for path in paths))


def read_saved(folder: Path, fields: Fields) -> Iterator[RawPair]:
    """The pairs of a saved Dataset.

    Raises:
        DataError: a file of the folder is damaged, or a field is missing.
    """
    import datasets

    try:
        yield from pairs_of(rows_of(datasets.load_from_disk(str(folder))), fields, str(folder))
    except DataError:
        raise
    except Exception as error:  # the library raises many types, those of Arrow included
        raise DataError(f"{folder}: a saved data set that cannot be read: {error}") from error


def _end(number: int | None, size: int) -> int:
    return size if number is None else number
