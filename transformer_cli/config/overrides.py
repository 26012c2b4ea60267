"""Overrides such as `training.max_steps=100`: reading them, and putting them into a config's plain values."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_cli.config.model import PRESETS
from transformer_cli.config.refusal import setting_paths
from transformer_cli.config.yaml_reader import MAX_DEPTH, Mapping, parse_yaml
from transformer_cli.process.errors import ConfigError
from transformer_cli.process.escaping import shortened

_PART = re.compile(r"([^\[\]]*)((?:\[[^\[\]]*\])*)")  # a name, or a name with indices in brackets
_NULL = re.compile(r"(?:null|~)(?:\s|$)")


class _Name(NamedTuple):
    """One part of the name of a setting: a name between dots, or an index in brackets."""

    text: str
    is_in_brackets: bool


class _Override(NamedTuple):
    """An override: its text, the parts of the setting's name, and the value."""

    text: str
    names: tuple[_Name, ...]
    value: Any

    def path(self, length: int | None = None) -> str:
        """The name of the setting with dots, or of the section that its first `length` parts name."""
        return ".".join(name.text for name in self.names[:length])

    def refusal(self, problem: str, *, hint: str | None = None) -> ConfigError:
        return ConfigError(f"--set {shortened(self.text, 200)}: {problem}", hint=hint)


def overridden_setting(override: str) -> str:
    """The name of the setting that an override names, with dots.

    Raises:
        ConfigError: the override is not of the form `section.field=value`.
    """
    return _parse(override).path()


def apply_override(settings: dict[str, Any], override: str) -> None:
    """Store the value of an override under its name in the plain values of a config.

    Raises:
        ConfigError: the override is not of the form `section.field=value`, or it leads to no section.
    """
    parsed = _parse(override)
    if parsed.path() == "model.preset":
        _require_effect_of_preset(settings, parsed)
    *parents, last = parsed.names
    section: Any = settings
    for depth, name in enumerate(parents):
        section = _enter(section, name, depth, parsed)
    if isinstance(section, list):
        section[_index(section, last, parsed)] = parsed.value
        return
    _require_section(section, last, len(parents), parsed, settings)
    section[last.text] = parsed.value
    section.lines[last.text] = f"--set {override}"


def _parse(override: str) -> _Override:
    key, equals, text = override.partition("=")
    shown = _Override(override, (), None)
    parts = [_PART.fullmatch(part) for part in key.strip().split(".")]
    if None in parts:
        raise shown.refusal(
            "a bracket is missing, or is in the wrong place",
            hint="name an item of a list like this: --set data.corpora[0].weight=2",
        )
    names = [name for part in parts if part for name in _names(part)]
    if not equals or not names or not all(name.text for name in names):
        raise shown.refusal(
            "not of the form section.field=value", hint="for example --set training.max_steps=100"
        )
    if len(names) > MAX_DEPTH:
        raise shown.refusal(f"nested deeper than {MAX_DEPTH} levels")
    try:
        value = parse_yaml(text, "")
    except ConfigError as error:
        problem = re.sub(r"^(:\d+)?: ", "", error.message)  # an override has no line number
        raise shown.refusal(problem) from error
    if value is None and not _NULL.match(text.strip()):
        raise shown.refusal(
            "no value after the =",
            hint=f"write a value after the =; --set {key.strip()}=null removes a setting that may be absent",
        )
    return _Override(override, tuple(names), value)


def _names(part: re.Match[str]) -> list[_Name]:
    name, indices = part.groups()
    in_brackets = [_Name(index, True) for index in re.findall(r"\[(.*?)\]", indices)]
    return [*([_Name(name, False)] if name or not in_brackets else []), *in_brackets]


def _enter(section: Any, name: _Name, depth: int, override: _Override) -> Any:
    """The value of a name in a section; a section that is missing is made."""
    if isinstance(section, list):
        return section[_index(section, name, override)]
    _require_section(section, name, depth, override, section)
    if section.get(name.text) is None:
        section[name.text] = Mapping()
        section.lines[name.text] = f"--set {override.text}"
    return section[name.text]


def _require_section(
    section: Any, name: _Name, depth: int, override: _Override, settings: Any
) -> None:
    where = override.path(depth)
    if name.is_in_brackets:
        data = settings.get("data") if isinstance(settings, dict) else None
        path = override.path()
        suggestion = f"; did you mean {path}?" if path in set(setting_paths(data)) else ""
        raise override.refusal(f"{where or 'a config'} is not a list{suggestion}")
    if not isinstance(section, Mapping):
        raise override.refusal(f"{where} is not a section")


def _index(section: Sequence[Any], name: _Name, override: _Override) -> int:
    shown = shortened(name.text, 20)
    is_number = name.text.isascii() and name.text.isdecimal() and len(name.text) < 10
    if not is_number or int(name.text) >= len(section):
        items = "1 item" if len(section) == 1 else f"{len(section)} items"
        raise override.refusal(
            f"{shown} is not an index of a list with {items}",
            hint=f"the first item has the index 0, the last one {len(section) - 1}"
            if section
            else "replace the whole list",
        )
    return int(name.text)


def _require_effect_of_preset(settings: dict[str, Any], override: _Override) -> None:
    """Refuse a preset if the config gives every number that it would fill in."""
    model = settings.get("model")
    numbers = PRESETS.get(override.value, {}) if isinstance(override.value, str) else {}
    if numbers and isinstance(model, Mapping) and all(name in model for name in numbers):
        given = ", ".join(f"model.{name}" for name in numbers)
        raise override.refusal(
            f"this has no effect, because the config gives every number of a preset: {given}",
            hint="replace these numbers instead, or remove them from the config",
        )
