"""Messages for invalid settings: the place, the problem, and the setting that was probably meant."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import UnionType
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from transformer_cli.config import other_programs
from transformer_cli.config.data import LANGUAGE_PATTERN, TAG_PATTERN, FilesData, HubData, PhrasebookData, SequencesData
from transformer_cli.config.schema import PARAMETER_PATTERN, RUN_NAME_PATTERN, Config
from transformer_cli.process.errors import ConfigError
from transformer_cli.process.messages import shortened

Location = tuple[int | str, ...]

_SOURCES: dict[str, type[BaseModel]] = {
    "phrasebook": PhrasebookData,
    "sequences": SequencesData,
    "files": FilesData,
    "hub": HubData,
}
_PLAIN_REASONS = {
    "model_type": "a section of settings is expected",
    "dict_type": "a section of settings is expected",
    "model_attributes_type": "a section of settings is expected",
    "tuple_type": "a list is expected",
    "bool_type": "true or false is expected",
    "int_type": "a whole number is expected, in digits, such as 1000",
    "float_type": "a number is expected",
    "string_type": "text is expected",
    "too_short": "at least one item is expected",
    "union_tag_invalid": f"the sources are {', '.join(_SOURCES)}",
}
_EXPECTED = " is expected"
_BOUNDS = {
    "greater_than_equal": "at least {ge} is expected",
    "greater_than": "more than {gt} is expected",
    "less_than_equal": "at most {le} is expected",
    "less_than": "less than {lt} is expected",
    "literal_error": "{expected}" + _EXPECTED,
    "finite_number": "a finite number is expected",
}
"""By the kind of an error of pydantic, whose own words speak of an input."""
_PATTERNS = {
    RUN_NAME_PATTERN: "at most 100 letters, digits, '.', '_' and '-' are expected; the first one is a letter or a digit",
    LANGUAGE_PATTERN: "the code of a language is expected, such as en or pt-BR",
    TAG_PATTERN: "a tag in angle brackets is expected, such as <BT>: a letter, then letters, digits, '_' and '-'",
    PARAMETER_PATTERN: "the name of a parameter is expected, or its beginning, such as encoder.layers.0: letters, digits, '.' and '_'",
}


_OFF_WITH_NULL = {
    "training.average_last",
    "training.bpe_dropout",
    "training.clip_norm",
    "training.ema_decay",
    "training.guided_alignment",
    "training.max_minutes",
    "training.patience",
    "training.r_drop",
    "training.unigram_alpha",
    "training.word_dropout",
    "data.cleaning.max_characters",
    "data.cleaning.max_length_ratio",
    "data.cleaning.max_words",
    "data.cleaning.min_words",
    "decoding.no_repeat_ngram_size",
}
"""Settings that null turns off; in other programs, 0 does."""
_OTHER_PROGRAMS = {
    "testing": "JoeyNMT",
    "joeynmt_version": "JoeyNMT",
    "src_vocab": "OpenNMT",
    "save_model": "OpenNMT",
    "train-sets": "Marian",
    "dim-vocabs": "Marian",
    "criterion": "fairseq",
    "prepared_data": "Sockeye",
}
"""Settings at the top of the configs of other programs."""


class _Problem(NamedTuple):
    location: Location
    kind: str
    reason: str
    found: Any
    hint: str | None


def invalid_settings_error(error: ValidationError, settings: dict[str, Any], origin: str) -> ConfigError:
    """An error whose message has one line per invalid setting."""
    lines, hint = [], None
    for problem in _problems(error, settings):
        hint = hint or problem.hint
        where = ".".join(map(str, problem.location))
        text = f"{_place_of(settings, problem.location, origin)}: "
        if problem.kind == "extra_forbidden":
            text += _unknown(problem.location, settings)
        elif problem.kind == "missing" and isinstance(problem.location[-1], int):
            *sections, index = map(str, problem.location)
            text += (
                f"{'.'.join(sections)}: number {int(index) + 1} of the list is missing, found {_shorten(problem.found)}"
            )
        elif problem.kind == "missing":
            text += f"{where} is missing"
            hint = hint or f"add {where}; tfm info --config en-it.yaml shows a complete config"
        else:
            text += f"{where}: {problem.reason}" if where else problem.reason
            if not isinstance(problem.found, dict | BaseModel):
                text += f", found {_shorten(problem.found)}"
            elif overrides := _overrides_behind(problem.reason, problem.found):
                text += f" (with {', '.join(overrides)})"
            hint = hint or _other_value(where, problem)
        lines.append(text)
    shown = lines[:10] + ([f"... and {len(lines) - 10} more"] if len(lines) > 10 else [])
    for name, program in _OTHER_PROGRAMS.items():
        if name in settings:
            hint = f"this looks like a config of {program}: docs/from_other_programs.md says how its settings are called here"
            break
    return ConfigError("\n".join(shown), hint=hint)


def _other_value(where: str, problem: _Problem) -> str | None:
    """A hint: the value that another program calls so, else the one of several words that is spelled nearly so."""
    if where in _OFF_WITH_NULL and problem.found in (0, "0"):
        return f"null turns it off: {where}=null"
    found = str(problem.found)
    if problem.kind == "float_type" and re.fullmatch(r"[+-]?\d+,\d+", found):
        return f"a point stands before the decimals: {where}={found.replace(',', '.')}"
    meant = value_called(where, found)
    if meant == found:
        words = re.findall(r"'([^']+)'", problem.reason) if problem.kind == "literal_error" else []
        meant = next(iter(difflib.get_close_matches(found.lower(), words, n=1, cutoff=0.7)), "")
    return f"did you mean {where}={meant}?" if meant else None


def _unknown(location: Location, settings: dict[str, Any]) -> str:
    """What is wrong with a name that is not a setting, and which one was probably meant."""
    where, known = ".".join(map(str, location)), list(setting_paths(settings.get("data")))
    # Only --set joins the names of sections by dots; a file nests them.
    if "." in str(location[-1]) and where in known:
        *sections, name = where.split(".")
        return f"{where} as one name is not a setting; in a file, write {name} below {'.'.join(sections)}:"
    # Settings of data are judged only if their source is known.
    if location[0] == "data" and (owners := _sources_with(where)):
        source = settings["data"]["source"]
        return f"{where} is a setting of data.source: {' or '.join(owners)}, but data.source is {source}"
    suggestion = _size_of_batches(location, settings) or similar_setting(
        location, [*known, *_corpus_settings(location, settings)]
    )
    return f"{where} is not a setting" + (f"; did you mean {suggestion}?" if suggestion else "")


def _size_of_batches(location: Location, settings: dict[str, Any]) -> str | None:
    """The setting for the size of a batch in JoeyNMT and OpenNMT-py, whose batch_type says what batch_size counts; None: batch_type does not stand beside it."""
    section = settings.get(str(location[0])) if len(location) == 2 else settings
    kind = section.get("batch_type") if isinstance(section, dict) else None
    if location[-1] not in ("batch_size", "batch_type") or not isinstance(kind, str):
        return None
    return f"training.batch_{'tokens' if kind.startswith('token') else 'sentences'}"


def _corpus_settings(location: Location, settings: dict[str, Any]) -> list[str]:
    """The settings of the corpus at this place; none for a place outside of data.corpora."""
    if len(location) < 4 or location[:2] != ("data", "corpora"):
        return []
    section = _SOURCES[settings["data"]["source"]]
    corpus = get_args(section.model_fields["corpora"].annotation)[0]
    return [f"data.corpora.{location[2]}.{name}" for name in corpus.model_fields]


def _sources_with(path: str) -> list[str]:
    """The data sources that have this setting."""
    return [name for name, section in _SOURCES.items() if path in set(_paths("data", section))]


def _problems(error: ValidationError, settings: Any) -> list[_Problem]:
    """One problem per setting: pydantic also calls a list with bad items too short, which is left out."""
    problems: dict[Location, _Problem] = {}
    for problem in (_in_plain_words(one, settings) for one in error.errors()):
        known = problems.get(problem.location)
        # For a setting that may be a number or a word, tell both.
        if known and known.kind.endswith("_type") and problem.kind == "literal_error":
            problems[problem.location] = problem._replace(
                reason=f"{known.reason}, or {problem.reason.removesuffix(_EXPECTED)}"
            )
        # For a setting that may be a number or text, keep the reason that is not about the type.
        elif known is None or (known.kind.endswith("_type") and not problem.kind.endswith("_type")):
            problems[problem.location] = problem
    return [
        problem
        for problem in problems.values()
        if problem.kind != "too_short"
        or not any(
            other[: len(problem.location)] == problem.location and other != problem.location for other in problems
        )
    ]


def _in_plain_words(error: Mapping[str, Any], settings: Any) -> _Problem:
    kind, found = error["type"], error["input"]
    location = _location_in(settings, error["loc"], is_missing=kind == "missing")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        location = (*location, "source")
        is_missing = kind == "union_tag_not_found" or not isinstance(found, dict)
        kind = "missing" if is_missing else kind
        found = found.get("source") if isinstance(found, dict) else found
    hint = getattr(error.get("ctx", {}).get("error"), "hint", None)
    return _Problem(location, kind, plain_reason({**error, "type": kind}), found, hint)


def plain_reason(error: Mapping[str, Any]) -> str:
    """What is expected in place of a value, in the words of the other messages; an error of pydantic has its own."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        whole = {name: int(value) for name, value in context.items() if isinstance(value, float) and value.is_integer()}
        return _BOUNDS[kind].format_map({**context, **whole})
    reason = _PLAIN_REASONS.get(kind, error["msg"].removeprefix("Value error, "))
    return _PATTERNS.get(context.get("pattern"), reason)


