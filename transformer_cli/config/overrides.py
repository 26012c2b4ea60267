"""Overrides such as `training.max_steps=100`: reading them, putting them into a config's plain values, and which of them a trained model takes."""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from transformer_cli.config.model import PRESETS
from transformer_cli.config.refusal import setting_paths, similar_setting
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


# The settings that `--set` can change for a trained model, and the commands on which they have an effect.


Command = Literal[
    "translate",
    "serve",
    "validate",
    "validate --source",
    "next",
    "likelihood",
    "align",
    "explain",
    "benchmark --decode",
]
_ALL: tuple[Command, ...] = get_args(Command)
# What `--set` can change for a trained model: settings, or sections of them, and the commands on which they have
# an effect. For each setting the longest matching name counts. Settings without a match are for training only.
OVERRIDABLE: dict[str, tuple[Command, ...]] = {
    "decoding": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "explain",
        "benchmark --decode",
    ),
    "decoding.engine": ("translate", "serve", "validate", "validate --source"),
    "decoding.keep_layout": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "benchmark --decode",
    ),
    "decoding.keep_text": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "benchmark --decode",
    ),
    "decoding.num_best": ("translate", "explain"),
    "decoding.batch_tokens": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "likelihood",
        "benchmark --decode",
    ),
    "decoding.sampling": ("translate", "serve", "validate", "validate --source"),
    "decoding.mbr": ("translate", "serve", "validate", "validate --source"),
    "decoding.diversity": ("translate", "serve", "validate", "validate --source"),
    "runtime.device": _ALL,
    "runtime.precision": _ALL,
    "runtime.threads": _ALL,
    "data.root": ("validate", "benchmark --decode"),
    "validation.max_sentences": ("validate", "validate --source"),
    "validation.scores": ("validate", "validate --source"),
    "validation.num_samples": ("validate", "validate --source"),
    "validation.sequence_lengths": ("validate",),
}
# Settings of the validations during training, and the settings that replace them in `tfm validate`.
INSTEAD = {"validation.beam_size": "decoding.beam_size"}


def commands_that_take(setting: str) -> tuple[Command, ...]:
    """The commands on which an override of this setting has an effect; none for settings of the training."""
    known = [name for name in OVERRIDABLE if f"{setting}.".startswith(f"{name}.")]
    # A whole section is refused: the settings that it does not name would get their defaults.
    return OVERRIDABLE[max(known, key=len)] if known and "." in setting else ()


def overridable_setting(override: str, command: Command) -> str:
    """The name of the setting that an override such as decoding.beam_size=8 changes.

    Raises:
        ConfigError: it is no setting, a trained model cannot change it, or it has no effect on the command.
    """
    setting = overridden_setting(override)
    commands = commands_that_take(setting)
    if command in commands:
        return setting
    sections = [name for name in OVERRIDABLE if "." not in name and command in OVERRIDABLE[name]]
    single = [
        name
        for name, takers in OVERRIDABLE.items()
        if command in takers and name.partition(".")[0] not in sections
    ]
    taken = ", ".join([*(f"{section}.*" for section in sections), *single])
    hint = f"tfm {command} takes {taken}"
    if setting in INSTEAD:
        problem = "this setting is for the validations during training"
        if command in commands_that_take(INSTEAD[setting]):
            hint = f"tfm {command} takes {INSTEAD[setting]} instead"
    elif commands:
        problem = f"this setting has no effect on tfm {command}"
        others = [name for name in commands if not ("validate" in commands and " " in name)]
        *first, last = (f"tfm {name}" for name in others)
        listed = f"{', '.join(first)} and {last}" if first else last
        hint = f"it has one on {listed}; {hint}"
    else:
        problem = "this setting cannot be changed for a trained model"
        if setting not in {*setting_paths(), *setting_paths({"source": "files"})}:
            problem = "this is not a setting"
            known = [path for path in setting_paths() if command in commands_that_take(path)]
            meant = similar_setting(setting.split("."), known)
            hint = f"did you mean {meant}?" if meant else hint
    raise ConfigError(f"--set {override}: {problem}", hint=hint)
