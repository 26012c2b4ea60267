"""Reading a config from a YAML file, with overrides and checks, and writing it as YAML."""

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from transformer_cli.config.refusal import refusal
from transformer_cli.config.tree import Config
from transformer_cli.config.yaml_reader import Mapping, parse_yaml
from transformer_cli.errors import ConfigError, MissingInputError

MAX_CONFIG_BYTES = 1_000_000


def load_config(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Config:
    """Read a config file, apply overrides and check every setting.

    Args:
        path: a file, or else the name of a config shipped with the package.
        overrides: texts of the form `section.field=value`; the value is YAML.

    Raises:
        MissingInputError: there is no such config.
        ConfigError: a setting does not exist, or its value is not allowed.
    """
    file = find_config(path)
    settings = parse_yaml(_read_text(file), str(path))
    if not isinstance(settings, dict):
        raise ConfigError(
            f"{path}: a config is a mapping of sections, found {_kind(settings)}",
            hint="start from a config that comes with tfm, such as en-it.yaml",
        )
    for override in [overrides] if isinstance(overrides, str) else overrides:
        _apply_override(settings, override)
    return check_settings(settings, str(path))


def check_settings(settings: dict[str, Any], origin: str) -> Config:
    """Check plain values; messages name `origin` as the file."""
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        raise refusal(error, settings, origin) from error


def override_settings(
    config: Config, overrides: Iterable[str], *, allowed: Sequence[str]
) -> Config:
    """Replace settings of a config; only names that begin with one of `allowed` may be replaced.

    Raises:
        ConfigError: an override is not allowed, or its value is not.
    """
    settings = parse_yaml(to_yaml(config), config.name)
    for section in (settings, *settings.values()):
        if isinstance(section, Mapping):
            section.lines.clear()  # these line numbers belong to no file of the user
    for override in overrides:
        if not override.strip().startswith(tuple(allowed)):
            raise ConfigError(
                f"--set {override}: this setting cannot be changed for a trained model",
                hint=f"settings that can be changed: {', '.join(allowed)}",
            )
        _apply_override(settings, override)
    return check_settings(settings, config.name)


def to_yaml(config: Config) -> str:
    """The config as YAML, with every default written out; settings that are absent stay absent."""
    values = config.model_dump(mode="json", exclude_none=True)
    if config.training.clip_norm is None:
        values["training"]["clip_norm"] = None
    for rule in ("max_words", "max_characters", "max_length_ratio"):
        if getattr(config.data.cleaning, rule) is None:
            values["data"]["cleaning"][rule] = None
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def find_config(path: str | os.PathLike[str]) -> Path:
    """The file at this path, or else the shipped config of this name."""
    if Path(path).is_file():
        return Path(path)
    if Path(path).is_dir():
        raise MissingInputError(
            f"{path}: a folder, where a config file is expected",
            hint="give the path of a file in it",
        )
    shipped = shipped_configs()
    for name in (str(path), f"{path}.yaml"):
        if name in shipped:
            return shipped[name]
    close = difflib.get_close_matches(str(path), shipped, n=1, cutoff=0.5)
    known = f"configs that come with tfm: {', '.join(sorted(shipped))}"
    raise MissingInputError(
        f"{path}: no such config: no file has this path, and no config that comes with tfm has this name",
        hint=f"did you mean {close[0]}?" if close else known,
    )


def shipped_configs() -> dict[str, Path]:
    """The configs that come with the package: names for --config, and paths."""
    package = Path(__file__).resolve().parents[1]
    folder = package / "configs"  # in an installed package
    if not folder.is_dir():
        folder = package.parent / "configs"  # in a clone of the repository
    return {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.yaml"))}


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


def _apply_override(settings: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    names = key.strip().split(".")
    if not equals or not all(names):
        raise ConfigError(
            f"--set {override}: not of the form section.field=value",
            hint="for example --set training.max_steps=100",
        )
    if not text.strip():
        raise ConfigError(
            f"--set {override}: no value after the =",
            hint=f"to remove a setting, write --set {key.strip()}=null",
        )
    *parents, last = names
    section: Any = settings
    for depth, name in enumerate(parents, start=1):
        section = _enter(section, name, ".".join(parents[:depth]), override)
    try:
        value = parse_yaml(text, "")
    except ConfigError as error:
        problem = re.sub(r"^(:\d+)?: ", "", error.message)  # an override has no line number
        raise ConfigError(f"--set {override}: {problem}") from error
    if isinstance(section, list):
        section[_index(section, last, key)] = value
    elif isinstance(section, Mapping):
        section[last] = value
        section.lines[last] = f"--set {override}"
    else:
        raise ConfigError(f"--set {override}: {'.'.join(parents)} is not a section")


def _enter(section: Any, name: str, where: str, override: str) -> Any:
    if isinstance(section, list):
        return section[_index(section, name, where)]
    if not isinstance(section, Mapping):
        raise ConfigError(f"--set {where}: no such section")
    if section.get(name) is None:
        section[name] = Mapping()
        section.lines[name] = f"--set {override}"
    return section[name]


def _index(section: Sequence[Any], name: str, where: str) -> int:
    if not (name.isascii() and name.isdecimal() and int(name) < len(section)):
        raise ConfigError(
            f"--set {where}: {name} is not an index of a list with {len(section)} items"
        )
    return int(name)


def _kind(value: Any) -> str:
    words = {"NoneType": "nothing", "list": "a list", "str": "text"}
    return words.get(type(value).__name__, repr(value))
