"""Finding a config by its path or name, reading it with overrides and checks, and writing it as YAML."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from transformer_cli.config.overrides import apply_override
from transformer_cli.config.refusal import refusal
from transformer_cli.config.tree import Config
from transformer_cli.config.yaml_reader import Mapping, parse_yaml
from transformer_cli.process.errors import ConfigError, MissingInputError

# Finding the file of a config by its path, or by the name of a config that comes with the package.


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


MAX_CONFIG_BYTES = 1_000_000


def load_config(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Config:
    """Read a config file, apply overrides and check every setting.

    Args:
        path: a file, or else the name of a config shipped with the package; the ending may be left out.
        overrides: texts of the form `section.field=value`; the value is YAML.

    Raises:
        MissingInputError: there is no such config.
        ConfigError: a setting does not exist, or its value is not allowed.
    """
    file = find_config(path)
    origin = str(path) if str(path).endswith(file.suffix) else f"{path}{file.suffix}"
    settings = parse_yaml(_read_text(file), origin)
    if not isinstance(settings, dict):
        raise ConfigError(
            f"{origin}: a config is a mapping of sections, found {_kind(settings)}",
            hint="start from a config that comes with tfm, such as en-it.yaml",
        )
    for override in [overrides] if isinstance(overrides, str) else overrides:
        apply_override(settings, override)
    return check_settings(settings, origin)


def load_stored_config(path: str | os.PathLike[str]) -> Config:
    """The config that a run has written; see `stored_settings`."""
    settings = parse_yaml(_read_text(Path(path)), str(path))
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: a config is a mapping of sections, found {_kind(settings)}")
    return check_settings(stored_settings(settings), str(path))


def stored_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a run has written, with what runs of earlier versions did where a newer setting is missing."""
    data = settings.get("data")
    if not isinstance(data, dict):
        return settings
    cleaning = data.get("cleaning", {})
    if not isinstance(cleaning, dict):
        return settings
    return settings | {"data": data | {"cleaning": {"normalize_invisible": None} | cleaning}}


def check_settings(settings: dict[str, Any], origin: str, *, is_trained: bool = False) -> Config:
    """Check plain values; messages name `origin` as the file.

    Args:
        is_trained: rules that matter only while a model is trained are not checked.
    """
    try:
        return Config.model_validate(settings, context={"is_trained": is_trained})
    except ValidationError as error:
        raise refusal(error, settings, origin) from error


def override_settings(config: Config, overrides: Iterable[str]) -> Config:
    """Replace settings of the config of a trained model.

    Raises:
        ConfigError: the value of an override is not allowed.
    """
    settings = _as_read(_values_of(config))
    for override in overrides:
        apply_override(settings, override)
    return check_settings(settings, config.name, is_trained=True)


def _as_read(values: Any) -> Any:
    """Plain values as `parse_yaml` returns them, but with the lines of no file."""
    if isinstance(values, list):
        return [_as_read(value) for value in values]
    if not isinstance(values, dict):
        return values
    mapping = Mapping()
    mapping.update({name: _as_read(value) for name, value in values.items()})
    return mapping


def to_yaml(config: Config) -> str:
    """The config as YAML, with every default written out; settings that are absent stay absent."""
    return yaml.safe_dump(_values_of(config), sort_keys=False, allow_unicode=True)


def _values_of(config: Config) -> dict[str, Any]:
    """The values of a config as plain data; None is left out where it is the default."""
    values = config.model_dump(mode="json")
    _leave_out_absent(config, values)
    return values


def _leave_out_absent(section: BaseModel, values: dict[str, Any]) -> None:
    """Remove each None that is a default from the values of a section."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            _leave_out_absent(value, values[name])
        elif isinstance(value, tuple):
            for item, values_of_item in zip(value, values[name], strict=True):
                if isinstance(item, BaseModel):
                    _leave_out_absent(item, values_of_item)
        elif value is None and field.default is None:
            del values[name]


def _read_text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(
                f"{file}: more than {MAX_CONFIG_BYTES:,} bytes, the limit for a config"
            )
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{file}: not UTF-8 text ({error.reason} at byte {error.start})"
        ) from error
    except OSError as error:
        raise MissingInputError(f"{file}: cannot be read: {error.strerror}") from error


def _kind(value: Any) -> str:
    words = {"NoneType": "nothing", "list": "a list", "str": "text"}
    return words.get(type(value).__name__, repr(value))
