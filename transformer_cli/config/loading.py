"""Reading a config from a YAML file, with overrides and checks, and writing it as YAML."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from transformer_cli.config.finding import find_config
from transformer_cli.config.overrides import apply_override
from transformer_cli.config.refusal import refusal
from transformer_cli.config.tree import Config
from transformer_cli.config.yaml_reader import Mapping, parse_yaml
from transformer_cli.process.errors import ConfigError, MissingInputError

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
