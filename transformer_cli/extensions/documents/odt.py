"""ODT, ODP and ODS, the documents of LibreOffice: paragraphs, headings, tables, notes, headers and footers."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TypeGuard

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.attribute_texts import slots_of_attributes, slots_of_labels
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    Edit,
    Markup,
    Piece,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    becomes_target_language,
    plain_text,
    rendered,
    stands_beside_word,
    with_whole_words,
)
from transformer_cli.extensions.documents.xml import (
    Element,
    Inline,
    XmlText,
    XmlToken,
    as_attribute,
    attribute_edits,
    escaped_xml,
    inline_runs,
    place_of_attribute,
    read_xml,
    unescaped_xml,
)
from transformer_cli.extensions.documents.zip_files import ZipDocument, opened_archive, read_part
from transformer_cli.process.errors import DataError
from transformer_cli.text.normalization import has_letter

_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_CHART = "urn:oasis:names:tc:opendocument:xmlns:chart:1.0"
_FORM = "urn:oasis:names:tc:opendocument:xmlns:form:1.0"
_PRESENTATION = "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"
_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
_SVG = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
_TITLES = frozenset(["title", "subtitle", "footer"])
_PARTS = ("content.xml", "styles.xml")
_MANIFEST = "META-INF/manifest.xml"
_RANGES = frozenset(["a", "meta", "meta-field", "ruby", "ruby-base", "span"])
_FORMAT = "text:span"
_BREAKS = frozenset(["line-break", "tab"])
# From the title in the template of an index, such as a table of contents, the program writes its title anew.
_PARAGRAPHS = frozenset(["p", "h", "index-title-template"])
# Elements that stand between two words, as do the ends and marks without characters (bookmark-start, toc-mark); all others
# are fields, such as the number of a page.
_POINTS = frozenset(
    [
        "bookmark",
        "change",
        "note",
        "number",
        "reference-mark",
        "ruby-text",
        "script",
        "soft-page-break",
    ]
)
_ENDINGS_OF_POINTS = ("-start", "-end", "-mark")
# Their content is no text of the document.
_HIDDEN = frozenset(["annotation", "tracked-changes"])
# The values of cells whose text the program writes anew, such as numbers and dates.
_TEXT_OF_CELL = "string"
_WITH_NUMBERS = frozenset(["list-level-style-number", "outline-level-style"])
_AROUND_NUMBERS = ("num-prefix", "num-suffix", "num-list-format")
_WITH_LABELS = frozenset(["button", "checkbox", "column", "fixed-text", "frame", "radio"])
_SLIDE_DECLARATIONS = frozenset(["header-decl", "footer-decl", "date-time-decl"])
_CELLS = frozenset(["table-cell", "covered-table-cell"])
_NUMBER = re.compile(r"[0-9]{1,7}")


def read_odt(data: bytes, options: ReadingOptions = DEFAULTS) -> ZipDocument:
    """An ODT file; also a presentation (ODP) or a table (ODS), whose texts have the same form.

    Raises:
        DataError: it is no such file, or is damaged, encrypted, too large, or made to harm.
    """
    archive = opened_archive(data, options.limits)
    if "content.xml" not in archive.namelist():
        raise DataError("this is no ODT file: it has no content.xml")
    if _MANIFEST in archive.namelist() and b"encryption-data" in read_part(archive, _MANIFEST, options.limits):
        raise DataError(
            "this document has a password",
            hint="open it in a word processor and save it without one",
        )
    xmls = {
        name: read_xml(read_part(archive, name, options.limits), options, part=name)
        for name in _PARTS
        if name in archive.namelist()
    }
    levels = _levels_of_styles(xmls)
    parts = {name: _read_part(xml, levels[name], options) for name, xml in xmls.items()}
    for name in archive.namelist():
        # A formula has no text of its own.
        if name.endswith("/content.xml") and _TEXT.encode() in (
            data_of_part := read_part(archive, name, options.limits)
        ):
            xml = read_xml(data_of_part, options, part=name)
            is_chart = any(each.space == _CHART for each in xml.root.walk())
            part = _titles_of_chart(xml, options) if is_chart else _read_part(xml, {}, options)
            if part.segments:
                parts[name] = part
    return ZipDocument(data, parts)


def _titles_of_chart(xml: XmlText, options: ReadingOptions) -> SplicedDocument:
    """The titles of a chart and its axes; its other texts are names of data, or stand in a table beside it."""
    titles = [each for each in xml.root.walk() if each.space == _CHART and each.local in _TITLES]
    paragraphs = [each for title in titles for each in title.elements if _is_paragraph(each)]
    found = [
        slot
        for number, paragraph in enumerate(options.watch.over(paragraphs), 1)
        for slot in _slots_of_paragraph(xml, paragraph, {}, f"title {number}")
    ]
    slots = (slot._replace(segment=options.watch.counted(slot.segment)) for slot in found)
    return SplicedDocument(xml.content, tuple(slots))


def _read_part(xml: XmlText, levels: Mapping[str, int], options: ReadingOptions) -> SplicedDocument:
    slots = []
    number = 0
    cells = list(_places_of_cells(xml.root))
    for element in options.watch.over(_visible(xml.root)):
        before = bisect_right(cells, element.start, key=itemgetter(0))
        _, end, cell = cells[before - 1] if before else (0, 0, "")
        place = cell if element.start < end else f"paragraph {number + 1}"
        if _is_alternative(element):
            found = _slots_of_paragraph(xml, element, {}, "picture")
        elif _is_paragraph(element):
            number += 1
            found = _slots_of_paragraph(xml, element, levels, place)
        else:
            found = _slots_of_value(xml, element, place)
        for slot in found:
            slots.append(slot._replace(segment=options.watch.counted(slot.segment)))
    for slot in _texts_outside_paragraphs(xml):
        slots.append(slot._replace(segment=options.watch.counted(slot.segment)))
    return SplicedDocument(xml.content, tuple(slots), tuple(_language_edits(xml)))


def _texts_outside_paragraphs(xml: XmlText) -> Iterator[Slot]:
    """Words beside the numbers of a list, tips of links, labels of forms, the footers of slides, and places to fill in."""
    waiting = [xml.root]
    while waiting:
        element = waiting.pop()
        if element.local in _HIDDEN:
            continue
        waiting += reversed(element.elements)
        if element.local in _WITH_NUMBERS:
            yield from slots_of_labels(xml, element, _AROUND_NUMBERS)
        elif element.local == "a":
            yield from slots_of_attributes(xml, element, ("title",), "tip of a link")
        elif element.space == _FORM and element.local in _WITH_LABELS:
            yield from slots_of_attributes(xml, element, ("label", "title"), "label of a form")
        elif element.space == _PRESENTATION and element.local in _SLIDE_DECLARATIONS:
            yield from _slot_of_content(xml, element, "header or footer of slides")
        elif element.space == _TEXT and element.local == "placeholder":
            yield from _slot_of_content(xml, element, "place to fill in")


_IN_BRACKETS = re.compile(r"(?:&lt;)?(.*?)(?:&gt;)?", re.DOTALL)


def _slot_of_content(xml: XmlText, element: Element, place: str) -> Iterator[Slot]:
    """The text of an element that has nothing else, without the angle brackets around it."""
    content = xml.content.text
    found = _IN_BRACKETS.fullmatch(content, element.inner_start, element.inner_end)
    if found is not None and "<" not in found[1] and has_letter(text := unescaped_xml(found[1])):
        yield Slot(*found.span(1), Segment.plain(text, place), _as_xml)


def _places_of_cells(root: Element) -> Iterator[tuple[int, int, str]]:
    """Of each cell of a spreadsheet, where it begins and ends in the file, and its sheet and name, such as B3."""
    body = root.child("body")
    spreadsheet = None if body is None else body.child("spreadsheet")
    for sheet in () if spreadsheet is None else spreadsheet.elements:
        row = 1
        for line in (each for each in sheet.walk() if each.local == "table-row"):
            column = 1
            for cell in (each for each in line.elements if each.local in _CELLS):
                name = f"sheet {sheet.attributes.get('table:name', '')}, cell {_letters_of(column)}{row}"
                yield cell.start, cell.end, name
                column += _times(cell, "table:number-columns-repeated")
            row += _times(line, "table:number-rows-repeated")


def _letters_of(column: int) -> str:
    """A, B, ... Z, AA, AB, ..."""
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def _times(element: Element, name: str) -> int:
    """How often a row or cell stands there; no spreadsheet has more than millions."""
    given = element.attributes.get(name, "")
    return int(given) if _NUMBER.fullmatch(given) else 1


def _slots_of_paragraph(xml: XmlText, paragraph: Element, levels: Mapping[str, int], place: str) -> Iterator[Slot]:
    marks = set(_raised_marks(xml, paragraph, levels))

    def kind_of(element: Element) -> Inline:
        return Inline.POINT if element.start in marks else _kind_of(element)

    for run in inline_runs(xml, paragraph, kind_of, _pair_of):
        run = with_whole_words(run, format_name=_FORMAT)
        pieces = tuple(part.piece for part in run)
        if has_letter(plain_text(pieces)):
            inner = (pieces[at] for at in _between_words(pieces))
            between = frozenset(each.start for each in inner if _is_spaces(each))
            yield Slot(run[0].start, run[-1].end, Segment(pieces, place), partial(_as_xml, between=between))


def _slots_of_value(xml: XmlText, cell: Element, place: str) -> Iterator[Slot]:
    """The value of a cell that is text, if it is an attribute: it counts more than the paragraphs in the cell.

    Source: OpenDocument 1.3, part 3, attribute office:string-value.
    """
    name = next((name for name in cell.attributes if name.endswith(":string-value")), "")
    where = place_of_attribute(xml, cell, name)
    if where is not None and has_letter(cell.attributes[name]):
        yield Slot(*where, Segment.plain(cell.attributes[name], place), as_attribute)


def _visible(root: Element) -> Iterator[Element]:
    """The cells with a text that nothing computes, and the paragraphs that people read, also those inside others, such as footnotes."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.local in _HIDDEN:
            continue
        if _is_computed(element):
            # What stands in front of such a cell is no part of its text, such as a text box.
            waiting += reversed([each for child in element.elements for each in _in_front(child)])
            continue
        if element.local in _CELLS or _is_paragraph(element) or _is_alternative(element):
            yield element
        waiting += reversed(element.elements)


