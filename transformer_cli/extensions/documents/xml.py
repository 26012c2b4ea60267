"""XML as text and elements with their places in it, so that a part can be replaced and the rest stays."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple
from xml.parsers import expat

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import (
    DecodedText,
    declared_encoding,
    decoded,
)
from transformer_cli.extensions.documents.formats import (
    DEFAULTS,
    ReadingOptions,
)
from transformer_cli.extensions.documents.segments import (
    Edit,
    InlinePart,
    InnerText,
    LineNumbers,
    Markup,
    Piece,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    language_after,
    nested,
    plain_text,
    rendered,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import has_letter

logger = logging.getLogger(__name__)

_OTHER_FILE = "open it in the program that made it, and save it again"


_CHUNK_BYTES = 1 << 16
_LONGEST_ENTITY = 1000
_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


class XmlKind(Enum):
    """What a token is."""

    TEXT = "text"
    """Text with references such as &amp;."""
    CDATA = "cdata"
    """Text without references, between <![CDATA[ and ]]>."""
    START = "start"
    """A start tag."""
    EMPTY = "empty"
    """The tag of an element without content, such as <br/>."""
    END = "end"
    """An end tag."""
    OTHER = "other"
    """A comment, a processing instruction, or the document type."""


class XmlToken(NamedTuple):
    """A part of the text: text[start:end]."""

    kind: XmlKind
    start: int
    end: int
    name: str = ""
    """Of a tag, with its prefix."""
    attributes: Mapping[str, str] = _NO_ATTRIBUTES
    """Of a START or EMPTY; their names have prefixes."""


def xml_tokens(
    data: bytes,
    content: DecodedText,
    options: ReadingOptions = DEFAULTS,
    *,
    has_entities: bool = False,
) -> Iterator[XmlToken]:
    """The tokens of an XML file, in order, without gaps.

    A DOCTYPE that names an external DTD is allowed, but this DTD is never read.

    Args:
        data: the bytes of the file.
        content: their text, in which the tokens have their places.
        has_entities: whether it may declare entities that are short texts; references to them stay as they are.

    Raises:
        DataError: with the line of the problem: it is not well-formed, declares entities, or is too large or too deep.
    """
    options.limits.check_size(data)
    tokenizer = _Tokenizer(data, content, options, has_entities=has_entities)
    for place in range(0, len(data), _CHUNK_BYTES):
        _parse(tokenizer.parser, data[place : place + _CHUNK_BYTES], is_final=False)
        yield from tokenizer.complete()
    _parse(tokenizer.parser, b"", is_final=True)
    tokenizer.finish(len(content.text))
    yield from tokenizer.complete()


def _parse(parser: Any, data: bytes, *, is_final: bool) -> None:
    try:
        parser.Parse(data, is_final)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise DataError(f"line {error.lineno}: no well-formed XML: {message}", hint=_OTHER_FILE) from error
    except (LookupError, ValueError) as error:
        raise DataError(f"no readable XML: {error}", hint=_OTHER_FILE) from error


class _Tokenizer:
    """Notes where each token begins, as expat reads it; the token before ends there."""

    def __init__(self, data: bytes, content: DecodedText, options: ReadingOptions, *, has_entities: bool) -> None:
        self.parser = parser = expat.ParserCreate()
        self._data, self._content, self._options = data, content, options
        # A place of expat counts bytes: the last one, and the number of characters before it.
        self._byte, self._character = len(content.mark), 0
        self._has_wide_characters = len(data) - len(content.mark) != len(content.text)
        self._complete: list[XmlToken] = []
        # The last token, whose end is not known yet.
        self._kind, self._start, self._name = XmlKind.OTHER, 0, ""
        self._attributes = _NO_ATTRIBUTES
        self._depth = 0
        self._is_in_cdata = self._is_in_doctype = False
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.EntityDeclHandler = self._check_entity if has_entities else self._refuse_entity
        parser.StartElementHandler = self._start_tag
        parser.EndElementHandler = self._end_tag
        parser.CharacterDataHandler = self._text
        parser.StartCdataSectionHandler = self._start_cdata
        parser.EndCdataSectionHandler = self._end_cdata
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._other
        parser.EndDoctypeDeclHandler = self._end_doctype
        if has_entities:
            parser.DefaultHandler = self._default  # which does not resolve references
        else:
            parser.DefaultHandlerExpand = self._default

    def complete(self) -> list[XmlToken]:
        """The tokens whose end has become known since the last call."""
        found, self._complete = self._complete, []
        return found

    def finish(self, place: int) -> None:
        """End the last token."""
        if place > self._start:
            last = XmlToken(self._kind, self._start, place, self._name, self._attributes)
            self._complete.append(last)

    def _begin(self, kind: XmlKind, name: str = "", attributes: Mapping[str, str] = _NO_ATTRIBUTES) -> None:
        place = self._place()
        self.finish(place)
        self._kind, self._start, self._name, self._attributes = kind, place, name, attributes

    def _place(self) -> int:
        """Where expat reads, as a place in the text."""
        byte = self.parser.CurrentByteIndex
        if self._has_wide_characters:
            passed = self._data[self._byte : byte].decode(self._content.encoding, "surrogateescape")
            self._character += len(passed)
        else:
            self._character += byte - self._byte
        self._byte = byte
        return self._character

    def _start_tag(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._options.watch.look()
        self._options.limits.check_depth(self._depth, f"line {self.parser.CurrentLineNumber}")
        self._begin(XmlKind.START, name, attributes or _NO_ATTRIBUTES)
        text, place = self._content.text, self._start
        if not text.startswith(f"<{name}", place):  # the text is in another encoding
            raise DataError(f"no readable XML at character {place + 1}: {text[place : place + 40]}")

    def _end_tag(self, name: str) -> None:
        self._depth -= 1
        # The end of an element without content is told behind its only tag.
        has_one_tag = self._kind is XmlKind.START and self._content.text.endswith("/>", self._start, self._place())
        if has_one_tag:
            self._kind = XmlKind.EMPTY
        else:
            self._begin(XmlKind.END, name)

    def _text(self, text: str) -> None:
        """Text comes in several parts."""
        if self._kind is not XmlKind.TEXT and not self._is_in_cdata:
            self._begin(XmlKind.TEXT)

    def _start_cdata(self) -> None:
        self._is_in_cdata = True
        self._begin(XmlKind.CDATA)

    def _end_cdata(self) -> None:
        self._is_in_cdata = False

    def _other(self, *_: str) -> None:
        if not self._is_in_doctype:
            self._begin(XmlKind.OTHER)

    def _default(self, raw: str) -> None:
        """All else: the declaration, the document type, white space outside of the root, entities that XML does not name."""
        if raw == "<!DOCTYPE":
            self._other()
            self._is_in_doctype = True
        elif self._depth or raw.isspace():
            if not self._is_in_doctype:
                self._text(raw)
        else:
            self._other()

    def _end_doctype(self) -> None:
        self._is_in_doctype = False

    def _check_entity(self, name: str, is_parameter: bool, value: str | None, *names_of_files: Any) -> None:
        # Inside an attribute, expat resolves references, and those of entities in entities grow without limit.
        is_text = value is not None and "&" not in _REFERENCE.sub("", value)
        if is_parameter or value is None or not is_text or len(value) > _LONGEST_ENTITY:
            self._refuse_entity(name)

    def _refuse_entity(self, name: str, *_: Any) -> None:
        raise DataError(
            f"line {self.parser.CurrentLineNumber}: the XML declares an entity {name}",
            hint="documents with entities of their own are not read, because they can grow without limit or name other files",
        )


_REFERENCE = re.compile(r"&(?:#x([0-9A-Fa-f]+)|#([0-9]+)|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# Characters that XML does not allow, not even as references.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def white_space_before(text: str, place: int) -> str:
    """The line break and the indentation before a place; nothing if other text stands directly before it."""
    start = place
    while start and text[start - 1].isspace():
        start -= 1
    return text[start:place]


def unescaped_xml(text: str) -> str:
    """A text with its references resolved; those of entities that XML does not name stay."""

    def resolved(match: re.Match[str]) -> str:
        if match[3]:
            return _NAMED[match[3]]
        number = int(match[1], 16) if match[1] else int(match[2])
        return chr(number) if number <= 0x10FFFF else match[0]

    return _REFERENCE.sub(resolved, text)


def escaped_xml(text: str) -> str:
    """A text as XML; characters that XML does not allow are left out."""
    text = _FORBIDDEN.sub("", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_attribute(found: TranslatedSegment) -> str:
    """A translation as the value of an attribute."""
    return escaped_xml(found.text).replace('"', "&quot;").replace("'", "&apos;").replace("\n", "&#10;")


_MARKS = re.compile(
    r"(?P<cdata><!\[CDATA\[)|(?P<end_of_cdata>\]\]>)|(?P<comment><!--)|(?P<end_of_comment>-->)"
    rf"|&#(?:x(?P<hexadecimal>[0-9A-Fa-f]+)|(?P<decimal>[0-9]+));|(?P<forbidden>{_FORBIDDEN.pattern})"
)
_MOST_DIGITS = 8
_MOST_WARNINGS = 5


class ForbiddenCharacter(NamedTuple):
    """A character that XML does not allow: text[start:end] is the character itself, or a reference to it."""

    start: int
    end: int
    name: str
    """Such as U+000B, or &#11; for a reference."""


