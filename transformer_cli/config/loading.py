"""From a YAML file and overrides to a checked config, and back."""

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from transformer_cli.config.data import FilesData, HubData, PhrasebookData, SequencesData
from transformer_cli.config.tree import Config
from transformer_cli.config.yaml_reader import Mapping, parse_yaml
from transformer_cli.errors import ConfigError, MissingInputError

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
        message, hint = _describe(error, settings, origin)
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
    section: Any = settings
    for depth, name in enumerate(names[:-1]):
        section = _enter(section, name, ".".join(names[: depth + 1]))
    value = parse_yaml(text, f"--set {key}")
    if isinstance(section, list):
        index = _index(section, names[-1], key)
        section[index] = value
    elif isinstance(section, Mapping):
        section[names[-1]] = value
        section.lines[names[-1]] = f"--set {override}"
    else:
        raise ConfigError(f"--set {override}: {'.'.join(names[:-1])} is not a section")


def _enter(section: Any, name: str, where: str) -> Any:
    if isinstance(section, list):
        return section[_index(section, name, where)]
    if not isinstance(section, dict):
        raise ConfigError(f"--set {where}: no such section")
    if section.get(name) is None:
        section[name] = Mapping()
        section[name].lines = {}
    return section[name]


def _index(section: Sequence[Any], name: str, where: str) -> int:
    if not (name.isascii() and name.isdecimal() and int(name) < len(section)):
        raise ConfigError(f"--set {where}: {name} is not a number below {len(section)}")
    return int(name)


def _describe(
    error: ValidationError, settings: dict[str, Any], origin: str
) -> tuple[str, str | None]:
    """All that is wrong, a line each, and one hint: the first suggestion."""
    lines, hints = [], []
    for problem in _without_consequences(error):
        location = [part for part in problem["loc"] if _is_in_settings(part, problem)]
        where = ".".join(str(part) for part in location)
        text = f"{_place_of(settings, location, origin)}: "
        if problem["type"] == "extra_forbidden":
            text += f"{where} is not a setting"
            suggestion = _suggestion(location, settings)
            if suggestion:
                text += f"; did you mean {suggestion}?"
        elif problem["type"] == "missing":
            text += f"{where} is missing"
            hints.append(f"add {where}; tfm info --config en-it.yaml shows a complete config")
        else:
            reason = _PLAIN_REASONS.get(
                problem["type"], problem["msg"].removeprefix("Value error, ")
            )
            found = problem["input"]
            text += f"{where}: {reason}" if where else reason
            if not isinstance(found, dict | BaseModel):
                text += f", found {_shorten(found)}"
            elif overrides := _overrides_in(found):
                text += f" (with {', '.join(overrides)})"
        lines.append(text)
    shown = lines[:10] + ([f"... and {len(lines) - 10} more"] if len(lines) > 10 else [])
    return "\n".join(shown), hints[0] if hints else "docs/configuration.md lists every setting"


_UNION_TAGS = {"phrasebook", "sequences", "files", "hub"}


def _is_in_settings(part: int | str, problem: Any) -> bool:
    """Pydantic puts the chosen kind of data and the types of a union into the path; people did not."""
    location = problem["loc"]
    is_tag = (
        part in _UNION_TAGS and len(location) > 1 and location[0] == "data" and location[1] == part
    )
    is_type = isinstance(part, str) and ("[" in part or part in ("int", "str", "float", "bool"))
    return not (is_tag or is_type)


def _place_of(settings: Any, location: Sequence[int | str], origin: str) -> str:
    """The line of the file where a setting stands, or the override that set it."""
    place = origin
    for part in location:
        if isinstance(settings, Mapping) and part in settings.lines:
            line = settings.lines[str(part)]
            place = f"{origin}:{line}" if isinstance(line, int) else line
        try:
            settings = settings[part]
        except (KeyError, IndexError, TypeError):
            break
    return place


def _overrides_in(section: Any) -> list[str]:
    lines = section.lines.values() if isinstance(section, Mapping) else ()
    return [line for line in lines if isinstance(line, str)]


def _without_consequences(error: ValidationError) -> list[Any]:
    """A list whose items are wrong is called too short as well: that is left out."""
    problems = error.errors()
    return [
        problem
        for problem in problems
        if problem["type"] != "too_short"
        or not any(
            other["loc"][: len(problem["loc"])] == problem["loc"] and other is not problem
            for other in problems
        )
    ]


_PLAIN_REASONS = {
    "string_pattern_mismatch": "only letters, digits, '.', '_' and '-', and a letter or digit first",
    "model_type": "a section of settings is expected",
    "dict_type": "a section of settings is expected",
    "model_attributes_type": "a section of settings is expected",
}


def _suggestion(location: Sequence[int | str], settings: dict[str, Any]) -> str | None:
    """The nearest setting of the same section, or else one of that name elsewhere."""
    *parents, name = (str(part) for part in location)
    known = list(setting_paths(settings.get("data")))
    same_section = [path for path in known if path.split(".")[:-1] == parents]
    close = difflib.get_close_matches(".".join([*parents, name]), same_section, n=1, cutoff=0.75)
    elsewhere = [path for path in known if path.split(".")[-1] == name]
    return next(iter([*close, *elsewhere]), None)


def setting_paths(data: Any = None) -> Iterable[str]:
    """Every setting as a dotted path; those of `data` for the source that it names."""
    kinds = {"sequences": SequencesData, "files": FilesData, "hub": HubData}
    source = data.get("source") if isinstance(data, dict) else None
    chosen = kinds.get(source, PhrasebookData) if isinstance(source, str) else PhrasebookData
    for name, field in Config.model_fields.items():
        section = chosen if name == "data" else field.annotation
        yield from _paths(name, section)


def _paths(prefix: str, annotation: Any) -> Iterable[str]:
    yield prefix
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield from _paths(f"{prefix}.{name}", field.annotation)


def _kind(value: Any) -> str:
    return (
        "nothing"
        if value is None
        else {"list": "a list", "str": "text"}.get(type(value).__name__, repr(value))
    )


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
