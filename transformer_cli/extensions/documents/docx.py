"""DOCX, the documents of Microsoft Word: paragraphs, tables, text boxes, notes, headers, footers, SmartArt and titles of charts."""

import logging
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import NamedTuple

from transformer_cli.extensions.documents.attribute_texts import slots_of_attributes, slots_of_labels
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    Document,
    Edit,
    InlinePart,
    Markup,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    language_after,
    nested,
    plain_text,
    stands_beside_word,
)
from transformer_cli.extensions.documents.translator import Extent
from transformer_cli.extensions.documents.xml import (
    Element,
    XmlText,
    attribute_edits,
    escaped_xml,
    language_edits_of,
    read_xml,
)
from transformer_cli.extensions.documents.zip_files import ZipDocument, opened_archive, read_part
from transformer_cli.process.errors import DataError
from transformer_cli.text.normalization import has_letter

logger = logging.getLogger(__name__)

_USUAL_BODY = "word/document.xml"
_BOUND = re.compile(rb"<w\d*:dataBinding\b")
_USUAL_OTHERS = re.compile(r"word/(?:(?:header|footer)\d*|footnotes|endnotes|numbering|styles)\.xml")
# How a package names the kinds of its parts, behind the last slash.
_MAIN = frozenset(["officeDocument"])
_WITH_TEXT = frozenset(
    ["header", "footer", "footnotes", "endnotes", "diagramData", "diagramDrawing", "chart", "numbering", "styles"]
)
# Another document that Word inserts when it opens this one.
_INSERTED = frozenset(["aFChunk"])
_PAGES = (".html", ".htm", ".xhtml")


