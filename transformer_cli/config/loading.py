"""From a YAML file and overrides to a checked config, and back."""

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from transformer_cli.config.refusal import describe, setting_paths
from transformer_cli.config.tree import Config
from transformer_cli.config.yaml_reader import Mapping, parse_yaml
from transformer_cli.errors import ConfigError, MissingInputError

__all__ = [
    "MAX_CONFIG_BYTES",
    "check_settings",
    "find_config",
    "load_config",
    "override_settings",
    "setting_paths",
    "shipped_configs",
    "to_yaml",
]

MAX_CONFIG_BYTES = 1_000_000


def load_config(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Config:
    """Read a config file, apply overrides and check every setting.

    Args:
        path: a file, or else the name of a config shipped with the package.
        overrides: `section.field=value`, the value in YAML.

    Raises:
        MissingInputError: there is no such config.
        ConfigError: a setting does not exist, or cannot have its value.
    """
    file = find_config(path)
    settings = parse_yaml(_read_text(file), str(path))
    if not isinstance(settings, dict):
        raise ConfigError(
            f"{path}: a config is a mapping of sections, found {_kind(settings)}",
            hint="start from a shipped one, such as en-it.yaml",
        )
    for override in overrides:
        _apply_override(settings, override)
    return check_settings(settings, str(path))


def check_settings(settings: dict[str, Any], origin: str) -> Config:
    """A config from plain values; `origin` names them in messages."""
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        message, hint = describe(error, settings, origin)
        raise ConfigError(message, hint=hint) from error


def override_settings(
    config: Config, overrides: Iterable[str], *, allowed: Sequence[str]
) -> Config:
    """A config with some settings replaced, where only those that begin with `allowed` may be.

    Raises:
        ConfigError: an override is not allowed, or not valid.
    """
    settings = parse_yaml(to_yaml(config), config.name)
    for section in settings.values():  # its lines are those of no file
        if isinstance(section, Mapping):
            section.lines.clear()
    settings.lines.clear()
    for override in overrides:
        if not override.strip().startswith(tuple(allowed)):
            raise ConfigError(
                f"--set {override}: cannot be changed for a trained run",
                hint=f"what can be: {', '.join(allowed)}",
            )
        _apply_override(settings, override)
    return check_settings(settings, config.name)


def to_yaml(config: Config) -> str:
    """The resolved config: what is absent stays absent, all else is written out."""
    values = config.model_dump(mode="json", exclude_none=True)
    if config.training.clip_norm is None:
        values["training"]["clip_norm"] = None
    for rule in ("max_words", "max_characters", "max_length_ratio"):
        if getattr(config.data.cleaning, rule) is None:
            values["data"]["cleaning"][rule] = None
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def find_config(path: str | os.PathLike[str]) -> Path:
    """The file itself, or the shipped config of that name."""
    if Path(path).is_file():
        return Path(path)
    if Path(path).is_dir():
        raise MissingInputError(
            f"{path}: a folder, where a config file is expected", hint="name the file in it"
        )
    shipped = shipped_configs()
    for name in (str(path), f"{path}.yaml"):
        if name in shipped:
            return shipped[name]
    close = difflib.get_close_matches(str(path), shipped, n=1, cutoff=0.5)
    raise MissingInputError(
        f"{path}: no such config, neither a file nor one shipped with tfm",
        hint=f"did you mean {close[0]}?" if close else f"shipped: {', '.join(sorted(shipped))}",
    )


def shipped_configs() -> dict[str, Path]:
    """The configs that come with the package, by the name that --config takes."""
    package = Path(__file__).resolve().parents[1]
    folder = package / "configs"  # where an installed package has them
    if not folder.is_dir():
        folder = package.parent / "configs"  # beside the package in a checkout
    return {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.yaml"))}


def _read_text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(
                f"{file}: a config of more than {MAX_CONFIG_BYTES:,} bytes is refused"
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
            hint=f"to leave a setting out, write --set {key.strip()}=null",
        )
    section: Any = settings
    for depth, name in enumerate(names[:-1]):
        section = _enter(section, name, ".".join(names[: depth + 1]), override)
    try:
        value = parse_yaml(text, "")
    except ConfigError as error:
        problem = re.sub(r"^(:\d+)?: ", "", error.message)  # a line number says nothing here
        raise ConfigError(f"--set {override}: {problem}") from error
    if isinstance(section, list):
        index = _index(section, names[-1], key)
        section[index] = value
    elif isinstance(section, Mapping):
        section[names[-1]] = value
        section.lines[names[-1]] = f"--set {override}"
    else:
        raise ConfigError(f"--set {override}: {'.'.join(names[:-1])} is not a section")


def _enter(section: Any, name: str, where: str, override: str) -> Any:
    if isinstance(section, list):
        return section[_index(section, name, where)]
    if not isinstance(section, dict):
        raise ConfigError(f"--set {where}: no such section")
    if section.get(name) is None:
        section[name] = Mapping()
        section[name].lines = {}
        if isinstance(section, Mapping):
            section.lines[name] = f"--set {override}"
    return section[name]


def _index(section: Sequence[Any], name: str, where: str) -> int:
    if not (name.isascii() and name.isdecimal() and int(name) < len(section)):
        raise ConfigError(f"--set {where}: {name} is not a number below {len(section)}")
    return int(name)


def _kind(value: Any) -> str:
    return (
        "nothing"
        if value is None
        else {"list": "a list", "str": "text"}.get(type(value).__name__, repr(value))
    )
