"""ODT, the documents of LibreOffice Writer: paragraphs, headings, tables, notes, headers and footers."""

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    has_letter,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.xml import (
    Element,
    Inline,
    escaped_xml,
    inline_runs,
    read_xml,
)
from transformer_cli.extensions.documents.zip_files import ZipDocument, opened_archive, read_part
from transformer_cli.process.errors import DataError

_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_PARTS = ("content.xml", "styles.xml")
_MANIFEST = "META-INF/manifest.xml"
_RANGES = frozenset(["a", "meta", "meta-field", "ruby", "ruby-base", "span"])
_BREAKS = frozenset(["line-break", "tab"])
# Parts of a text that the program computes, such as the number of a page.
_FIELDS = frozenset(
    [
        "author-initials",
        "author-name",
        "bookmark-ref",
        "chapter",
        "character-count",
        "conditional-text",
        "creation-date",
        "creation-time",
        "date",
        "file-name",
        "hidden-text",
        "initial-creator",
        "modification-date",
        "modification-time",
        "note-ref",
        "page-count",
        "page-number",
        "paragraph-count",
        "print-date",
        "reference-ref",
        "sequence",
        "sequence-ref",
        "subject",
        "time",
        "title",
        "user-defined",
        "variable-get",
        "variable-set",
        "database-display",
        "drop-down",
        "expression",
        "page-variable-get",
        "placeholder",
        "sender-firstname",
        "sender-lastname",
        "sheet-name",
        "template-name",
        "text-input",
        "user-field-get",
        "user-field-input",
        "variable-input",
        "word-count",
    ]
)
# Their content is no text of the document.
_HIDDEN = frozenset(["annotation", "tracked-changes"])


def read_odt(data: bytes, options: ReadingOptions = DEFAULTS) -> ZipDocument:
    """An ODT file.

    Raises:
        DataError: it is no ODT file, or is damaged, encrypted, too large, or made to harm.
    """
    archive = opened_archive(data, options.limits)
    if "content.xml" not in archive.namelist():
        raise DataError("this is no ODT file: it has no content.xml")
    if _MANIFEST in archive.namelist() and b"encryption-data" in read_part(archive, _MANIFEST, options.limits):  # fmt: skip
        raise DataError(
            "this document has a password",
            hint="open it in a word processor and save it without one",
        )
    parts = {
        name: _read_part(name, read_part(archive, name, options.limits), options)
        for name in _PARTS
        if name in archive.namelist()
    }
    return ZipDocument(data, parts)


def _read_part(name: str, data: bytes, options: ReadingOptions) -> SplicedDocument:
    xml = read_xml(data, options, part=name)
    slots = []
    for number, paragraph in enumerate(_paragraphs(xml.root), 1):
        for run in inline_runs(xml, paragraph, _kind_of, _pair_of):
            pieces = tuple(part.piece for part in run)
            if has_letter(plain_text(pieces)):
                segment = options.watch.counted(Segment(pieces, f"paragraph {number}"))
                slots.append(Slot(run[0].start, run[-1].end, segment, _as_xml))
    return SplicedDocument(xml.content, tuple(slots))


def _paragraphs(root: Element) -> list[Element]:
    """The paragraphs and headings that people read, also those inside others, such as footnotes."""
    found, waiting = [], [root]
    while waiting:
        element = waiting.pop()
        if element.local in _HIDDEN:
            continue
        if element.space == _TEXT and element.local in ("p", "h"):
            found.append(element)
        waiting += reversed(element.elements)
    return found


def _kind_of(element: Element) -> Inline:
    if element.space != _TEXT:
        return Inline.POINT
    if element.local in _BREAKS:
        return Inline.BREAK
    if element.local == "s":
        return Inline.SPACES
    if element.local in _FIELDS:
        return Inline.WORD
    return Inline.RANGE if element.local in _RANGES else Inline.POINT


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


def _as_xml(found: TranslatedSegment) -> str:
    return rendered(found.pieces, escaped_xml)