def read_docx(data: bytes, options: ReadingOptions = DEFAULTS) -> ZipDocument:
    """A DOCX file.

    Text that was deleted or moved away under "track changes" stays, and so do comments and building blocks (the glossary of Word), which no page shows.

    Raises:
        DataError: it is no DOCX file, or is damaged, encrypted, too large, or made to harm.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DataError(
            "this is an old .doc file, or a .docx file with a password",
            hint="open it in a word processor and save it as .docx, without a password",
        )
    archive = opened_archive(data, options.limits)
    names = frozenset(archive.namelist())

    def related(part: str, kinds: frozenset[str]) -> list[str]:
        """The parts of some kinds to which a part, or the package itself, refers."""
        folder, _, name = part.rpartition("/")
        relations = posixpath.join(folder, "_rels", f"{name}.rels")
        if relations not in names:
            return []
        root = read_xml(read_part(archive, relations, options.limits), options).root
        found = _targets(root, kinds, folder)
        return [target for target in dict.fromkeys(found) if target in names]

    body = next(iter(related("", _MAIN)), _USUAL_BODY)
    if body not in names:
        raise DataError(
            f"this is no DOCX file: it has no {_USUAL_BODY}",
            hint="a spreadsheet or a presentation is not read; of a text document, open it in a word processor and save it as .docx",
        )
    parts: dict[str, Document] = {}
    others = related(body, _WITH_TEXT) or filter(_USUAL_OTHERS.fullmatch, names)
    for name in (body, *sorted(others)):
        part = read_part(archive, name, options.limits)
        if _BOUND.search(part):
            logger.warning(
                "%s has controls whose text is bound to data of the document (w:dataBinding): Word writes that data in the place of their "
                "translations when it opens the file; remove the binding, or change the data in Word",
                name,
            )
        parts[name] = _read_part(name, part, options)
    for name in related(body, _INSERTED):
        if name.lower().endswith(_PAGES):
            # Few documents have such pages.
            from transformer_cli.extensions.documents.html import read_html

            parts[name] = read_html(read_part(archive, name, options.limits), options)
        else:
            logger.warning(
                "%s is not translated: Word inserts this document when it opens the file; save it in Word, and it becomes text",
                name,
            )
    return ZipDocument(data, parts)


@dataclass(frozen=True, slots=True)
class _Initial:
    """The first letter of a text in a paragraph of its own, because it is larger than the others (a drop cap)."""

    xml: XmlText
    paragraph: Element
    text: str
    place: Extent
    """Of its text in the file."""

    @classmethod
    def of(cls, xml: XmlText, paragraph: Element, slots: Sequence[Slot]) -> "_Initial | None":
        """The letters of a paragraph that is one; None if it is another paragraph.

        Args:
            slots: its texts.
        """
        properties = paragraph.child("pPr")
        frame = None if properties is None else properties.child("framePr")
        kinds = (
            [] if frame is None else [value for name, value in frame.attributes.items() if name.endswith(":dropCap")]
        )
        if not {"drop", "margin"}.intersection(kinds) or len(slots) != 1:
            return None
        texts = [each for each in paragraph.walk() if is_text(each, "t") and xml.whole_text(each)]
        if len(texts) != 1 or not xml.whole_text(texts[0]).isalpha():
            return None
        place = texts[0].inner_start, texts[0].inner_end
        return cls(xml, paragraph, xml.whole_text(texts[0]), place)

    def is_before(self, paragraph: Element) -> bool:
        """Whether nothing stands between these letters and a paragraph."""
        return not self.xml.content.text[self.paragraph.end : paragraph.start].strip()

    def joined(self, slot: Slot) -> Slot:
        """The first text of the next paragraph, with these letters before it."""
        pieces = slot.segment.pieces
        first = next(at for at, piece in enumerate(pieces) if isinstance(piece, str))
        whole = (*pieces[:first], f"{self.text}{pieces[first]}", *pieces[first + 1 :])
        is_word = not str(pieces[first])[:1].isalnum()
        letters = re.compile(r"\W*\w*" if is_word else rf"\W*\w{{0,{len(self.text)}}}")
        segment = replace(slot.segment, pieces=whole)
        return Slot(self.place[0], slot.end, segment, partial(self._written, slot, letters))

    def _written(self, slot: Slot, letters: re.Pattern[str], found: TranslatedSegment) -> str:
        """The letters of the translation, and the rest of it behind them."""
        pieces, initial = list(found.pieces), ""
        for number, piece in enumerate(pieces):
            if isinstance(piece, str) and (match := letters.match(piece)):
                initial, pieces[number] = match[0], piece[match.end() :]
                break
        rest = replace(found, pieces=tuple(piece for piece in pieces if piece != ""))
        between = self.xml.content.text[self.place[1] : slot.start]
        return escaped_xml(initial) + between + slot.render(rest)


def _targets(relationships: Element, kinds: frozenset[str], folder: str) -> Iterator[str]:
    for element in relationships.elements:
        given = element.attributes
        if given.get("Type", "").rpartition("/")[2] in kinds and given.get("TargetMode") != "External":
            target = given.get("Target", "")
            path = target if target.startswith("/") else posixpath.join(folder, target)
            yield posixpath.normpath(path).lstrip("/")


def _read_part(name: str, data: bytes, options: ReadingOptions) -> SplicedDocument:
    xml = read_xml(data, options, part=name)
    paragraphs = _paragraphs(xml.root)
    slots: list[Slot] = []
    initial: _Initial | None = None
    for number, paragraph in enumerate(options.watch.over(paragraphs), 1):
        found = list(slots_of_paragraph(xml, paragraph, f"paragraph {number}"))
        if initial is not None and found and initial.is_before(paragraph):
            # The slot of the letters alone is the last one.
            slots[-1:] = [initial.joined(found.pop(0))]
        initial = _Initial.of(xml, paragraph, found)
        slots += found
    slots += _texts_of_attributes(xml)
    for slot in slots:
        options.watch.counted(slot.segment)
    return SplicedDocument(xml.content, tuple(slots), tuple(_language_edits(xml)))


def _texts_of_attributes(xml: XmlText) -> Iterator[Slot]:
    """The texts of pictures, tables and links that are shown elsewhere, words in the background, and those beside numbers."""
    number = 0
    for element in xml.root.walk():
        number += element.local == "docPr"
        if element.local in _WITH_ATTRIBUTES:
            names, place = _WITH_ATTRIBUTES[element.local]
            yield from slots_of_attributes(xml, element, names, place or f"picture {number}")
        elif element.local == "lvl" and (label := element.child("lvlText")) and not _has_bullets(element):
            yield from slots_of_labels(xml, label, ("val",))
        if element.space == _VML:
            yield from slots_of_attributes(xml, element, ("alt",), f"picture {number}")


def _has_bullets(level: Element) -> bool:
    """Whether a level of a list has signs in place of numbers."""
    kind = level.child("numFmt")
    return kind is not None and "bullet" in kind.attributes.values()


_VML = "urn:schemas-microsoft-com:vml"
# The attributes with texts, and where they stand for messages. A picture keeps a copy of its text in cNvPr, and one of a
# group has its own only there.
_WITH_ATTRIBUTES = {
    "docPr": (("title", "descr"), ""),
    "cNvPr": (("title", "descr"), ""),
    "tblCaption": (("val",), "description of a table"),
    "tblDescription": (("val",), "description of a table"),
    "hyperlink": (("tooltip",), "tip of a link"),
    "hlinkClick": (("tooltip",), "tip of a link"),
    "textpath": (("string",), "watermark"),
}


def _paragraphs(root: Element) -> Iterator[Element]:
    """The paragraphs, also those inside others, but not those in a control whose text is chosen from a list."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.local == "sdt" and _is_chosen(element):
            continue
        if is_text(element, "p"):
            yield element
        waiting += reversed(element.elements)


_WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_DRAWING = (
    "http://schemas.openxmlformats.org/drawingml/2006/main",
    "http://purl.oclc.org/ooxml/drawingml/main",
)
# Elements around runs whose text belongs to the sentence.
_WRAPPERS = frozenset(["hyperlink", "ins", "smartTag", "sdt", "customXml", "bdo", "dir", "moveTo"])
_BREAKS = frozenset(["br", "cr", "tab", "ptab"])
_SIGNS = {"noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
# What Word computes anew: it is left out of a translated text.
_FORGOTTEN = frozenset(["pPr", "endParaRPr", "proofErr", "lastRenderedPageBreak"])
# Fields that are no marks in runs, but elements of their own, and formulas.
_WHOLE_FIELDS = ("fldSimple", "fld", "oMath")
# Controls whose text is one of a list, or a date.
_CHOSEN = frozenset(["dropDownList", "date"])
# Parts of a format that nobody sees: in Word elements, in drawings attributes.
_UNSEEN = re.compile(r"<w:(?:lang|noProof)\b[^>]*/>")
_UNSEEN_ATTRIBUTE = re.compile(r"""\s+(?:lang|altLang|noProof|dirty|err|smtClean)=(?:"[^"]*"|'[^']*')""")
# Formats that are seen on a space, too: lines, colours behind it, borders.
_ON_SPACES = re.compile(r"""<\w+:(?:u|d?strike|highlight|shd|bdr)\b|\b(?:u|strike)=["'](?!no)""")

_EMPTY = re.compile(r"<\w+:rPr\s*(?:/>|>\s*</\w+:rPr\s*>)")


def is_text(element: Element, local: str) -> bool:
    """Whether an element belongs to the text of Word or of a drawing, such as SmartArt, and has this name."""
    return element.local == local and element.space in (*_WORD, *_DRAWING)


class _Sort(Enum):
    TEXT = "text"
    MARKUP = "markup"
    BREAK = "break"
    FIELD = "field"
    """A mark that begins, separates or ends a field, or its instruction; `_with_fields` makes MARKUP of them."""


class _Atom(NamedTuple):
    """A part of a paragraph, in order: text[start:end] of the file."""

    sort: _Sort
    start: int
    end: int
    run_format: str | None
    """The format of the run in which it begins, as XML; None outside of runs."""
    end_format: str | None
    """The format of the run in which it ends; another one than the first if it is a field of several runs."""
    text: str = ""
    """Of a TEXT; of a FIELD: what it does, or its instruction."""
    role: Role = Role.POINT
    """Of a MARKUP."""
    name: str = ""
    """The beginning and the end of a range have the same name; two points that belong together have one, too."""
    pair: Role | None = None
    """As in `InlinePart`."""
    parent: int = 0
    """Of a FIELD: where the element around its run begins."""


def slots_of_paragraph(xml: XmlText, paragraph: Element, place: str) -> Iterator[Slot]:
    """The texts of a paragraph between line breaks and tabs; those of text boxes in it are paragraphs of their own."""
    groups: list[list[_Atom]] = [[]]
    for atom in _with_raised_marks(_with_fields(list(_atoms(xml, paragraph)))):
        if atom.sort is _Sort.BREAK:
            groups.append([])
        else:
            groups[-1].append(atom)
    for group in groups:
        style = _Style.of(group, paragraph)
        run = nested(list(_inline_parts(xml, group, style)))
        pieces = tuple(part.piece for part in run)
        if has_letter(plain_text(pieces)):
            start, end = run[0].start, run[-1].end
            inside = [atom for atom in group if start <= atom.start and atom.end <= end]
            at_ends = inside[0].run_format, inside[-1].end_format
            yield Slot(start, end, Segment(pieces, place), partial(_written, style, at_ends))


@dataclass(frozen=True, slots=True)
class _Style:
    """The formats of a text."""

    prefix: str
    """Of the names of elements, such as w:."""
    text_tag: str
    """The start tag of text."""
    usual: str
    """The format of most of the characters, as XML; empty if it has none."""
    range_formats: dict[int, str] = field(default_factory=dict)
    """The format of each range that has another one, by its number."""
    mark_formats: dict[int | None, tuple[str | None, str | None]] = field(default_factory=dict)
    """The formats of the runs in which each mark begins and ends, by its place; None: outside of runs."""

    @classmethod
    def of(cls, atoms: "Sequence[_Atom]", paragraph: Element) -> "_Style":
        sizes: Counter[str] = Counter()
        space_counts: Counter[str] = Counter()
        for atom in atoms:
            sizes[atom.run_format or ""] += len(atom.text.strip())
            if atom.text.strip() != atom.text:
                space_counts[atom.run_format or ""] += 1
        usual = sizes.most_common(1)[0][0] if sizes else ""
        # The spaces between ranges get the usual format, and a line through or below them would be new.
        if _ON_SPACES.search(usual):
            plain = [each for each, _ in space_counts.most_common() if not _ON_SPACES.search(each)]
            usual = plain[0] if plain else usual
        prefix = paragraph.name.removesuffix("p")
        keeping = ' xml:space="preserve"' if paragraph.space in _WORD else ""
        return cls(prefix, f"<{prefix}t{keeping}>", usual)


def _atoms(xml: XmlText, parent: Element) -> Iterator[_Atom]:
    """The parts of a paragraph, or of an element around runs."""
    for child in parent.elements:
        if child.local in _FORGOTTEN:
            continue
        if is_text(child, "r"):
            yield from _atoms_of_run(xml, child, parent)
        elif child.local in _BREAKS:
            yield _Atom(_Sort.BREAK, child.start, child.end, None, None)
        elif child.local == "sdt" and _is_chosen(child):
            yield _markup(Role.WORD, child.start, child.end)
        elif child.local in _WRAPPERS and (inner := _inner(child)) is not None:
            yield _markup(Role.OPEN, child.start, inner.inner_start, child.local)
            yield from _atoms(xml, inner)
            yield _markup(Role.CLOSE, inner.inner_end, child.end, child.local)
        else:
            yield _mark(child)


def _markup(role: Role, start: int, end: int, name: str = "") -> _Atom:
    return _Atom(_Sort.MARKUP, start, end, None, None, role=role, name=name)


def _mark(element: Element) -> _Atom:
    """An element outside of runs that takes the place of a word, or of none, such as the end of a bookmark."""
    role = Role.WORD if element.local in _WHOLE_FIELDS else Role.POINT
    atom = _markup(role, element.start, element.end)
    for ending, pair in (("Start", Role.OPEN), ("End", Role.CLOSE)):
        if element.local.endswith(ending):
            number = next((value for name, value in element.attributes.items() if name.endswith(":id")), "")
            return atom._replace(pair=pair, name=f"{element.local.removesuffix(ending)} {number}")
    return atom


def _is_chosen(control: Element) -> bool:
    """Whether the text of a control is chosen from a list that stays."""
    properties = control.child("sdtPr")
    return properties is not None and any(each.local in _CHOSEN for each in properties.elements)


def _inner(wrapper: Element) -> Element | None:
    """The element that holds the runs of a wrapper; None if it is empty."""
    inner = wrapper.child("sdtContent") if wrapper.local == "sdt" else wrapper
    return inner if inner is not None and inner.elements else None


def _atoms_of_run(xml: XmlText, run: Element, parent: Element) -> Iterator[_Atom]:
    properties = run.child("rPr")
    run_format = "" if properties is None else _seen_format(xml, properties)
    children = [child for child in run.elements if child is not properties]
    for child in children:
        if child.local in _FORGOTTEN:
            continue
        atom = _Atom(_Sort.MARKUP, child.start, child.end, run_format, run_format)
        if child.local in _BREAKS:
            yield atom._replace(sort=_Sort.BREAK)
        elif child.local == "ruby" and (base := child.child("rubyBase")) is not None:
            # The reading above the text goes along; what is text stands in runs of its own.
            yield from _atoms_of_ruby(xml, child, base, atom)
        elif is_text(child, "t") or child.local in _SIGNS:
            text = _SIGNS.get(child.local) or _shown_text(xml, child)
            yield atom._replace(sort=_Sort.TEXT, text=text)
        elif (action := _field_action(xml, child)) is not None:
            if len(children) == 1:  # its whole run is the mark
                atom = _markup(Role.POINT, run.start, run.end)
            yield atom._replace(sort=_Sort.FIELD, text=action, parent=parent.start)
        else:
            yield atom


def _atoms_of_ruby(xml: XmlText, ruby: Element, base: Element, atom: _Atom) -> Iterator[_Atom]:
    if base.inner_end == base.inner_start:
        yield atom
        return
    name = "ruby"
    yield atom._replace(end=base.inner_start, end_format=None, role=Role.OPEN, name=name)
    yield from _atoms(xml, base)
    yield atom._replace(start=base.inner_end, run_format=None, role=Role.CLOSE, name=name)


def _seen_format(xml: XmlText, properties: Element) -> str:
    """The format of a run as XML, without what nobody sees; empty if nothing is left."""
    raw = xml.raw(properties)
    if properties.space in _DRAWING:
        tag = properties.inner_start - properties.start
        found = _UNSEEN_ATTRIBUTE.sub("", raw[:tag]) + raw[tag:]
    else:
        found = _UNSEEN.sub("", raw)
    return "" if _EMPTY.fullmatch(found) else found


def _shown_text(xml: XmlText, element: Element) -> str:
    text = xml.whole_text(element)
    if element.space in _DRAWING:
        return text
    return text if element.attributes.get("xml:space") == "preserve" else text.strip(" \t\r\n")


_BEGIN, _SEPARATE, _END = "begin", "separate", "end"


def _field_action(xml: XmlText, element: Element) -> str | None:
    """What an element of a run does for a field: begin, separate or end it, or name its instruction; else None."""
    if element.local == "instrText":
        return xml.whole_text(element)
    if element.local != "fldChar":
        return None
    return next((value for name, value in element.attributes.items() if name.endswith("fldCharType")), None)


class _Field(NamedTuple):
    """A field, by the indices of its marks."""

    begin: int
    separate: int | None
    end: int


def _fields(atoms: Sequence[_Atom]) -> Iterator[_Field]:
    """The fields that begin and end in the same element; one that goes on in another paragraph is none of them."""
    opened: dict[int, list[tuple[int, list[int]]]] = {}
    for index, atom in enumerate(atoms):
        waiting = opened.setdefault(atom.parent, [])
        if atom.sort is not _Sort.FIELD:
            continue
        if atom.text == _BEGIN:
            waiting.append((index, []))
        elif atom.text == _SEPARATE and waiting:
            waiting[-1][1].append(index)
        elif atom.text == _END and waiting:
            begin, middle = waiting.pop()
            yield _Field(begin, middle[0] if len(middle) == 1 else None, index)


def _with_fields(atoms: Sequence[_Atom]) -> Iterator[_Atom]:
    """Atoms in which a field, such as the number of a page, takes the place of a word; a link is a range of text."""
    found = {each.begin: each for each in _fields(atoms)}
    ends: dict[int, _Atom] = {}
    index = 0
    while index < len(atoms):
        atom, found_field = atoms[index], found.get(index)
        if found_field is None:
            kept = ends.get(index, atom)
            yield kept._replace(sort=_Sort.MARKUP) if kept.sort is _Sort.FIELD else kept
        elif found_field.separate is not None and _is_link(atoms[index : found_field.separate]):
            index = found_field.separate
            yield _joined(atom, atoms[index], Role.OPEN)
            last = atoms[found_field.end]
            ends[found_field.end] = _joined(last, last, Role.CLOSE)
        else:
            index = found_field.end
            yield _joined(atom, atoms[index], Role.WORD)
        index += 1


_RAISED = re.compile(r'vertAlign\s[^>]*="(super|sub)script"')


def _with_raised_marks(atoms: Iterable[_Atom]) -> Iterator[_Atom]:
    """Atoms in which a raised number, such as the mark of a footnote that somebody has typed, stands beside its word."""
    before = ""
    for atom in atoms:
        raised = _RAISED.search(atom.run_format or "") if atom.sort is _Sort.TEXT else None
        if raised and stands_beside_word(atom.text, before, is_lowered=raised[1] == "sub", language=None):
            yield atom._replace(sort=_Sort.MARKUP, role=Role.POINT)
            continue
        before = before + atom.text if atom.sort is _Sort.TEXT else ""
        yield atom


def _is_link(atoms: Iterable[_Atom]) -> bool:
    instruction = "".join(atom.text for atom in atoms if atom.sort is _Sort.FIELD and atom.text != _BEGIN)
    return instruction.strip().upper().startswith("HYPERLINK")


def _joined(first: _Atom, last: _Atom, role: Role) -> _Atom:
    return _Atom(_Sort.MARKUP, first.start, last.end, first.run_format, last.end_format, role=role, name="field")


def _inline_parts(xml: XmlText, atoms: Sequence[_Atom], style: _Style) -> Iterator[InlinePart]:
    """The parts of a segment: text in another format than the usual one stands in a range."""
    opened: str | None = None
    end = 0
    for atom in atoms:
        is_blank = atom.sort is _Sort.MARKUP or not atom.text.strip()
        wanted = None if atom.run_format in (None, style.usual) else atom.run_format
        is_edge = atom.sort is _Sort.MARKUP and atom.role in (Role.OPEN, Role.CLOSE)
        if is_edge or (is_blank and wanted != opened):
            wanted = None
        if opened is not None and wanted != opened:
            yield InlinePart(Markup(Role.CLOSE, 0, ""), end, end, "format")
        if wanted is not None and wanted != opened:
            style.range_formats[atom.start] = wanted
            yield InlinePart(Markup(Role.OPEN, atom.start, ""), atom.start, atom.start, "format")
        opened, end = wanted, atom.end
        if atom.sort is _Sort.TEXT:
            yield InlinePart(atom.text, atom.start, end)
            continue
        style.mark_formats[atom.start] = atom.run_format, atom.end_format
        raw = xml.content.text[atom.start : end]
        piece = Markup(atom.role, atom.start, raw, atom.start)
        yield InlinePart(piece, atom.start, end, atom.name, atom.pair)
    if opened is not None:
        yield InlinePart(Markup(Role.CLOSE, 0, ""), end, end, "format")


@dataclass(slots=True)
class _Runs:
    """Writes text and marks in runs."""

    prefix: str
    run_format: str | None
    """Of the run in which the next part stands; None outside of runs."""
    empty_text: str = ""
    """What stands in a run without content, where the format allows none."""
    parts: list[str] = field(default_factory=list)
    is_empty: bool = True
    """Whether the run has no content yet."""

    def write(self, part: str, begins: str | None, ends: str | None) -> None:
        """Write a part that begins and ends in runs of two formats; None: outside of runs."""
        if self.run_format != begins:
            if self.run_format is not None:
                self.fill()
                self.parts.append(f"</{self.prefix}r>")
            self.parts += [] if begins is None else [f"<{self.prefix}r>", begins]
            self.is_empty = True
        self.parts.append(part)
        self.run_format = ends
        self.is_empty = self.is_empty and not part

    def fill(self) -> None:
        """Give a run without content an empty text."""
        if self.is_empty and self.run_format is not None:
            self.parts.append(self.empty_text)


def _written(style: _Style, at_ends: tuple[str | None, str | None], found: TranslatedSegment) -> str:
    """The runs of a translated text.

    Args:
        at_ends: the formats of the runs in which the text begins and ends; None: outside of runs.
    """
    is_drawing = "xml:space" not in style.text_tag
    empty = f"{style.text_tag}</{style.prefix}t>" if is_drawing else ""
    runs = _Runs(style.prefix, at_ends[0], empty)
    formats = [style.usual]
    for piece in found.pieces:
        if isinstance(piece, str):
            text = f"{style.text_tag}{escaped_xml(piece)}</{style.prefix}t>"
            runs.write(text, formats[-1], formats[-1])
        elif piece.raw:
            runs.write(piece.raw, *style.mark_formats[piece.start])
        elif piece.role is Role.OPEN:
            formats.append(style.range_formats[piece.number])
        else:
            formats.pop()
    runs.write("", at_ends[1], at_ends[1])
    runs.fill()
    return "".join(runs.parts)


_LANGUAGES_OF_WORD = ("val", "eastAsia", "bidi")


def _language_edits(xml: XmlText) -> list[Edit]:
    """The languages in a part of a DOCX file that are the source language.

    What a paragraph has where nothing else is said is the target language afterwards, whatever it was: all text is translated.
    """
    edits = []
    usual = {each.start for element in _usual_formats(xml.root) for each in element.walk()}
    for element in xml.root.walk():
        if element.local == "lang":
            for name in element.attributes:
                if (local := name.rpartition(":")[2]) in _LANGUAGES_OF_WORD:
                    is_usual = local == "val" and element.start in usual
                    edits += attribute_edits(xml, element, name, partial(language_after, is_usual=is_usual))
        elif element.local in ("rPr", "endParaRPr", "defRPr"):
            edits += language_edits_of(xml, element, "lang")
    return edits


def _usual_formats(styles: Element) -> Iterator[Element]:
    """The formats that a paragraph has where nothing else is said."""
    for element in styles.elements:
        given = {name.rpartition(":")[2]: value for name, value in element.attributes.items()}
        is_style = element.local == "style" and given.get("type") == "paragraph"
        if element.local == "docDefaults" or (is_style and given.get("default") in ("1", "true", "on")):
            yield element
