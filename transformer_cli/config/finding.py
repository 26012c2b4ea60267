"""Finding the file of a config by its path, or by the name of a config that comes with the package."""

import difflib
import os
from pathlib import Path

from transformer_cli.process.errors import ConfigError, MissingInputError

_ENDINGS = (".yaml", ".yml")


def find_config(path: str | os.PathLike[str]) -> Path:
    """The file at this path, with or without its ending, or else the shipped config of this name.

    Raises:
        MissingInputError: there is no such config; the hint names the nearest one.
        ConfigError: the file holds a corpus, by the end of its name.
    """
    shipped = shipped_configs()
    files = [Path(f"{path}{ending}") for ending in ("", *_ENDINGS)]
    known = [shipped[name] for name in (f"{path}", f"{path}.yaml") if name in shipped]
    for file in [*(file for file in files if file.is_file()), *known]:
        _refuse_corpus(file)
        return file
    if Path(path).is_dir():
        names = ", ".join(_configs_in(Path(path))[:8]) or "it holds none"
        raise MissingInputError(
            f"{path}: a folder, where a config file is expected",
            hint=f"give the path of a config in it: {names}",
        )
    if Path(path).exists():
        raise MissingInputError(
            f"{path}: a pipe or device; a config is read more than once",
            hint="write it to a file first",
        )
    raise MissingInputError(
        f"{path}: no such config: no file has this path, and no config that comes with tfm has this name",
        hint=_suggestion(Path(path), list(shipped)),
    )


def _refuse_corpus(file: Path) -> None:
    endings = [ending.lower() for ending in file.suffixes[-2:]]
    if set(endings) & {".tmx", ".xlf", ".xliff", ".xlsx", ".zip"}:
        hint = f"tfm data import {file} --output corpus makes text files of it"
    elif set(endings) & {".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".parquet"}:
        hint = f"tfm init {file} writes a config for it"
    else:
        return
    raise ConfigError(f"{file}: this is a corpus, where a config is expected", hint=hint)


def shipped_configs() -> dict[str, Path]:
    """The configs that come with the package: names for --config, and paths."""
    package = Path(__file__).resolve().parents[1]
    folder = package / "configs"  # in an installed package
    if not folder.is_dir():
        folder = package.parent / "configs"  # in a clone of the repository
    return {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.yaml"))}


def _suggestion(path: Path, shipped: list[str]) -> str:
    """The nearest config beside the path that was asked for, else the nearest shipped one."""
    beside = _nearest(path.name, _configs_in(path.parent))
    nearest = str(path.parent / beside) if beside else None
    nearest = nearest or _nearest(str(path), shipped) or _nearest(path.name, shipped)
    if nearest is not None:
        return f"did you mean {nearest}?"
    return f"configs that come with tfm: {', '.join(sorted(shipped))}"


def _nearest(wanted: str, names: list[str]) -> str | None:
    """The most similar name; the ending and the case of letters do not count."""
    by_stem = {name.removesuffix(Path(name).suffix).casefold(): name for name in reversed(names)}
    stem = wanted.removesuffix(Path(wanted).suffix).casefold()
    for sought in (stem, wanted.casefold()):
        if close := difflib.get_close_matches(sought, by_stem, n=1, cutoff=0.6):
            return by_stem[close[0]]
    return None


def _configs_in(folder: Path) -> list[str]:
    try:
        return sorted(file.name for file in folder.iterdir() if file.suffix.lower() in _ENDINGS)
    except (OSError, ValueError):
        return []
