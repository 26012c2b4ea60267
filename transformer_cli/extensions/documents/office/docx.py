"""DOCX, the documents of Microsoft Word: paragraphs, tables, text boxes, notes, headers and footers."""

import re

from transformer_cli.extensions.documents.guards.safe_archives import opened_archive, read_part
from transformer_cli.extensions.documents.office.docx_paragraphs import is_word, slots_of_paragraph
from transformer_cli.extensions.documents.office.zip_document import ZipDocument
from transformer_cli.extensions.documents.reading_options import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import Document
from transformer_cli.extensions.documents.spliced import SplicedDocument
from transformer_cli.extensions.documents.xml.xml_elements import read_xml
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
