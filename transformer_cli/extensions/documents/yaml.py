"""YAML: strings are translated; keys, comments, anchors, numbers and the layout stay byte for byte."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import yaml

from transformer_cli.config.data import Direction
from transformer_cli.config.loading import yaml_problem
from transformer_cli.extensions.documents.character_encoding import decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.repeated_keys import RepeatedKeys
from transformer_cli.extensions.documents.segments import (
    Edit,
    LineNumbers,
    Slot,
    SplicedDocument,
    TranslatedSegment,
)
from transformer_cli.extensions.documents.strings import (
    Path,
    is_translated,
    language_in_place_of,
    reads_apostrophes_as_quotes,
    require_chosen,
    string_of,
    tagged_segment,
    with_apostrophes_of,
)
from transformer_cli.process.errors import DataError

_STRING = "tag:yaml.org,2002:str"
_BLOCKS = ("|", ">")
# An anchor and a tag before a value: &name !!str
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


class _Scalar(NamedTuple):
    """A string that is no key."""

    event: Any
    """The event of the parser."""
    path: Path
    is_in_flow: bool
    """Whether it stands in [ ] or { }."""


def read_yaml(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A YAML file, also with several documents."""
    content = decoded(data, given=options.encoding)
    text = content.text
    slots = []
    keys: list[Any] = []
    repeated = RepeatedKeys()
    try:
        scalars = list(_scalars(text, options, keys, repeated))
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
    ) as error:  # the latter: a number of too many digits
        raise _invalid(text, error) from error
    repeated.warn(text, options)
    quotes = reads_apostrophes_as_quotes([scalar.event.value for scalar in scalars])
    for scalar in scalars:
        event = scalar.event
        if is_translated(event.value, scalar.path, options.values):
            start, end = event.start_mark.index, event.end_mark.index
            if event.anchor is not None or event.tag is not None:
                properties = _PROPERTIES.match(text, start, end)
                start = properties.end() if properties else start
            segment = options.watch.counted(tagged_segment(event.value, _line(event), quotes=quotes))
            render = partial(_written, scalar, text[start:end], quotes=quotes)
            slots.append(Slot(start, end, segment, render))
    require_chosen(options.values, has_values=bool(slots))
    is_mapping = all(isinstance(key, str) for scalar in scalars for key in scalar.path[1:2] or (0,))
    has_language = len({key.value for key in keys}) == 1 and is_mapping and slots  # a key may be there twice
    edits = [_language_key(text, key) for key in keys] if has_language else []
    return SplicedDocument(content, tuple(slots), tuple(edits))


def _language_key(text: str, key: Any) -> Edit:
    start, end = key.start_mark.index, key.end_mark.index
    properties = _PROPERTIES.match(text, start, end)
    start = properties.end() if properties else start

    def written(languages: Direction) -> str:
        language = language_in_place_of(key.value, languages)
        if language is None:
            return text[start:end]
        is_plain = key.style is None and _tag_of_plain(language) == _STRING  # "no" is a truth value
        return language if is_plain else f'"{language}"'

    return Edit(start, end, written)


def _invalid(text: str, error: Exception) -> DataError:
    if isinstance(error, yaml.reader.ReaderError):
        line = LineNumbers(text).number_at(error.position)
        character = int(error.character) if isinstance(error.character, int) else 0
        return DataError(
            f"line {line}: no valid YAML: it has the character U+{character:04X}, which YAML allows only as an escape",
            hint=f'take it out, or write it in double quotation marks as "\\u{character:04x}"',
        )
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}: " if mark else ""
    problem, hint = yaml_problem(error, text) if isinstance(error, yaml.MarkedYAMLError) else (str(error), None)
    return DataError(f"{place}no valid YAML: {problem}", hint=hint)