def _location_in(settings: Any, path: Location, *, is_missing: bool) -> Location:
    """The place of a setting without what pydantic adds: the data source, and the types of a union."""
    location: list[int | str] = []
    for index, part in enumerate(path):
        is_source = index == 1 and path[0] == "data" and part in _SOURCES
        is_list = isinstance(settings, Sequence) and not isinstance(settings, str)
        is_item = is_list and isinstance(part, int) and part < len(settings)
        if not is_source and (is_item or (isinstance(settings, Mapping) and part in settings)):
            settings = settings[part]
            location.append(part)
    return (*location, path[-1]) if is_missing else tuple(location)


def _place_of(settings: Any, location: Sequence[int | str], origin: str) -> str:
    """The file and line of a setting, or the override that set it."""
    place, is_override = origin, False
    for part in location:
        if part in getattr(settings, "lines", {}):
            line = settings.lines[str(part)]
            if not isinstance(line, int):
                place, is_override = line, True
            elif not is_override:  # else it is a line of the text in the override
                place = f"{origin}:{line}"
        try:
            settings = settings[part]
        except (KeyError, IndexError, TypeError):
            break
    return place


def _overrides_behind(reason: str, section: Any) -> list[str]:
    """The overrides of settings in a section, or below it, whose names occur in the reason."""
    if not hasattr(section, "lines"):  # only the mappings that `loading.parse_yaml` makes have them
        return []
    words = re.findall(r"\w+", reason)
    # A section that no file has seems to come from the override that was its first.
    own = [
        line
        for name, line in section.lines.items()
        if isinstance(line, str) and name in words and not isinstance(section.get(name), dict)
    ]
    below = (_overrides_behind(reason, value) for value in section.values())
    return [*own, *chain.from_iterable(below)]


