"""The texts of Apple's apps: .strings, .stringsdict, and the string catalogs of Xcode (.xcstrings)."""

import copy
import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import DecodedText, decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.repeated_keys import RepeatedKeys
from transformer_cli.extensions.documents.segments import (
    Change,
    LineNumbers,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    spliced,
)
from transformer_cli.extensions.documents.strings import (
    PluralsToComplete,
    holds_text,
    slot_of_element,
    string_of,
    tagged_segment,
    with_placeholders,
)
from transformer_cli.extensions.documents.xml import Element, read_xml
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language

# A text of its own that takes the place of a word: %#@files@ of a .stringsdict, %arg of a catalog.
_SUBSTITUTION = re.compile(r"%(?:\d+\$)?#@\w+@|%arg\b")


def _segment(text: str, place: str) -> Segment:
    segment = replace(tagged_segment(text, place), is_label=False)
    return with_placeholders(segment, _SUBSTITUTION)


_TOKEN = re.compile(
    r"[\s\u2028\u2029]+|/\*.*?\*/|//[^\r\n]*"
    r"|(?P<string>\"(?>(?:[^\"\\]++|\\.)*)\"|'(?>(?:[^'\\]++|\\.)*)')|(?P<word>[\w.$/:-]+)|(?P<sign>[=;])",
    re.DOTALL,
)
_ESCAPE = re.compile(r"(?P<codes>(?:\\[Uu][0-9A-Fa-f]{4})+)|\\(?P<octal>[0-7]{3})|\\(?P<sign>.)", re.DOTALL)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_TO_ESCAPE = re.compile(r"[\\\"\x00-\x1f]")
_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'}


class _Token(NamedTuple):
    text: str
    """As it stands in the file."""
    start: int
    end: int


