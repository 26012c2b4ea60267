"""DOCX, the documents of Microsoft Word: paragraphs, tables, text boxes, notes, headers and footers."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import NamedTuple

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    Document,
    InlinePart,
    Markup,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    has_letter,
    nested_runs,
    plain_text,
)
from transformer_cli.extensions.documents.xml import Element, XmlText, escaped_xml, read_xml
from transformer_cli.extensions.documents.zip_files import ZipDocument, opened_archive, read_part
from transformer_cli.process.errors import DataError

_BODY = "word/document.xml"
_OTHERS = re.compile(r"word/(?:header|footer)\d*\.xml|word/(?:footnotes|endnotes)\.xml")


def read_docx(data: bytes, options: ReadingOptions = DEFAULTS) -> ZipDocument:
    """A DOCX file.

    Text that was deleted or moved away under "track changes" stays, and so do comments.

    Raises:
        DataError: it is no DOCX file, or is damaged, encrypted, too large, or made to harm.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DataError(
            "this is an old .doc file, or a .docx file with a password",
            hint="open it in a word processor and save it as .docx, without a password",
        )
    archive = opened_archive(data, options.limits)
    names = archive.namelist()
    if _BODY not in names:
        raise DataError(f"this is no DOCX file: it has no {_BODY}")
    parts: dict[str, Document] = {}
    for name in (_BODY, *sorted(filter(_OTHERS.fullmatch, names))):
        parts[name] = _read_part(read_part(archive, name, options.limits), options)
    return ZipDocument(data, parts)


def _read_part(data: bytes, options: ReadingOptions) -> SplicedDocument:
    xml = read_xml(data, options)
    paragraphs = (element for element in xml.root.walk() if is_word(element, "p"))
    slots = []
    for number, paragraph in enumerate(options.watch.over(paragraphs), 1):
        for slot in slots_of_paragraph(xml, paragraph, f"paragraph {number}"):
            options.watch.counted(slot.segment)
            slots.append(slot)
    return SplicedDocument(xml.content, tuple(slots))


_SPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
# Elements around runs whose text belongs to the sentence.
_WRAPPERS = frozenset(["hyperlink", "ins", "smartTag", "sdt", "customXml", "bdo", "dir", "moveTo"])
_BREAKS = frozenset(["br", "cr", "tab", "ptab"])
_SIGNS = {"noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
# What Word computes anew: it is left out of a translated text.
_FORGOTTEN = frozenset(["pPr", "proofErr", "lastRenderedPageBreak"])
# Parts of a format that nobody sees.
_UNSEEN = re.compile(r"<w:(?:lang|noProof)\b[^>]*/>")

_EMPTY = re.compile(r"<\w+:rPr\s*(?:/>|>\s*</\w+:rPr\s*>)")


def is_word(element: Element, local: str) -> bool:
    """Whether an element belongs to the text of Word and has this name."""
    return element.local == local and element.space in _SPACES


class _Sort(Enum):
    TEXT = "text"
    MARKUP = "markup"
    BREAK = "break"


class _Atom(NamedTuple):
    """A part of a paragraph, in order: text[start:end] of the file."""

    sort: _Sort
    start: int
    end: int
    run_format: str | None
    """The format of the run in which it stands, as XML; None outside of runs."""
    text: str = ""
    """Of a TEXT."""
    role: Role = Role.POINT
    """Of a MARKUP."""
    name: str = ""
    """A range begins and ends with the same name."""


def slots_of_paragraph(xml: XmlText, paragraph: Element, place: str) -> Iterator[Slot]:
    """The texts of a paragraph between line breaks and tabs; those of text boxes in it are paragraphs of their own."""
    groups: list[list[_Atom]] = [[]]
    for atom in _atoms(xml, paragraph):
        if atom.sort is _Sort.BREAK:
            groups.append([])
        else:
            groups[-1].append(atom)
    for group in groups:
        style = _Style.of(group, paragraph.name.removesuffix("p"))
        for run in nested_runs(list(_inline_parts(xml, group, style))):
            pieces = tuple(part.piece for part in run)
            if has_letter(plain_text(pieces)):
                start, end = run[0].start, run[-1].end
                inside = [atom for atom in group if start <= atom.start and atom.end <= end]
                at_ends = inside[0].run_format, inside[-1].run_format
                yield Slot(start, end, Segment(pieces, place), partial(_written, style, at_ends))


@dataclass(frozen=True, slots=True)
class _Style:
    """The formats of a text."""

    prefix: str
    """Of the names of elements, such as w:."""
    usual: str
    """The format of most of the characters, as XML; empty if it has none."""
    of_ranges: dict[int, str] = field(default_factory=dict)
    """The format of each range that has another one, by its number."""
    of_marks: dict[int, str] = field(default_factory=dict)
    """The format of each mark that stands in a run, by its number."""

    @classmethod
    def of(cls, atoms: "Sequence[_Atom]", prefix: str) -> "_Style":
        sizes: Counter[str] = Counter()
        for atom in atoms:
            sizes[atom.run_format or ""] += len(atom.text.strip())
        return cls(prefix, sizes.most_common(1)[0][0] if sizes else "")


def _atoms(xml: XmlText, parent: Element) -> Iterator[_Atom]:
    """The parts of a paragraph, or of an element around runs."""
    children = parent.elements
    ends = _ends_of_fields(children)
    index = 0
    while index < len(children):
        child = children[index]
        field_end = ends.get(index)
        if field_end is not None:
            yield from _field(xml, children[index : field_end + 1])
            index = field_end + 1
            continue
        index += 1
        if child.local in _FORGOTTEN:
            continue
        if is_word(child, "r"):
            yield from _atoms_of_run(xml, child)
        elif child.local in _WRAPPERS and (inner := _inner(child)) is not None:
            yield _markup(Role.OPEN, child.start, inner.inner_start, child.local)
            yield from _atoms(xml, inner)
            yield _markup(Role.CLOSE, inner.inner_end, child.end, child.local)
        else:
            role = Role.WORD if child.local == "fldSimple" else Role.POINT
            yield _markup(role, child.start, child.end)


def _markup(role: Role, start: int, end: int, name: str = "") -> _Atom:
    return _Atom(_Sort.MARKUP, start, end, None, role=role, name=name)


def _inner(wrapper: Element) -> Element | None:
    """The element that holds the runs of a wrapper; None if it is empty."""
    inner = wrapper.child("sdtContent") if wrapper.local == "sdt" else wrapper
    return inner if inner is not None and inner.elements else None


def _atoms_of_run(xml: XmlText, run: Element) -> Iterator[_Atom]:
    properties = run.child("rPr")
    run_format = "" if properties is None else _UNSEEN.sub("", xml.raw(properties))
    run_format = "" if _EMPTY.fullmatch(run_format) else run_format
    for child in run.elements:
        if child is properties or child.local in _FORGOTTEN:
            continue
        if child.local in _BREAKS:
            yield _Atom(_Sort.BREAK, child.start, child.end, run_format)
        elif is_word(child, "t") or child.local in _SIGNS:
            text = _SIGNS.get(child.local) or _shown_text(xml, child)
            yield _Atom(_Sort.TEXT, child.start, child.end, run_format, text)
        else:
            yield _Atom(_Sort.MARKUP, child.start, child.end, run_format)


def _shown_text(xml: XmlText, element: Element) -> str:
    text = xml.whole_text(element)
    return text if element.attributes.get("xml:space") == "preserve" else text.strip(" \t\r\n")


def _field_mark(child: Element) -> str | None:
    """What a run does for a field: begin, separate or end it."""
    if not is_word(child, "r"):
        return None
    for element in child.elements:
        if element.local == "fldChar":
            return next(
                (
                    value
                    for name, value in element.attributes.items()
                    if name.endswith("fldCharType")
                ),
                None,
            )
    return None


def _ends_of_fields(children: Sequence[Element]) -> dict[int, int]:
    """For the index of each run that begins a field, the index of the run that ends it, if one does."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for index, child in enumerate(children):
        mark = _field_mark(child)
        if mark == "begin":
            opened.append(index)
        elif mark == "end" and opened:
            ends[opened.pop()] = index
    return ends


def _field(xml: XmlText, runs: Sequence[Element]) -> Iterator[_Atom]:
    """A field, such as the number of a page: it takes the place of a word, but the text of a link is translated."""
    start, end = runs[0].start, runs[-1].end
    middle = [at for at, run in enumerate(runs) if _field_mark(run) == "separate"]
    instruction = "".join(xml.whole_text(run) for run in runs[: middle[0] if middle else None])
    if len(middle) != 1 or not instruction.strip().upper().startswith("HYPERLINK"):
        yield _markup(Role.WORD, start, end)
        return
    first, last = middle[0] + 1, len(runs) - 1
    yield _markup(Role.OPEN, start, runs[middle[0]].end, "field")
    for run in runs[first:last]:
        yield from _atoms_of_run(xml, run) if is_word(run, "r") else ()
    yield _markup(Role.CLOSE, runs[last].start, end, "field")


def _inline_parts(xml: XmlText, atoms: Sequence[_Atom], style: _Style) -> Iterator[InlinePart]:
    """The parts of a segment: text in another format than the usual one stands in a range."""
    opened: str | None = None
    end = 0
    for atom in atoms:
        is_blank = atom.sort is _Sort.MARKUP or not atom.text.strip()
        wanted = None if atom.run_format in (None, style.usual) else atom.run_format
        if is_blank and wanted != opened:
            wanted = None
        if opened is not None and wanted != opened:
            yield InlinePart(Markup(Role.CLOSE, 0, ""), end, end, "format")
        if wanted is not None and wanted != opened:
            style.of_ranges[atom.start] = wanted
            yield InlinePart(Markup(Role.OPEN, atom.start, ""), atom.start, atom.start, "format")
        opened, end = wanted, atom.end
        if atom.sort is _Sort.TEXT:
            yield InlinePart(atom.text, atom.start, end)
            continue
        if atom.run_format is not None:
            style.of_marks[atom.start] = atom.run_format
        raw = xml.content.text[atom.start : end]
        yield InlinePart(Markup(atom.role, atom.start, raw, atom.start), atom.start, end, atom.name)
    if opened is not None:
        yield InlinePart(Markup(Role.CLOSE, 0, ""), end, end, "format")


@dataclass(slots=True)
class _Runs:
    """Writes text and marks in runs."""

    prefix: str
    run_format: str | None
    """Of the run in which the next part stands; None outside of runs."""
    parts: list[str] = field(default_factory=list)

    def inside(self, part: str, run_format: str) -> None:
        """Write a part in a run of a format."""
        if self.run_format != run_format:
            self.outside("")
            self.parts += [f"<{self.prefix}r>", run_format]
            self.run_format = run_format
        self.parts.append(part)

    def outside(self, part: str) -> None:
        """Write a part outside of runs."""
        if self.run_format is not None:
            self.parts.append(f"</{self.prefix}r>")
            self.run_format = None
        self.parts.append(part)


def _written(
    style: _Style, at_ends: tuple[str | None, str | None], found: TranslatedSegment
) -> str:
    """The runs of a translated text.

    Args:
        at_ends: the formats of the runs in which the text begins and ends; None: outside of runs.
    """
    runs = _Runs(style.prefix, at_ends[0])
    formats = [style.usual]
    for piece in found.pieces:
        if isinstance(piece, str):
            name = f"{style.prefix}t"
            runs.inside(f'<{name} xml:space="preserve">{escaped_xml(piece)}</{name}>', formats[-1])
        elif piece.number in style.of_marks:
            runs.inside(piece.raw, style.of_marks[piece.number])
        elif piece.raw:
            runs.outside(piece.raw)
        elif piece.role is Role.OPEN:
            formats.append(style.of_ranges[piece.number])
        else:
            formats.pop()
    if at_ends[1] is None:
        runs.outside("")
    else:
        runs.inside("", at_ends[1])
    return "".join(runs.parts)