def forbidden_characters(text: str) -> list[ForbiddenCharacter]:
    """The characters of an XML text that XML does not allow, in order.

    Source: Extensible Markup Language (XML) 1.0, fifth edition, section 2.2.
    """
    if _FORBIDDEN.search(text) is None and "&#" not in text:
        return []
    found = []
    inside = ""  # a CDATA section or a comment has no references
    for mark in _MARKS.finditer(text):
        kind = mark.lastgroup or ""
        if kind == "forbidden":
            found.append(ForbiddenCharacter(*mark.span(), f"U+{ord(mark[0]):04X}"))
        elif kind in ("cdata", "comment"):
            inside = inside or kind
        elif kind.startswith("end_of_"):
            inside = "" if kind == f"end_of_{inside}" else inside
        elif not inside:
            digits = mark[kind].lstrip("0") or "0"
            number = int(digits[:_MOST_DIGITS], 16 if kind == "hexadecimal" else 10)
            if len(digits) > _MOST_DIGITS or not _is_allowed(number):
                found.append(ForbiddenCharacter(*mark.span(), mark[0][: _MOST_DIGITS + 4]))
    return found


def _is_allowed(number: int) -> bool:
    return (
        number in (0x9, 0xA, 0xD)
        or 0x20 <= number <= 0xD7FF
        or 0xE000 <= number <= 0xFFFD
        or 0x10000 <= number <= 0x10FFFF
    )