def read_strings(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A .strings file, in UTF-8 or UTF-16: its values; keys and comments stay. Also one that is a property list in XML.

    Raises:
        DataError: it is no such file.
    """
    if data.startswith(b"bplist"):
        raise DataError(
            "this .strings file is compiled, so its texts cannot be replaced",
            hint="translate the one from which it was made; or convert it: plutil -convert xml1 FILE",
        )
    beginning = data[:200].replace(b"\0", b"")
    if beginning.lstrip(b"\xef\xbb\xbf\xff\xfe\r\n\t ").startswith((b"<?xml", b"<!DOCTYPE plist", b"<plist")):
        return read_stringsdict(data, options)
    content = decoded(data, given=options.encoding or _without_mark(data))
    lines = LineNumbers(content.text)
    slots = []
    keys = RepeatedKeys()
    for key, value in _pairs(content.text, lines, options):
        keys.add(_unescaped(key.text), key.start)
        place = f"line {lines.number_at(key.start)}"
        segment = _segment(_unescaped(value.text), place)
        if holds_text(segment, _unescaped(key.text)):
            slots.append(Slot(value.start, value.end, options.watch.counted(segment), _written))
    keys.warn(content.text, options)
    return SplicedDocument(content, tuple(slots))


def _without_mark(data: bytes) -> str | None:
    """The name of UTF-16 where the file has no byte-order mark; None if it is no UTF-16."""
    if data[1:2] == b"\0" and data[:1] not in (b"\0", b"\xff"):
        return "utf-16-le"
    return "utf-16-be" if data[:1] == b"\0" else None


def _pairs(text: str, lines: LineNumbers, options: ReadingOptions) -> Iterator[tuple[_Token, _Token]]:
    """The keys and values of a file, in order."""
    waiting: list[_Token] = []
    for token in options.watch.over(_tokens(text, lines)):
        waiting.append(token)
        signs = [each.text for each in waiting]
        if signs[-1] == ";":
            if len(waiting) == 4 and signs[1] == "=" and signs[2] != "=":
                yield waiting[0], waiting[2]
            elif len(waiting) != 2 or signs[0] == "=":  # "key"; is its own value, and stays
                raise _fault(waiting[0], lines)
            waiting = []
        elif len(waiting) > 3:
            raise _fault(waiting[0], lines)
    if waiting:
        raise _fault(waiting[0], lines)


def _tokens(text: str, lines: LineNumbers) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _fault(_Token(text[place], place, place), lines)
        if match.lastgroup:
            yield _Token(match[0], *match.span())
        place = match.end()


def _fault(token: _Token, lines: LineNumbers) -> DataError:
    return DataError(
        f'line {lines.number_at(token.start)}: no entry such as "key" = "text";',
        hint="plutil -lint FILE names what is wrong with a .strings file",
    )


def _unescaped(raw: str) -> str:
    def sign(match: re.Match[str]) -> str:
        if match["codes"]:
            units = bytes.fromhex(re.sub(r"\\[Uu]", "", match["codes"]))
            return units.decode("utf-16-be", "replace")
        if match["octal"]:
            return chr(int(match["octal"], 8))
        return _SIGNS.get(match["sign"], match["sign"])

    return _ESCAPE.sub(sign, raw[1:-1]) if raw[0] in "\"'" else raw


def _written(found: TranslatedSegment) -> str:
    def escaped(match: re.Match[str]) -> str:
        return _ESCAPED.get(match[0], f"\\U{ord(match[0]):04X}")

    return f'"{_TO_ESCAPE.sub(escaped, string_of(found))}"'


# Keys of a property list whose values are no texts.
_PROGRAM_KEYS = frozenset(["NSStringFormatSpecTypeKey", "NSStringFormatValueTypeKey"])


def read_stringsdict(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A property list of texts, with the forms of their plurals; the keys, and which forms there are, stay.

    Raises:
        DataError: it is no property list, or is damaged, too large, or made to harm.
    """
    xml = read_xml(data, options)
    if xml.root.name != "plist":
        raise DataError(f"this is no property list: its root is <{xml.root.name}>")
    lines = LineNumbers(xml.content.text)
    slots = []
    for element, path in options.watch.over(_strings(xml.root)):
        key = next((xml.whole_text(each) for each in path[-1:]), "")
        if key in _PROGRAM_KEYS:
            continue
        place = f"line {lines.number_at(element.start)}"
        slot = slot_of_element(xml, element, place, key, _segment)
        if slot is not None:
            options.watch.counted(slot.segment)
            slots.append(slot)
    plurals = PluralsToComplete(options.target_language)
    repeated = RepeatedKeys()
    for element in xml.root.walk():
        keys = {each.start: xml.whole_text(each) for each in element.elements if each.name == "key"}
        if "NSStringFormatSpecTypeKey" in keys.values():
            plurals.add([*keys.values()], f"line {lines.number_at(element.start)}")
        repeated.begin_mapping()
        for key_start, each in keys.items():
            repeated.add(each, key_start)
        repeated.end_mapping()
    plurals.warn()
    repeated.warn(xml.content.text, options)
    return SplicedDocument(xml.content, tuple(slots))


def _strings(root: Element) -> Iterator[tuple[Element, tuple[Element, ...]]]:
    """Each string that is no key, with the key before it."""
    for element in root.walk():
        key: tuple[Element, ...] = ()
        for child in element.elements:
            if child.name == "string":
                yield child, key
            key = (child,) if child.name == "key" else ()


# Catalogs of Xcode: all languages in one file.

_OPEN_STATE = "new"
_SPACES = re.compile(r"\s*")


class _Member(NamedTuple):
    """A member of an object of JSON: text[start:end] is its value."""

    key: str
    key_start: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """A text of a catalog."""

    start: int
    """Where the object begins that holds it in all languages."""
    source: Any
    """Its localization in the source language, whose forms that of the target language has, too."""
    segments: tuple[Segment, ...]
    """One for each form."""


@dataclass(frozen=True, slots=True)
class StringCatalog:
    """A `Document` of texts in several languages; each text without the target language gets it."""

    content: DecodedText
    source_language: str
    entries: tuple[_Entry, ...]

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`."""
        return [segment for entry in self.entries for segment in entry.segments]

    def require_languages(self, languages: Direction) -> None:
        """See `NamesLanguages.require_languages`."""
        if primary_language(self.source_language) != primary_language(languages.source):
            raise DataError(
                f'the file has "sourceLanguage": "{self.source_language}", but the model translates from {languages.source} into {languages.target}',
                hint="use a model of these languages (--run)",
            )

    def write(self, translations: Sequence[TranslatedSegment], languages: Direction) -> bytes:
        """See `Document.write`. A text whose translations are all equal to it gets none."""
        changes, place, layout = [], 0, _Layout.of(self.content.text)
        for entry in self.entries:
            end = place + len(entry.segments)
            found, place = translations[place:end], end
            if any(one.pieces != segment.pieces for one, segment in zip(found, entry.segments, strict=True)):
                changes += self._with_language(entry, found, languages.target, layout)
        return self.content.encoded(spliced(self.content.text, changes))

    def _with_language(
        self, entry: _Entry, found: Sequence[TranslatedSegment], language: str, layout: "_Layout"
    ) -> list[Change]:
        """The change that gives an entry its localization; none if it has one."""
        text = self.content.text
        localization = _translated(entry.source, iter(found))
        members = _members(text, entry.start)
        languages = next((each for each in members if each.key == "localizations"), None)
        if languages is None:
            value = {"localizations": {language: localization}}
            return [_inserted(text, entry.start, members, value, layout, depth=3)]
        inner = _members(text, languages.start)
        key = _key_of_language([each.key for each in inner], language)
        if key is None:
            value = {language: localization}
            return [_inserted(text, languages.start, inner, value, layout, depth=4)]
        own = next(each for each in inner if each.key == key)
        if not _is_open(json.loads(text[own.start : own.end])):
            return []
        return [Change(own.start, own.end, layout.json(localization, depth=4))]


def read_string_catalog(data: bytes, options: ReadingOptions = DEFAULTS) -> StringCatalog:
    """A string catalog of Xcode.

    What has "shouldTranslate": false stays, and so does each translation that is there. A translation that a person
    should look at has the state needs_review, every other one the state translated.

    Raises:
        DataError: it is no such file.
    """
    content = decoded(data, given=options.encoding)
    text = content.text
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line {getattr(error, 'lineno', 1)}: no valid JSON: {error}") from error
    options.limits.check_depth(_depth(whole), "the JSON of this catalog")
    members = whole if isinstance(whole, dict) else {}
    strings, language = members.get("strings"), members.get("sourceLanguage")
    if not isinstance(strings, dict) or not isinstance(language, str):
        raise DataError('this is no string catalog of Xcode: it lacks "sourceLanguage" and "strings"')
    root = next(each for each in _members(text, text.index("{")) if each.key == "strings")
    lines = LineNumbers(text)
    plurals = PluralsToComplete(options.target_language)
    entries = []
    for member in options.watch.over(_members(text, root.start)):
        entry = strings[member.key]
        if not isinstance(entry, Mapping) or entry.get("shouldTranslate") is False:
            continue
        place = f"line {lines.number_at(member.key_start)}"
        localizations = entry.get("localizations", {})
        if not isinstance(localizations, Mapping):
            raise DataError(
                f'{place}: the "localizations" of a text are {json.dumps(localizations)[:50]}, and no object with a member for each language',
                hint='such as "localizations": {}; Xcode writes the file anew when you save it there',
            )
        if _has_translation(localizations, options.target_language):
            continue
        source = localizations.get(language) or {"stringUnit": {"value": member.key}}
        segments = [_segment(form.text, place) for form in _forms(source)]
        if any(holds_text(each, member.key) for each in segments):
            segments = [options.watch.counted(each) for each in segments]
            entries.append(_Entry(member.start, source, tuple(segments)))
            for forms in _plurals(source):
                plurals.add(forms, place)
    plurals.warn()
    return StringCatalog(content, language, tuple(entries))


def _depth(value: Any) -> int:
    """How many objects and lists stand inside each other."""
    depth, inner = 0, [value]
    while inner := [each for each in inner if isinstance(each, dict | list)]:
        depth += 1
        inner = [*chain.from_iterable(each.values() if isinstance(each, dict) else each for each in inner)]
    return depth


def _has_translation(localizations: Mapping[str, Any], language: str | None) -> bool:
    key = None if language is None else _key_of_language(list(localizations), language)
    return key is not None and not _is_open(localizations[key])


def _key_of_language(keys: Sequence[str], language: str) -> str | None:
    """The key of a language, or of its form in a region, among the languages of a text."""
    if language in keys:
        return language
    wanted = primary_language(language)
    return next((key for key in keys if primary_language(key) == wanted), None)


class _Form(NamedTuple):
    """A form of a text: `holder[key]`."""

    unit: dict[str, Any]
    """What has the state of the form."""
    holder: Any
    """An object, or the list of the phrases of a set."""
    key: str | int

    @property
    def text(self) -> str:
        """What people read."""
        return str(self.holder[self.key])


def _forms(localization: Any) -> Iterator[_Form]:
    """The forms of a text, in order: one, or those of a plural, of devices, of numbers inside it, and the phrases of a set."""
    if not isinstance(localization, dict):
        return
    unit, phrases = localization.get("stringUnit"), localization.get("stringSet")
    if isinstance(unit, dict) and isinstance(unit.get("value"), str):
        yield _Form(unit, unit, "value")
    if isinstance(phrases, dict) and isinstance(phrases.get("values"), list):
        values = phrases["values"]
        yield from (_Form(phrases, values, at) for at, text in enumerate(values) if isinstance(text, str))
    for key, inner in localization.items():
        if key not in ("stringUnit", "stringSet"):
            yield from _forms(inner)


def _plurals(localization: Any) -> Iterator[Collection[str]]:
    """The names of the forms of each plural in a text."""
    if isinstance(localization, dict):
        for key, inner in localization.items():
            if key == "plural" and isinstance(inner, dict):
                yield inner
            yield from _plurals(inner)


def _is_open(localization: Any) -> bool:
    """Whether no form of a text has been touched by a person."""
    return all(form.unit.get("state") == _OPEN_STATE or not form.text for form in _forms(localization))


def _translated(source: Any, found: Iterator[TranslatedSegment]) -> Any:
    """The localization of a text with its translations, which have the order of `_forms`."""
    result = copy.deepcopy(source)
    doubtful: set[int] = set()
    for form, translation in zip(_forms(result), found, strict=True):
        form.holder[form.key] = string_of(translation)
        if translation.doubts:
            doubtful.add(id(form.unit))
        kept: dict[str, Any] = {name: form.unit[name] for name in ("value", "values") if name in form.unit}
        form.unit.clear()
        form.unit["state"] = "needs_review" if id(form.unit) in doubtful else "translated"
        form.unit.update(kept)
    return result


def _members(text: str, start: int) -> list[_Member]:
    """The members of the object that begins at text[start], in order; of two with one key, only the last one counts."""
    decoder = json.JSONDecoder()
    members: dict[str, _Member] = {}
    place = _after_spaces(text, start + 1)
    while text[place] != "}":
        key_start = _after_spaces(text, place + 1) if text[place] == "," else place
        key, end = decoder.raw_decode(text, key_start)
        value_start = _after_spaces(text, _after_spaces(text, end) + 1)
        _, end = decoder.raw_decode(text, value_start)
        members.pop(key, None)
        members[key] = _Member(key, key_start, value_start, end)
        place = _after_spaces(text, end)
    return [*members.values()]


def _after_spaces(text: str, place: int) -> int:
    match = _SPACES.match(text, place)
    return match.end() if match else place


def _inserted(
    text: str,
    start: int,
    members: Sequence[_Member],
    value: Mapping[str, Any],
    layout: "_Layout",
    *,
    depth: int,
) -> Change:
    """The change that gives an object one more member; Xcode sorts the members by their keys.

    Args:
        start: where the object begins.
        members: of it.
        value: the new member.
        depth: how many objects are around the new member.
    """
    line_end, indentation = layout.line_end, layout.indentation
    line = line_end + indentation * depth
    written = layout.json(value, depth=depth - 1).removeprefix("{").rpartition("}")[0].strip()
    [key] = value
    place = bisect_left([each.key for each in members], key)
    if not members:
        end = text.index("}", start)
        return Change(start, end + 1, f"{{{line}{written}{line_end}{indentation * (depth - 1)}}}")
    if place < len(members):
        before = members[place].key_start
        return Change(before, before, f"{written},{line}")
    return Change(members[-1].end, members[-1].end, f",{line}{written}")


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a file writes its JSON."""

    line_end: str
    indentation: str
    """What stands before the members of its outermost object."""
    colon: str
    is_ascii: bool
    """Whether other letters are written as codes."""

    @classmethod
    def of(cls, text: str) -> "_Layout":
        """The layout of a file."""
        first = re.match(r"\s*\{(\r?\n)([ \t]*)", text)
        line_end, indentation = (first[1], first[2]) if first else ("\n", "  ")
        colon = " : " if '" : ' in text else ": "
        return cls(line_end, indentation, colon, text.isascii() and "\\u" in text)

    def json(self, value: Any, *, depth: int) -> str:
        """A value inside so many objects, as the file writes it."""
        written = json.dumps(value, ensure_ascii=self.is_ascii, indent=self.indentation, separators=(",", self.colon))
        return written.replace("\n", self.line_end + self.indentation * depth)