def _is_alternative(element: Element) -> bool:
    """Whether an element is the title or the description of a picture or the like, for people who do not see it."""
    return element.space in (_SVG, _TABLE) and element.local in ("title", "desc")


def _is_paragraph(element: Element) -> bool:
    return element.space == _TEXT and element.local in _PARAGRAPHS


def _in_front(child: Element) -> list[Element]:
    """The elements of a computed cell but its own paragraphs, in which others may stand."""
    return child.elements if _is_paragraph(child) else [child]


def _is_computed(element: Element) -> bool:
    """Whether an element is a cell whose text the program computes: from a formula, a number or a date."""
    if element.local not in _CELLS:
        return False
    given = {name.rpartition(":")[2]: value for name, value in element.attributes.items()}
    return "formula" in given or given.get("value-type", _TEXT_OF_CELL) != _TEXT_OF_CELL


def _kind_of(element: Element) -> Inline:
    if element.space != _TEXT:
        return Inline.POINT
    if element.local in _BREAKS:
        return Inline.BREAK
    if element.local == "s":
        return Inline.SPACES
    if element.local in _RANGES:
        return Inline.RANGE
    is_mark = not element.children and element.local.endswith(_ENDINGS_OF_POINTS)
    return Inline.POINT if is_mark or element.local in _POINTS else Inline.WORD