def without_characters(text: str, left_out: Iterable[ForbiddenCharacter]) -> str:
    """The text without these characters."""
    kept, place = [], 0
    for one in left_out:
        kept.append(text[place : one.start])
        place = one.end
    return "".join([*kept, text[place:]])


def _warn_of_forbidden(text: str, found: list[ForbiddenCharacter], part: str) -> None:
    lines = LineNumbers(text)
    for one in found[:_MOST_WARNINGS]:
        logger.warning(
            "line %d%s: the character %s, which XML does not allow, was left out",
            lines.number_at(one.start),
            f" of {part}" if part else "",
            one.name,
        )
    if len(found) > _MOST_WARNINGS:
        logger.warning("and %d more of them", len(found) - _MOST_WARNINGS)


_XML_SPACE = "http://www.w3.org/XML/1998/namespace"


@dataclass(slots=True, eq=False)
class Element:
    """An element of a text: text[start:end]; its content is text[inner_start:inner_end]."""

    name: str
    """As it is written, with its prefix."""
    space: str
    """The address of its namespace; empty if it has none."""
    local: str
    """The name without the prefix."""
    attributes: Mapping[str, str]
    """Their names have prefixes."""
    start: int
    inner_start: int
    inner_end: int = 0
    end: int = 0
    children: "list[Element | XmlToken]" = field(default_factory=list)

    @property
    def elements(self) -> "list[Element]":
        """The child elements."""
        return [child for child in self.children if isinstance(child, Element)]

    def child(self, local: str) -> "Element | None":
        """The first child element of a name."""
        return next((child for child in self.elements if child.local == local), None)

    def walk(self) -> "Iterator[Element]":
        """This element and all elements in it, in the order of their start tags."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.elements)


@dataclass(frozen=True, slots=True)
class XmlText:
    """An XML file as text, and its root element."""

    content: DecodedText
    root: Element

    def text_of(self, token: XmlToken) -> str:
        """The characters that a token of text stands for; nothing for a comment."""
        raw = self.content.text[token.start : token.end]
        if token.kind is XmlKind.CDATA:
            return raw[len("<![CDATA[") : -len("]]>")]
        return unescaped_xml(raw) if token.kind is XmlKind.TEXT else ""

    def raw(self, element: Element) -> str:
        """An element as it stands in the file."""
        return self.content.text[element.start : element.end]

    def whole_text(self, element: Element) -> str:
        """All text inside an element, without its markup."""
        texts, waiting = [], [*reversed(element.children)]
        while waiting:
            child = waiting.pop()
            if isinstance(child, Element):
                waiting += reversed(child.children)
            else:
                texts.append(self.text_of(child))
        return "".join(texts)


def read_xml(data: bytes, options: ReadingOptions = DEFAULTS, *, part: str = "", has_entities: bool = False) -> XmlText:
    """The elements of an XML file; characters that XML does not allow are left out, with a warning.

    Args:
        part: the name of the file inside a zip file, for the warning.
        has_entities: as of `xml_tokens`.

    Raises:
        DataError: it is not well-formed, declares entities, or is too large or too deep.
    """
    try:
        content = decoded(data, declared_encoding(data), is_markup=True)
    except DataError:
        _parse(expat.ParserCreate(), data, is_final=True)  # the better reason, if there is one
        raise
    # A NUL at the beginning: the text is in UTF-16, which it does not say.
    left_out = [] if "\0" in content.text[:4] else forbidden_characters(content.text)
    if left_out:
        _warn_of_forbidden(content.text, left_out, part)
        content = replace(content, text=without_characters(content.text, left_out))
        data = content.encoded(content.text)
    tokens = xml_tokens(data, content, options, has_entities=has_entities)
    return XmlText(content, _root(options.watch.over(tokens)))


_ATTRIBUTE = re.compile(r"""(?P<name>[^\s=/<>"']++)\s*+=\s*+(?P<value>"[^"]*+"|'[^']*+')""")


def place_of_attribute(xml: XmlText, element: Element, name: str) -> tuple[int, int] | None:
    """Where the value of an attribute stands; None if the element has no such attribute."""
    if name not in element.attributes:
        return None
    # From the first attribute on, so that nothing inside a value is taken for one.
    first = element.start + 1 + len(element.name)
    for match in _ATTRIBUTE.finditer(xml.content.text, first, element.inner_start):
        if match["name"] == name:
            return match.start("value") + 1, match.end("value") - 1
    return None


def language_edits_of(xml: XmlText, element: Element, name: str) -> list[Edit]:
    """The edit of an attribute that names the language of a text; none if the element has no such attribute."""
    return attribute_edits(xml, element, name, language_after)


def attribute_edits(xml: XmlText, element: Element, name: str, replacement: Callable[..., str]) -> list[Edit]:
    """The edit of an attribute; none if the element has no such attribute.

    Args:
        replacement: gives the new value from the old one and the direction.
    """
    place = place_of_attribute(xml, element, name)
    if place is None:
        return []
    return [Edit(*place, partial(replacement, xml.content.text[place[0] : place[1]]))]


def language_edits(xml: XmlText, element: Element, names: tuple[str, str], *, has_open_units: bool) -> list[Edit]:
    """The target language of a file with both languages, if it names none; languages that the model does not translate are refused.

    Where nothing is translated, nobody knows in which language its translations are. A file without a translation whose
    target language is its source language is a template: its writer, such as Business Central, knows no other language. So
    is one of Qt that names the source language of the model as its only one.

    Args:
        element: which names the languages.
        names: of the attributes for the source and the target language.
        has_open_units: whether anything is translated.
    """
    edits = []
    given = element.attributes
    is_untranslated = not any(
        each.local in ("target", "translation") and xml.whole_text(each).strip() for each in element.walk()
    )
    is_template = is_untranslated and given.get(names[0], given.get(names[1])) == given.get(names[1])
    for name, of in zip(names, ("source", "target"), strict=True):
        place = place_of_attribute(xml, element, name)
        if place is not None:
            is_open = is_template and of == "target"
            edits.append(Edit(*place, partial(_language, given[name], name, of, is_open)))
    if has_open_units and names[1] not in given:
        end = element.start + 1 + len(element.name)
        edits.append(Edit(end, end, lambda languages: f' {names[1]}="{languages.target}"'))
    return edits


def _language(given: str, name: str, of: str, is_open: bool, languages: Direction) -> str:
    """The value of an attribute: as it is, or the language of the model if it is empty, or open and that of the source."""
    wanted: str = getattr(languages, of)
    if given and primary_language(given) != primary_language(wanted):
        if is_open and primary_language(given) == primary_language(languages.source):
            return wanted
        raise DataError(
            f'the file has {name}="{given}", but the model translates from {languages.source} into {languages.target}',
            hint="use a model of these languages (--run), or correct the attribute",
        )
    return escaped_xml(given) or wanted


def _root(tokens: Iterable[XmlToken]) -> Element:
    root: Element | None = None
    opened: list[tuple[Element, dict[str, str]]] = []
    spaces = {"": "", "xml": _XML_SPACE}
    for token in tokens:
        if token.kind in (XmlKind.START, XmlKind.EMPTY):
            inner_spaces = _with_declared(spaces, token.attributes)
            prefix, _, local = token.name.rpartition(":")
            space = inner_spaces.get(prefix, "")
            element = Element(token.name, space, local, token.attributes, token.start, token.end)
            if opened:
                opened[-1][0].children.append(element)
            root = root or element
            if token.kind is XmlKind.EMPTY:
                element.inner_end = element.end = token.end
            else:
                opened.append((element, spaces))
                spaces = inner_spaces
        elif token.kind is XmlKind.END and opened:
            element, spaces = opened.pop()
            element.inner_end, element.end = token.start, token.end
        elif opened:
            opened[-1][0].children.append(token)
    if root is None or opened:
        raise DataError("no readable XML: an element has no end")
    return root


def _with_declared(spaces: dict[str, str], attributes: Mapping[str, str]) -> dict[str, str]:
    """The namespaces inside an element, by their prefixes."""
    declared = {
        name.partition(":")[2]: value
        for name, value in attributes.items()
        if name == "xmlns" or name.startswith("xmlns:")
    }
    return spaces | declared if declared else spaces


class Inline(Enum):
    """What an element does inside a text."""

    RANGE = "range"
    """Its content is part of the text; the range moves with its words."""
    POINT = "point"
    """It stands between two words, with everything in it."""
    WORD = "word"
    """It takes the place of a word."""
    SPACES = "spaces"
    """It is white space, and stands where a POINT would."""
    BREAK = "break"
    """The text before it and the text after it are two texts."""


Kinds = Callable[[Element], Inline]
Pairs = Callable[[Element], tuple[Role, str] | None]
"""Whether a POINT begins (OPEN) or ends (CLOSE) something, and the name that both of its points have."""


def no_pairs(element: Element) -> None:
    """For formats whose empty elements never come in pairs of a beginning and an end."""


def inline_runs(
    xml: XmlText,
    element: Element,
    kind_of: Kinds,
    pair_of: Pairs = no_pairs,
    *,
    has_places: bool = True,
    place_of_codes: str | None = None,
) -> list[list[InlinePart]]:
    """The runs of text and markup of an element, divided at its breaks; in each run, all ranges are complete.

    Args:
        kind_of: of each element in it.
        pair_of: of each POINT in it.
        has_places: whether the translation comes to the same place; if not, the markup is a copy.
        place_of_codes: that of the texts inside codes, which <sub> holds in XLIFF 1.2 and TMX; None: codes have none.
    """
    runs: list[list[InlinePart]] = [[]]
    for part in _parts(xml, element, kind_of, pair_of, has_places, place_of_codes):
        if part is None:
            runs.append([])
        else:
            runs[-1].append(part)
    return [nested(without_gaps) for run in runs if (without_gaps := _without_idle_gaps(run))]


LINE_BREAKS = frozenset(["lb", "pb", "x-br"])
"""The types of tags of XLIFF (ctype) and TMX (type) that are white space: breaks of a line or page."""
_PAIRED_TAGS = {"bpt": Role.OPEN, "ept": Role.CLOSE, "bx": Role.OPEN, "ex": Role.CLOSE}
# A tag of a template of Angular in XLIFF: <x id="START_LINK_1"/> is closed by <x id="CLOSE_LINK"/>.
_TEMPLATE_TAG = re.compile(r"(START|CLOSE)_(\w+?)(?:_\d+)?")
_ENDS = {"open": Role.OPEN, "begin": Role.OPEN, "close": Role.CLOSE, "end": Role.CLOSE}


def paired_tag(element: Element) -> tuple[Role, str] | None:
    """The tags of XLIFF and TMX that begin or end a range of the original document: bpt, ept, bx, ex, it, and x of Angular."""
    given = element.attributes
    if element.local == "x":
        tag = _TEMPLATE_TAG.fullmatch(given.get("id", ""))
        return None if tag is None else (Role.OPEN if tag[1] == "START" else Role.CLOSE, f"x {tag[2]}")
    if element.local == "it":
        role = _ENDS.get(given.get("pos", ""))
        return None if role is None else (role, f"it {given.get('rid', '')}")
    role = _PAIRED_TAGS.get(element.local)
    number = given.get("rid") or given.get("i") or given.get("id") or ""
    return None if role is None else (role, f"{element.local[-1]} {number}")


def _without_idle_gaps(run: list[InlinePart]) -> list[InlinePart]:
    """A run with the gaps of `Inline.SPACES` only where they divide two words."""
    words = [at for at, part in enumerate(run) if _is_word(part.piece)]
    kept, is_behind_space = [], False
    for at, part in enumerate(run):
        is_gap = part.start == part.end
        if is_gap and (not words or is_behind_space or not words[0] < at < words[-1]):
            continue
        kept.append(part)
        if isinstance(part.piece, str):
            is_behind_space = part.piece[-1:].isspace()
        elif part.piece.role is Role.WORD:
            is_behind_space = False
    return kept


def _is_word(piece: Piece) -> bool:
    return bool(piece.strip()) if isinstance(piece, str) else piece.role is Role.WORD


def _parts(
    xml: XmlText,
    element: Element,
    kind_of: Kinds,
    pair_of: Pairs,
    has_places: bool,
    place_of_codes: str | None,
) -> Iterator[InlinePart | None]:
    """Text and markup in order; None for a break."""
    text = xml.content.text

    def markup(role: Role, start: int, end: int, name: str = "") -> InlinePart:
        place = start if has_places else None
        return InlinePart(Markup(role, start, text[start:end], place), start, end, name)

    for child in element.children:
        if isinstance(child, XmlToken):
            piece: Piece = xml.text_of(child)
            if piece:
                yield InlinePart(piece, child.start, child.end)
            elif child.kind is XmlKind.OTHER and has_places:
                yield markup(Role.POINT, child.start, child.end)  # a comment, which would be lost
            continue
        kind = kind_of(child)
        if kind is Inline.BREAK:
            yield None
        elif kind is Inline.SPACES:
            yield markup(Role.POINT, child.start, child.end)
            yield InlinePart(" ", child.end, child.end)
        elif kind is Inline.RANGE and child.inner_end > child.inner_start:
            yield markup(Role.OPEN, child.start, child.inner_start, child.name)
            yield from _parts(xml, child, kind_of, pair_of, has_places, place_of_codes)
            yield markup(Role.CLOSE, child.inner_end, child.end, child.name)
        else:
            role = Role.WORD if kind is Inline.WORD else Role.POINT
            part = markup(role, child.start, child.end)
            if place_of_codes is not None and isinstance(part.piece, Markup):
                inner = _texts_of_code(xml, child, kind_of, pair_of, place_of_codes)
                part = part._replace(piece=part.piece._replace(inner=inner))
            pair = pair_of(child) if role is Role.POINT else None
            yield part if pair is None else part._replace(pair=pair[0], name=pair[1])


def _texts_of_code(xml: XmlText, code: Element, kind_of: Kinds, pair_of: Pairs, place: str) -> InnerText | None:
    """The texts inside a code, such as that of an image in <ph>&lt;img alt="<sub>A dog</sub>"></ph>; None if it has none."""
    slots = []
    for element in _outermost_texts(code):
        runs = inline_runs(xml, element, kind_of, pair_of, has_places=False, place_of_codes=place)
        for run in runs:
            pieces = tuple(part.piece for part in run)
            if has_letter(plain_text(pieces)) or has_inner_texts(pieces):
                start, end = run[0].start - code.start, run[-1].end - code.start
                slots.append(Slot(start, end, Segment(pieces, place), _as_xml))
    if not slots:
        return None
    return InnerText(SplicedDocument(DecodedText(xml.content.text[code.start : code.end]), tuple(slots)))


def _outermost_texts(code: Element) -> Iterator[Element]:
    waiting = [code]
    while waiting:
        element = waiting.pop()
        if element.local == "sub":
            yield element
        else:
            waiting += reversed(element.elements)


def has_inner_texts(pieces: Iterable[Piece]) -> bool:
    """Whether there are texts inside the markup of a segment."""
    return any(isinstance(piece, Markup) and piece.inner is not None for piece in pieces)


def _as_xml(found: TranslatedSegment) -> str:
    return rendered(found.pieces, escaped_xml)