def similar_setting(location: Sequence[int | str], known: Sequence[str]) -> str | None:
    """The setting that another program calls so, else one of this name in another section, else the most similar one of its own section.

    Args:
        location: the parts of a name that is not a setting.
        known: the settings that may be meant.
    """
    *parents, name = map(str, location)
    meant = (setting_elsewhere_called(name) or "").partition("=")[0]
    same_section = [path for path in known if path.split(".")[:-1] == parents]
    # The section, which is the same, would make any two names alike.
    begin = "".join(f"{parent}." for parent in parents)
    close = difflib.get_close_matches(name, [path.removeprefix(begin) for path in same_section], n=1, cutoff=0.65)
    close = [f"{begin}{one}" for one in close]
    elsewhere = [path for path in known if path.split(".")[-1] == name]
    equivalents = [path for path in known if path == meant]
    # A section of this name, such as data, is not what a setting is mistaken for.
    sections = {path.rpartition(".")[0] for path in known}
    settings = [path for path in elsewhere if path not in sections]
    return next(iter([*equivalents, *settings, *close, *elsewhere]), None)


def setting_called(name: str) -> str | None:
    """The setting that a name of an option means, such as training.max_epochs for epochs, max-epochs or its full name.

    Where the name is a flag elsewhere, a value follows: runtime.device=cuda for gpu.
    """
    settings = {path for source in _SOURCES for path in setting_paths({"source": source})}
    sections = {path.rpartition(".")[0] for path in settings}
    spelled = name.lower().replace("-", "_")
    if spelled in settings - sections:
        return spelled
    named = [path for path in settings - sections if path.rpartition(".")[2] == spelled]
    return named[0] if len(named) == 1 else setting_elsewhere_called(name)


def value_called(setting: str, value: str) -> str:
    """The value of a setting that a value of another program means, such as cuda for gpu; else the value itself."""
    meant = other_programs.meant_by(re.sub(r"[-_]", "", value.lower()), other_programs.SETTINGS)
    return next((one.partition("=")[2] for one in meant if one.startswith(f"{setting}=")), value)


def setting_paths(data: Any = None) -> Iterable[str]:
    """Dotted names of all settings; `data` has those of its source."""
    source = data.get("source") if isinstance(data, dict) else None
    chosen = _SOURCES.get(source, PhrasebookData) if isinstance(source, str) else PhrasebookData
    for name, field in Config.model_fields.items():
        section = chosen if name == "data" else field.annotation
        yield from _paths(name, section)


def _paths(prefix: str, annotation: Any) -> Iterable[str]:
    yield prefix
    # A section that may be absent is a union with None.
    for kind in get_args(annotation) if isinstance(annotation, UnionType) else (annotation,):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for name, field in kind.model_fields.items():
                yield from _paths(f"{prefix}.{name}", field.annotation)


def _shorten(value: Any) -> str:
    # As YAML writes it, where Python writes None, True or False.
    is_word = value is None or isinstance(value, bool)
    return shortened(json.dumps(value) if is_word else repr(value), 60)


def setting_elsewhere_called(name: str) -> str | None:
    """The setting that a name of another program means, such as training.max_epochs for epochs.

    Args:
        name: without a section; dashes, underscores and capitals make no difference.
    """
    plain = re.sub(r"[-_]", "", name.lower())
    return next(iter(other_programs.meant_by(plain, other_programs.SETTINGS)), None)
