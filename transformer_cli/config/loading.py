"""Reads a config with overrides and checks, from a safe part of YAML, and writes it; finds its file by path or name; which settings `--set` can change for a trained model."""

import difflib
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import yaml
from pydantic import BaseModel, ValidationError

from transformer_cli.config.refusal import invalid_settings_error, setting_paths, similar_setting
from transformer_cli.config.schema import PRESETS, Config
from transformer_cli.process.errors import ConfigError, MissingInputError
from transformer_cli.process.messages import for_shell, shortened

MAX_CONFIG_BYTES = 1_000_000


def load_config(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Config:
    """Read a config file, apply overrides and check every setting.

    Args:
        path: a file, or else the name of a config shipped with the package; the ending may be left out.
        overrides: texts such as `training.max_steps=100` or `seed=3`; the value is YAML.

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
    texts = [overrides] if isinstance(overrides, str) else list(overrides)
    if isinstance(overrides, dict) or not all(isinstance(one, str) for one in texts):
        raise _no_texts(overrides)
    for override in texts:
        apply_override(settings, override)
    return check_settings(settings, origin)


def _no_texts(overrides: Any) -> ConfigError:
    """The error for overrides of a Python program that are no texts, such as the mapping {"seed": 3}."""
    given = overrides if isinstance(overrides, dict) else {}
    meant = [f"{name}={json.dumps(value)}" for name, value in given.items() if isinstance(value, int | float | str)]
    return ConfigError(
        f"overrides: a list of texts such as 'section.field=value' is expected, found {shortened(repr(overrides), 60)}",
        hint=f"write {json.dumps(meant or ['seed=3', 'training.max_steps=100'])}",
    )


def load_stored_config(path: str | os.PathLike[str]) -> Config:
    """The config that a run has written; see `stored_config`."""
    return stored_config(_read_text(Path(path)), str(path))


def stored_config(text: str, origin: str) -> Config:
    """The config that a run has written, with what runs of earlier versions did where a newer setting is missing.

    Args:
        text: YAML.
        origin: what messages call the file.

    Raises:
        ConfigError: the text is not YAML, or a setting is not allowed.
    """
    settings = parse_yaml(text, origin, is_written=True)
    if not isinstance(settings, dict):
        raise ConfigError(f"{origin}: a config is a mapping of sections, found {_kind(settings)}")
    data = settings.get("data")
    cleaning = data.get("cleaning", {}) if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(cleaning, dict):
        older = {"normalize_invisible": None, "join_white_space": False} | cleaning
        settings = settings | {"data": data | {"cleaning": older}}
    return check_settings(settings, origin)


def check_settings(settings: dict[str, Any], origin: str, *, is_trained: bool = False) -> Config:
    """Check plain values; messages name `origin` as the file.

    Args:
        is_trained: rules that matter only while a model is trained are not checked.
    """
    try:
        return Config.model_validate(settings, context={"is_trained": is_trained})
    except ValidationError as error:
        raise invalid_settings_error(error, settings, origin) from error


def override_settings(config: Config, overrides: Iterable[str]) -> Config:
    """Replace settings of the config of a trained model.

    Raises:
        ConfigError: the value of an override is not allowed.
    """
    settings = _as_read(config, config.model_dump(mode="json"))
    for override in overrides:
        apply_override(settings, override)
    return check_settings(settings, config.name, is_trained=True)


def to_yaml(config: Config) -> str:
    """The config as YAML, with every default written out; settings that are absent stay absent."""
    return yaml.safe_dump(_as_read(config, config.model_dump(mode="json")), sort_keys=False, allow_unicode=True)


def _as_read(section: BaseModel, values: dict[str, Any]) -> "Mapping":
    """The values of a section as `parse_yaml` returns them; None is left out where it is the default."""
    written = Mapping()
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            written[name] = _as_read(value, values[name])
        elif isinstance(value, tuple):
            items = zip(value, values[name], strict=True)
            written[name] = [_as_read(item, each) if isinstance(item, BaseModel) else each for item, each in items]
        elif value is not None or field.default is not None:
            written[name] = values[name]
    return written


def _read_text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(f"{file}: more than {MAX_CONFIG_BYTES:,} bytes, the limit for a config")
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise MissingInputError(f"{file}: cannot be read: {error.strerror}") from error


def _kind(value: Any) -> str:
    words = {"NoneType": "nothing", "list": "a list", "str": "text"}
    return words.get(type(value).__name__, repr(value))


# The file of a config, found by its path, or by the name of a config that comes with the package.


_ENDINGS = (".yaml", ".yml")
_PACKAGE = Path(__file__).resolve().parents[1]
_SHIPPED = _PACKAGE / "configs"  # in an installed package
if not _SHIPPED.is_dir():
    _SHIPPED = _PACKAGE.parent / "configs"  # in a clone of the repository


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
        if file.suffix.lower() not in _ENDINGS:
            _refuse_corpus(file)
        return file
    if Path(path).is_dir():
        names = ", ".join(_configs_in(Path(path))[:8]) or "it holds none"
        raise MissingInputError(
            f"{path}: a folder, where a config file is expected", hint=f"give the path of a config in it: {names}"
        )
    if Path(path).exists():
        raise MissingInputError(
            f"{path}: a pipe or device; a config is read more than once", hint="write it to a file first"
        )
    raise MissingInputError(
        f"{path}: no such config: no file has this path, and no config that comes with tfm has this name",
        hint=_suggestion(Path(path), list(shipped)),
    )


def _refuse_corpus(file: Path) -> None:
    endings = [ending.lower() for ending in file.suffixes[-2:]]
    if set(endings) & {".tmx", ".xlf", ".xliff", ".zip"}:
        hint = f"tfm data import {for_shell(file)} --output corpus makes text files of it"
    elif set(endings) & {".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm"}:
        hint = f"tfm init {for_shell(file)} writes a config for it"
    else:
        return
    raise ConfigError(f"{file}: this is a corpus, where a config is expected", hint=hint)


def shipped_configs() -> dict[str, Path]:
    """The configs that come with the package: names for --config, and paths."""
    return {str(file.relative_to(_SHIPPED)): file for file in sorted(_SHIPPED.rglob("*.yaml"))}


_MOST_NEAREST = 3


def _suggestion(path: Path, shipped: list[str]) -> str:
    """The nearest config beside the path that was asked for, else the nearest shipped ones, and how all are listed."""
    beside = _nearest(path.name, _configs_in(path.parent))
    if beside:
        return f"did you mean {for_shell(path.parent / beside[0])}?"
    nearest = _nearest(str(path), shipped) or _nearest(path.name, shipped)
    if nearest:
        return f"did you mean {nearest[0]}?"
    nearest = _nearest(path.name, shipped, least_similarity=0.0)
    return f"the nearest of those that come with tfm: {', '.join(nearest)}; all {len(shipped)} are in the folder {_SHIPPED}"


def _nearest(wanted: str, names: list[str], least_similarity: float = 0.6) -> list[str]:
    """The most similar names, the nearest first; the ending and the case of letters do not count."""
    by_stem = {name.removesuffix(Path(name).suffix).casefold(): name for name in reversed(names)}
    stem = wanted.removesuffix(Path(wanted).suffix).casefold()
    for sought in (stem, wanted.casefold()):
        close = difflib.get_close_matches(sought, by_stem, n=_MOST_NEAREST, cutoff=least_similarity)
        if close:
            return [by_stem[each] for each in close]
    return []


def _configs_in(folder: Path) -> list[str]:
    try:
        return sorted(file.name for file in folder.iterdir() if file.suffix.lower() in _ENDINGS)
    except (OSError, ValueError):
        return []


# Overrides such as `training.max_steps=100`.


_PART = re.compile(r"([^\[\]]*)((?:\[[^\[\]]*\])*)")  # a name, or a name with indices in brackets
_NULL = re.compile(r"(?:null|~)(?:\s|$)")


class _Name(NamedTuple):
    """One part of the name of a setting: a name between dots, or an index in brackets."""

    text: str
    is_in_brackets: bool


class _Override(NamedTuple):
    """An override: its text, the parts of the setting's name, its name with dots, and the value."""

    text: str
    names: tuple[_Name, ...]
    setting: str
    value: Any

    def refusal(self, problem: str, *, hint: str | None = None) -> ConfigError:
        return ConfigError(f"--set {shortened(self.text, 200)}: {problem}", hint=hint)


def apply_override(settings: dict[str, Any], override: str) -> None:
    """Store the value of an override under its name in the plain values of a config.

    Raises:
        ConfigError: the override is not of the form `section.field=value`, or it leads to no section.
    """
    parsed = _parse(override)
    if parsed.setting == "model.preset":
        _require_effect_of_preset(settings, parsed)
    *parents, last = parsed.names
    section: Any = settings
    for depth, name in enumerate(parents):
        if isinstance(section, list):
            section = section[_index(section, name, parsed)]
            continue
        if name.is_in_brackets or not isinstance(section, Mapping):
            raise _no_section(name, depth, parsed, section)
        if section.get(name.text) is None:  # a section that is missing is made
            section[name.text] = Mapping()
            section.lines[name.text] = f"--set {override}"
        section = section[name.text]
    if isinstance(section, list):
        section[_index(section, last, parsed)] = parsed.value
        return
    if last.is_in_brackets or not isinstance(section, Mapping):
        raise _no_section(last, len(parents), parsed, settings)
    section[last.text] = parsed.value
    section.lines[last.text] = f"--set {override}"


def _parse(override: str) -> _Override:
    key, equals, text = override.partition("=")
    shown = _Override(override, (), "", None)
    parts = [_PART.fullmatch(part) for part in key.strip().split(".")]
    if None in parts:
        raise shown.refusal(
            "a bracket is missing, or is in the wrong place",
            hint="name an item of a list like this: --set data.corpora[0].weight=2",
        )
    names: list[_Name] = []
    for part in filter(None, parts):
        in_brackets = [_Name(index, True) for index in re.findall(r"\[(.*?)\]", part[2])]
        if part[1] or not in_brackets:
            names.append(_Name(part[1], False))
        names += in_brackets
    if not equals or not names or not all(name.text for name in names):
        raise shown.refusal(
            "not of the form NAME=VALUE", hint="for example --set training.max_steps=100, or --set seed=3"
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
    return _Override(override, tuple(names), ".".join(name.text for name in names), value)


def _no_section(name: _Name, depth: int, override: _Override, settings: Any) -> ConfigError:
    """The error for what stands before a name, and is no section: a list is expected for an index, a section for another name."""
    where = ".".join(part.text for part in override.names[:depth])
    if not name.is_in_brackets:
        return override.refusal(f"{where} is not a section")
    data = settings.get("data") if isinstance(settings, dict) else None
    suggestion = f"; did you mean {override.setting}?" if override.setting in set(setting_paths(data)) else ""
    return override.refusal(f"{where or 'a config'} is not a list{suggestion}")


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
_TRANSLATING: tuple[Command, ...] = ("translate", "serve", "validate", "validate --source")
_MEASURED: tuple[Command, ...] = (*_TRANSLATING, "benchmark --decode")
# What `--set` can change for a trained model: settings, or sections of them, and the commands on which they have
# an effect. For each setting the longest matching name counts. Settings without a match are for training only.
OVERRIDABLE: dict[str, tuple[Command, ...]] = {
    "decoding": (*_TRANSLATING, "explain", "benchmark --decode"),
    "decoding.engine": _TRANSLATING,
    "decoding.keep_layout": _MEASURED,
    "decoding.keep_text": _MEASURED,
    "decoding.repair": _MEASURED,
    "decoding.num_best": ("translate", "explain"),
    "decoding.batch_tokens": (*_TRANSLATING, "likelihood", "benchmark --decode"),
    "decoding.sampling": _TRANSLATING,
    "decoding.mbr": _TRANSLATING,
    "decoding.rescore": _TRANSLATING,
    "decoding.diversity": _TRANSLATING,
    "runtime.device": _ALL,
    "runtime.precision": _ALL,
    "runtime.threads": _ALL,
    "runtime.cuda_graphs": _MEASURED,
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
    setting = _parse(override).setting
    commands = commands_that_take(setting)
    if command in commands:
        return setting
    sections = [name for name in OVERRIDABLE if "." not in name and command in OVERRIDABLE[name]]
    single = [
        name for name, takers in OVERRIDABLE.items() if command in takers and name.partition(".")[0] not in sections
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


# A safe part of YAML: no aliases, no tags, no duplicate keys, and few implicit types.
#
# Only `true`, `false`, `null` (also `~` or nothing) and decimal numbers are special; all else is text. So
# `no` is the language code of Norwegian, `1e-4` and `.01` are numbers, `12:30` and `0777` are text.


MAX_DEPTH = 20


class Mapping(dict[str, Any]):
    """A mapping that knows the line of each key, or the override that set it; for messages."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int | str] = {}


yaml.SafeDumper.add_representer(Mapping, yaml.SafeDumper.represent_dict)


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _refusal("aliases (*name) are not allowed", event)
        if getattr(event, "anchor", None) is not None:
            raise _refusal("anchors (&name) are not allowed", event)
        if getattr(event, "tag", None) is not None:
            raise _refusal("tags (!name) are not allowed", event)
        self._depth = getattr(self, "_depth", 0) + 1
        if self._depth > MAX_DEPTH:
            raise _refusal(f"nested deeper than {MAX_DEPTH} levels", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_checked_mapping(self, node: yaml.MappingNode) -> Mapping:
        mapping = Mapping()
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _refusal(f"a key must be text, found {key!r}", key_node)
            if key in mapping:
                raise _refusal(f"{key} is given twice, first in line {mapping.lines[key]}", key_node)
            mapping[key] = self.construct_object(value_node, deep=True)
            mapping.lines[key] = key_node.start_mark.line + 1
        return mapping


_Loader.yaml_implicit_resolvers = {}
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_checked_mapping)
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


class _FastLoader(_Loader):
    """Takes its events from the parser in C: a stored config is read in a quarter of the time.

    It accepts texts that the parser in Python refuses, such as [true? , 1], and a machine may lack it. So it reads only what
    `to_yaml` has written, of which both make the same.
    """

    def __init__(self, text: str) -> None:
        super().__init__("")
        self._events: Any = yaml.cyaml.CParser(text)  # type: ignore[attr-defined]
        self.check_event = self._events.check_event  # type: ignore[method-assign]
        self.peek_event = self._events.peek_event  # type: ignore[method-assign]
        self.get_event = self._events.get_event  # type: ignore[method-assign]


def _refusal(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def yaml_problem(error: yaml.MarkedYAMLError, text: str) -> tuple[str, str | None]:
    """What the parser has refused, in words for people, and what to do; None: nothing more is known."""
    problem, mark = error.problem or error.context or "", error.problem_mark
    if "\\t" in problem:
        return problem, "YAML takes no tabs here: indent with spaces"
    is_unexpected = problem.startswith(("expected <block end>", "expected '<document start>'"))
    is_second_colon = problem.startswith("mapping values are not allowed")
    if mark is None or not (is_unexpected or is_second_colon):
        return problem, None
    before = text[mark.index - mark.column : mark.index]
    if mark.line > 0 and not (before.strip() if is_unexpected else ": " in before):
        problem = "the indentation of this line does not fit the lines above it"
        return problem, "keys of one level begin in the same column; items of a list have a hyphen each"
    if is_unexpected and "<scalar>" not in problem:
        return problem, None
    hint = "a value with a colon or quotation marks inside stands in quotation marks of the other kind"
    return "a second colon in one line" if is_second_colon else "there is more behind the end of a value", hint


def parse_yaml(text: str, origin: str, *, is_written: bool = False) -> Any:
    """Parse YAML.

    Args:
        is_written: whether `to_yaml` has written the text, which can be read faster then.

    Raises:
        ConfigError: the text is not YAML, or uses a part of YAML that is refused.
    """
    # The parser in C sees tabs and marks of the byte order in another way, and its messages have other words. A question mark is
    # the beginning of a key where it stands alone.
    if is_written and yaml.__with_libyaml__ and text.isascii() and not {"\t", "?"} & {*text}:
        with suppress(yaml.YAMLError, RecursionError, ValueError, OverflowError):
            return _FastLoader(text).get_single_data()
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem, hint = yaml_problem(error, text)
        raise ConfigError(f"{origin}{line}: {problem}", hint=hint) from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise ConfigError(f"{origin}: not YAML: {error}") from error