# Styles can name each other as parents in a circle.
_MOST_PARENTS = 50
_SHARE = re.compile(r"-?\d{1,9}")


def _levels_of_styles(xmls: Mapping[str, XmlText]) -> dict[str, dict[str, int]]:
    """For each part of the file how far the styles of characters raise (above 0) or lower (below 0) their text.

    A style that names no position has that of its parent. Those of styles.xml count in content.xml, too.

    Source: OpenDocument 1.3, part 3, section 20.397 (style:text-position).
    """
    part_styles = {name: dict(_named_styles(xml.root)) for name, xml in xmls.items()}
    common = part_styles.get("styles.xml", {})
    found = {}
    for part, own in part_styles.items():
        styles = common | own
        found[part] = {name: _level(name, styles) for name in styles}
    return found


def _named_styles(root: Element) -> Iterator[tuple[str, tuple[str, str]]]:
    """The name of each style of characters, with its position (empty if it names none) and its parent."""
    for group in root.elements:
        if group.local not in ("automatic-styles", "styles"):
            continue
        for style in group.elements:
            if style.attributes.get("style:family") == "text":
                properties = style.child("text-properties")
                position = properties.attributes.get("style:text-position", "") if properties else ""
                parent = style.attributes.get("style:parent-style-name", "")
                yield style.attributes.get("style:name", ""), (position, parent)


def _level(name: str, styles: Mapping[str, tuple[str, str]]) -> int:
    for _ in range(_MOST_PARENTS):
        if name not in styles:
            break
        position, name = styles[name]
        if position.strip():
            share = _SHARE.match(position.strip())
            return int(share[0]) if share else {"super": 1, "sub": -1}.get(position.split()[0], 0)
    return 0


