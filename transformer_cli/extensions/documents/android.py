"""The strings.xml of Android: strings, and the items of plurals and arrays, with the escapes that Android reads in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.html import BLOCKS, forbids_translation
from transformer_cli.extensions.documents.repeated_keys import RepeatedKeys
from transformer_cli.extensions.documents.segments import (
    Edit,
    InlinePart,
    LineNumbers,
    Markup,
    Piece,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.strings import (
    PluralsToComplete,
    holds_text,
    is_icu_message,
    string_of,
    tagged_segment,
)
from transformer_cli.extensions.documents.xml import (
    Element,
    Inline,
    XmlKind,
    XmlText,
    XmlToken,
    escaped_xml,
    inline_runs,
    place_of_attribute,
    read_xml,
    unescaped_xml,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import has_letter

_XLIFF_NAMESPACE = "urn:oasis:names:tc:xliff:document:1.2"
# Formats whose files may have the ending .xml, too, by their roots.
_OTHER_ROOTS = {
    "xliff": "xliff",
    "tmx": "tmx",
    "TS": "qt",
    "root": "resx",
    "plist": "stringsdict",
    "html": "html",
}
_LISTS = frozenset(["plurals", "string-array", "array"])
# As in theme_values and sortEntryValues, with items such as light and dark.
_VALUES = re.compile(r"(?:.*(?:[_.-]|(?<=[a-z\d])(?=[EVK])))?(?:[Ee]ntry_?)?(?:[Vv]alues|[Kk]eys)")
_VALUE = re.compile(r"\s*(?:[a-z\d][a-z\d_.-]*|[A-Z][A-Z\d_]*)\s*")
# The whole of a value that names another resource, such as @string/app_name and ?android:attr/title.
_REFERENCE = re.compile(r"\s*(?:[@?][+*]?(?:[\w.]+:)?[\w.]+/[\w.]+|@null|@empty|\?[\w.]+:[\w.]+)\s*")
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z_:][\w:.-]*;")
_ESCAPE = re.compile(
    r"(?P<codes>(?:\\u[0-9A-Fa-f]{4})+)|\\(?P<sign>.)|(?P<quote>\")|(?P<spaces>[ \t\r\n\f]+)", re.DOTALL
)
_SIGNS = {"n": "\n", "t": "\t"}
_LAST_CONTENT = len("]]>")
_FIRST_CONTENT = len("<![CDATA[")


def read_android(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """The resources of an Android app: its texts are translated in their places.

    What has translatable="false" stays, and so do names of other resources, and the words inside <xliff:g>.

    Raises:
        DataError: it is no file of resources, or is damaged, too large, or made to harm.
    """
    xml = read_xml(data, options, has_entities=True)
    if xml.root.name != "resources":
        other = _OTHER_ROOTS.get(xml.root.local)
        raise DataError(
            f"this XML is no strings.xml of Android, which has the root <resources>: its root is <{xml.root.name}>",
            hint=f"read it as what it is: --format {other}"
            if other
            else "other XML is not read: convert a text to .html or .docx, a picture is translated inside a page (.html), "
            "and texts of a program are read as .xlf, .po or .json; --format txt translates each line nevertheless",
        )
    lines = LineNumbers(xml.content.text)
    slots = [
        slot
        for element, name in options.watch.over(_texts(xml))
        for slot in _slots(xml, element, name, f"line {lines.number_at(element.start)}")
    ]
    for slot in slots:
        options.watch.counted(slot.segment)
    plurals = PluralsToComplete(options.target_language)
    for resource in xml.root.elements:
        if resource.local == "plurals" and resource.attributes.get("translatable") != "false":
            forms = [item.attributes.get("quantity", "") for item in resource.elements]
            if forms:
                plurals.add(forms, f"line {lines.number_at(resource.start)}")
    plurals.warn()
    keys = RepeatedKeys()
    for resource in xml.root.elements:
        given = resource.attributes
        if given.get("translatable") != "false":
            kind = given.get("type", resource.local)
            keys.add(given.get("name", ""), resource.start, beside=(kind, given.get("product")))
    keys.warn(xml.content.text, options)
    place = place_of_attribute(xml, xml.root, "tools:locale")
    edits = [] if place is None else [Edit(*place, partial(_language, xml.root.attributes["tools:locale"]))]
    return SplicedDocument(xml.content, tuple(slots), tuple(edits))


def _language(given: str, languages: Direction) -> str:
    is_source = primary_language(given) == primary_language(languages.source)
    return languages.target if is_source else escaped_xml(given)


def _texts(xml: XmlText) -> Iterator[tuple[Element, str]]:
    """The elements that hold a text for people, each with the name of its resource."""
    for resource in xml.root.elements:
        if resource.attributes.get("translatable") == "false":
            continue
        name = resource.attributes.get("name", "")
        is_string = resource.local == "string" or (
            resource.local == "item" and resource.attributes.get("type") == "string"
        )
        if is_string:
            yield resource, name
        elif resource.local in _LISTS and not _is_for_programs(resource, name, xml):
            for item in resource.elements:
                if item.local == "item" and item.attributes.get("translatable") != "false":
                    yield item, name


def _is_for_programs(resource: Element, name: str, xml: XmlText) -> bool:
    """Whether a list holds what the choices of a setting mean for the program, such as light and dark, beside their texts."""
    return bool(_VALUES.fullmatch(name)) and all(_VALUE.fullmatch(xml.whole_text(item)) for item in resource.elements)


def _slots(xml: XmlText, element: Element, name: str, place: str) -> Iterator[Slot]:
    """The texts of a string: one for each of its blocks and CDATA sections."""
    reading = _Reading(xml)
    if _REFERENCE.fullmatch(xml.content.text, element.inner_start, element.inner_end):
        return
    for part in _blocks(element):
        if isinstance(part, XmlToken):
            start, end = _without_spaces(xml, part.start + _FIRST_CONTENT, part.end - _LAST_CONTENT)
            segment = reading.tagged(xml.content.text[start:end], place)
            if holds_text(segment, name):
                yield Slot(start, end, segment, _as_cdata)
            continue
        for run in inline_runs(xml, part, _kind_of):
            slot = _slot(xml, run, reading, name, place)
            if slot is not None:
                yield slot


def _blocks(element: Element) -> Iterator[Element | XmlToken]:
    """The CDATA sections of an element, and what stands between them and between blocks such as <li>."""
    group: list[Element | XmlToken] = []
    for child in element.children:
        is_block = isinstance(child, Element) and child.local in BLOCKS
        is_cdata = isinstance(child, XmlToken) and child.kind is XmlKind.CDATA
        if not (is_block or is_cdata):
            group.append(child)
            continue
        yield replace(element, children=group)
        group = []
        if isinstance(child, Element):
            yield from () if forbids_translation(child.attributes) else _blocks(child)
        else:
            yield child
    yield replace(element, children=group)


def _kind_of(element: Element) -> Inline:
    """A part that stays, as a placeholder, or a range such as <b>."""
    is_kept = (element.space == _XLIFF_NAMESPACE and element.local == "g") or forbids_translation(element.attributes)
    return Inline.WORD if is_kept else Inline.RANGE


def _slot(xml: XmlText, run: list[InlinePart], reading: "_Reading", name: str, place: str) -> Slot | None:
    """The text of a run of text and tags; None if there is nothing to translate."""
    start, end = _without_spaces(xml, run[0].start, run[-1].end)
    raw = xml.content.text[start:end]
    is_quoted = len(raw) > 1 and raw[0] == raw[-1] == '"' and not raw.endswith('\\"')
    if len(run) > 1 or _ENTITY.search(raw):
        pieces = tuple(piece for part in run for piece in reading.pieces(part, start, end))
        if not has_letter(plain_text(pieces)):
            return None
        segment = Segment(pieces, place, keeps_spaces=True, has_references=True)
        return Slot(start, end, segment, partial(_as_xml, is_quoted=is_quoted))
    segment = reading.tagged(unescaped_xml(raw), place)
    if not holds_text(segment, name):
        return None
    return Slot(start, end, segment, partial(_as_string, is_quoted=is_quoted))


def _without_spaces(xml: XmlText, start: int, end: int) -> tuple[int, int]:
    """Where text[start:end] begins and ends without the white space at its ends, which Android leaves out."""
    text = xml.content.text[start:end]
    first = start + len(text) - len(text.lstrip(" \t\r\n\f"))
    return first, max(first, start + len(text.rstrip(" \t\r\n\f")))


@dataclass(slots=True)
class _Reading:
    """Reads the texts of one string; quotation marks around white space keep it, also across tags."""

    xml: XmlText
    is_quoted: bool = False

    def pieces(self, part: InlinePart, start: int, end: int) -> Iterator[Piece]:
        """A part of a run as Android reads it, as far as it lies in a range; references to entities are words that stay."""
        if not isinstance(part.piece, str):
            yield part.piece
            return
        place, end = max(part.start, start), min(part.end, end)
        text = self.xml.content.text
        for match in [*_ENTITY.finditer(text, place, end), None]:
            if found := self.unescaped(unescaped_xml(text[place : match.start() if match else end])):
                yield found
            if match:
                yield Markup(Role.WORD, match.start(), match[0], match.start())
                place = match.end()

    def tagged(self, text: str, place: str) -> Segment:
        """The segment of a text whose tags are written as text: in a CDATA section, or as &lt;b&gt;."""
        if is_icu_message(text):
            return tagged_segment(self.unescaped(text), place)
        segment = tagged_segment(text, place)
        if any(isinstance(piece, Markup) and piece.inner is not None for piece in segment.pieces):
            return tagged_segment(self.unescaped(text), place)
        pieces = (self.unescaped(piece) if isinstance(piece, str) else piece for piece in segment.pieces)
        return replace(segment, pieces=tuple(filter(None, pieces)), is_label=False)

    def unescaped(self, text: str) -> str:
        """A text without its escapes; white space outside of quotation marks is one space."""
        return _ESCAPE.sub(self._sign, text)

    def _sign(self, match: re.Match[str]) -> str:
        if match["codes"]:
            units = bytes.fromhex(match["codes"].replace("\\u", ""))
            return units.decode("utf-16-be", "replace")
        if match["quote"]:
            self.is_quoted = not self.is_quoted
            return ""
        if match["spaces"]:
            return match[0] if self.is_quoted else " "
        return _SIGNS.get(match["sign"], match["sign"])


_TO_ESCAPE = re.compile(r"""[\\'"\n\t\u00a0\u00ad\u2000-\u200f\u2028-\u202f\u2060\ufeff]""")
_ESCAPED = {"\n": "\\n", "\t": "\\t"}
# White space that Android would leave out, or make one space.
_LOST_SPACES = re.compile(r"\A +| +\Z|(?<= ) +")


def _escaped(text: str) -> str:
    """A text with the escapes that Android needs, but not those of XML."""

    def code(match: re.Match[str]) -> str:
        sign = match[0]
        return _ESCAPED.get(sign) or (f"\\{sign}" if sign.isascii() else f"\\u{ord(sign):04X}")

    return _TO_ESCAPE.sub(code, text)


def _finished(text: str, *, is_quoted: bool = False) -> str:
    """The whole text of a string: a first @ or ? names no resource, and its spaces stay."""
    if is_quoted:
        return f'"{text}"'
    text = _LOST_SPACES.sub(lambda match: "\\u0020" * len(match[0]), text)
    return f"\\{text}" if text.startswith(("@", "?")) else text


def _as_xml(found: TranslatedSegment, *, is_quoted: bool) -> str:
    text = rendered(found.pieces, lambda piece: escaped_xml(_escaped(piece)))
    return _finished(text, is_quoted=is_quoted)


def _as_string(found: TranslatedSegment, *, is_quoted: bool) -> str:
    return _finished(escaped_xml(_with_tags(found)), is_quoted=is_quoted)


def _as_cdata(found: TranslatedSegment) -> str:
    return _finished(_with_tags(found)).replace("]]>", "]]]]><![CDATA[>")


def _with_tags(found: TranslatedSegment) -> str:
    """A text with its tags as text; the signs of an ICU message are escaped with it."""
    is_escaped = any(isinstance(piece, Markup) and piece.inner is None for piece in found.pieces)
    if not is_escaped:
        return _escaped(string_of(found))
    pieces = tuple(_escaped(piece) if isinstance(piece, str) else piece for piece in found.pieces)
    return string_of(replace(found, pieces=pieces))