def _scalars(text: str, options: ReadingOptions, keys: list[Any], repeated: RepeatedKeys) -> Iterator[_Scalar]:
    """The strings of a YAML text that are no keys, in order.

    Args:
        keys: gets the events of the outermost keys.
        repeated: gets all keys.
    """
    # For each open mapping or list: the key or place of its present value, and whether it is in flow style.
    path: list[str | int | None] = []
    flows: list[bool] = []
    events: Any = yaml.parse(text, Loader=yaml.SafeLoader)
    for event in options.watch.over(events):
        if isinstance(event, yaml.DocumentStartEvent):
            path, flows = [], []
        elif isinstance(event, yaml.CollectionEndEvent):
            path.pop()
            flows.pop()
            repeated.end_mapping()
            _finish(path)
        elif isinstance(event, yaml.CollectionStartEvent):
            _begin_value(path)
            path.append(None if isinstance(event, yaml.MappingStartEvent) else 0)
            repeated.begin_mapping()
            flows.append(bool(event.flow_style))
            options.limits.check_depth(len(path), _line(event))
        elif isinstance(event, yaml.NodeEvent):
            is_key = bool(path) and path[-1] is None
            is_scalar = isinstance(event, yaml.ScalarEvent)
            if is_key:
                path[-1] = getattr(event, "value", "")
                if isinstance(event, yaml.ScalarEvent) and event.start_mark is not None:
                    repeated.add(event.value, event.start_mark.index)
                if len(path) == 1 and isinstance(event, yaml.ScalarEvent) and not event.tag:
                    keys.append(event)
                continue
            if is_scalar and _is_string(event):
                names = tuple("" if key is None else key for key in path)
                yield _Scalar(event, names, any(flows))
            _finish(path)


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def _begin_value(path: list[str | int | None]) -> None:
    """A mapping or list as a key has no name."""
    if path and path[-1] is None:
        path[-1] = ""


def _finish(path: list[str | int | None]) -> None:
    """After a value: a mapping waits for a key, a list goes on."""
    if path:
        last = path[-1]
        path[-1] = last + 1 if isinstance(last, int) else None


def _is_string(event: Any) -> bool:
    if event.tag is not None:
        return event.tag in ("!", _STRING)
    if not event.implicit[0]:
        return True  # in quotation marks
    return _tag_of_plain(event.value) == _STRING


def _tag_of_plain(value: str) -> str:
    resolver: Any = yaml.SafeLoader("")
    return str(resolver.resolve(yaml.ScalarNode, value, (True, False)))


def _written(scalar: _Scalar, raw: str, translation: TranslatedSegment, *, quotes: bool) -> str:
    """A string in the style of its source, if it can have it; else in double quotation marks."""
    text, event = string_of(translation), scalar.event
    text = with_apostrophes_of(event.value, text) if quotes else text
    if event.style in _BLOCKS:
        return _block(text, raw, event)
    if event.style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    if event.style is None and _is_plain(text, scalar.is_in_flow):
        return text
    return _quoted(text)


def _block(text: str, raw: str, event: Any) -> str:
    """A literal block; also for a folded one, in which line breaks would mean something else."""
    end_of_line = "\r\n" if "\r\n" in raw else "\n"
    header, _, body = raw.replace("\r\n", "\n").partition("\n")
    first_raw = next(line for line in body.split("\n") if line.strip())
    first = next(line for line in event.value.split("\n") if line.strip())
    indent = " " * (_num_spaces(first_raw) - _num_spaces(first))
    end = raw[len(raw.rstrip()) :]
    lines = [indent + line if line.strip() else "" for line in text.rstrip("\n").split("\n")]
    return end_of_line.join([header.replace(">", "|", 1), *lines]) + end


def _num_spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_plain(text: str, is_in_flow: bool) -> bool:
    """Whether a text without quotation marks is read as this text."""
    if "\n" in text:
        return False
    try:
        events = list(yaml.parse(f"[{text}]" if is_in_flow else f"k: {text}\n", yaml.SafeLoader))
    except yaml.YAMLError:
        return False
    scalars = [event for event in events if isinstance(event, yaml.ScalarEvent)]
    is_one = len(events) == (7 if is_in_flow else 8) and len(scalars) == (1 if is_in_flow else 2)
    return is_one and scalars[-1].value == text and scalars[-1].style is None and _is_string(scalars[-1])


def _quoted(text: str) -> str:
    """A string in double quotation marks; signs that YAML does not take as they are become codes."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