# Text of more characters before a mark does not change what it is.
_LONGEST_WORD = 50


def _raised_marks(xml: XmlText, paragraph: Element, levels: Mapping[str, int]) -> Iterator[int]:
    """Where the spans begin that are raised or lowered and no part of the word before them."""
    before = ""
    waiting: list[Element | XmlToken] = [*reversed(paragraph.children)]
    while waiting:
        child = waiting.pop()
        if isinstance(child, XmlToken):
            before = (before + xml.text_of(child))[-_LONGEST_WORD:]
            continue
        level = levels.get(child.attributes.get("text:style-name", ""), 0) if child.local == "span" else 0
        if level:
            text = xml.whole_text(child)
            if stands_beside_word(text, before, is_lowered=level < 0, language=None):
                yield child.start
            before = (before + text)[-_LONGEST_WORD:]
        elif _kind_of(child) is Inline.RANGE:
            waiting += reversed(child.children)
        elif _kind_of(child) is not Inline.POINT:
            before += " "


_SPACES = re.compile(r"<(?:[\w.-]+:)?s(?=[\s/>])")
_ENDS = {"start": Role.OPEN, "end": Role.CLOSE}


def _pair_of(element: Element) -> tuple[Role, str] | None:
    """The ends of a bookmark, a reference, a change, an entry of an index, or a comment."""
    if element.local == "annotation":
        kind, end = "annotation", "start"
    else:
        kind, _, end = element.local.rpartition("-")
    names = (
        element.attributes[f"{prefix}:{name}"]
        for prefix in ("text", "office")
        for name in ("name", "change-id", "id")
        if f"{prefix}:{name}" in element.attributes
    )
    name = next(names, None)
    return None if end not in _ENDS or name is None else (_ENDS[end], f"{kind} {name}")


def _as_xml(found: TranslatedSegment, *, between: frozenset[int | None] = frozenset()) -> str:
    """The pieces as XML; the space that stands for <text:s/> in the text is not written beside it.

    Args:
        between: the places of each <text:s/> between two words, which is left out where it would stand before or behind all words.
    """
    pieces: list[Piece] = []
    inner = _between_words(found.pieces)
    was_spaces = False
    for at, piece in enumerate(found.pieces):
        if isinstance(piece, str) and was_spaces:
            piece = piece.removeprefix(" ")
        was_spaces = _is_spaces(piece)
        if not (_is_spaces(piece) and piece.start in between) or at in inner:
            pieces.append(piece)
    return rendered(pieces, escaped_xml)


def _between_words(pieces: Sequence[Piece]) -> range:
    """The indices of the pieces behind the first word and before the last."""
    words = [
        at for at, piece in enumerate(pieces) if (piece.strip() if isinstance(piece, str) else piece.role is Role.WORD)
    ]
    return range(words[0] + 1, words[-1]) if words else range(0)


def _is_spaces(piece: Piece) -> TypeGuard[Markup]:
    return isinstance(piece, Markup) and _SPACES.match(piece.raw) is not None


# Each kind of script in an OpenDocument file has a language and a country of its own.
_LANGUAGES_OF_STYLE = (
    ("fo:language", "fo:country"),
    ("style:language-asian", "style:country-asian"),
    ("style:language-complex", "style:country-complex"),
)


def _language_edits(xml: XmlText) -> list[Edit]:
    """The languages in the styles of an OpenDocument file that are the source language; docx.py has those of Word."""
    edits = []
    for group in xml.root.elements:
        for style in group.elements:
            is_usual = style.local == "default-style"
            for element in (each for each in style.elements if each.local == "text-properties"):
                for names in _LANGUAGES_OF_STYLE:
                    is_of_text = is_usual and names[0] == "fo:language"
                    language = element.attributes.get(names[0], "")
                    edits += attribute_edits(xml, element, names[0], partial(_language, is_usual=is_of_text))
                    edits += attribute_edits(xml, element, names[1], partial(_country, language, is_usual=is_of_text))
    return edits


def _language(given: str, languages: Direction, *, is_usual: bool) -> str:
    is_changed = becomes_target_language(given, languages, is_usual=is_usual)
    return languages.target.replace("_", "-").partition("-")[0] if is_changed else given


def _country(language: str, given: str, languages: Direction, *, is_usual: bool) -> str:
    if not becomes_target_language(language, languages, is_usual=is_usual):
        return given
    country = languages.target.replace("_", "-").rpartition("-")[2]
    return country.upper() if country.isalpha() and country != languages.target and len(country) == 2 else "none"
