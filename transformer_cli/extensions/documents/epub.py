"""EPUB, electronic books: their chapters and their table of contents."""

import logging
import posixpath
import re
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from transformer_cli.extensions.documents.attribute_texts import slots_of_attributes
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.html import read_html
from transformer_cli.extensions.documents.segments import (
    Document,
    Edit,
    Segment,
    Slot,
    SplicedDocument,
    language_after,
)
from transformer_cli.extensions.documents.xml import Element, XmlText, escaped_xml, language_edits_of, read_xml
from transformer_cli.extensions.documents.zip_files import ZipDocument, opened_archive, read_part
from transformer_cli.process.errors import DataError
from transformer_cli.text.normalization import has_letter

logger = logging.getLogger(__name__)

_CONTAINER = "META-INF/container.xml"
_XHTML = "application/xhtml+xml"
_PICTURE = "image/svg+xml"
# The second and the third stand in old books, and in those of some programs.
_CHAPTERS = (_XHTML, "text/html", "text/x-oeb1-document")
_CONTENTS = "application/x-dtbncx+xml"
_BOOKS = ("application/x-dtbook+xml", "application/pdf")
_LIST_OF_PAGES = re.compile(r"""["'](?:doc-pagelist|page-list)["']""")
_LONGEST_TAG = 1000
# A book whose fonts alone are obfuscated can be read.
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


def read_epub(data: bytes, options: ReadingOptions = DEFAULTS) -> ZipDocument:
    """An EPUB file.

    Raises:
        DataError: it is no EPUB file, or its chapters are encrypted; or it is damaged, too large, or made to harm.
    """
    archive = opened_archive(data, options.limits)
    names = set(archive.namelist())
    if _CONTAINER not in names:
        raise DataError(f"this is no EPUB file: it has no {_CONTAINER}")

    def xml(name: str) -> XmlText:
        return read_xml(read_part(archive, name, options.limits), options, part=name)

    if "META-INF/encryption.xml" in names:
        _refuse_encryption(xml("META-INF/encryption.xml"))
    book = _path_of_book(xml(_CONTAINER))
    if book not in names:
        raise DataError(f"the EPUB file has no part {book}, which its {_CONTAINER} names")
    package = xml(book)
    parts: dict[str, Document] = {book: _package(package, options.watch)}
    chapter_options = replace(options, language=_language_of(package) or options.language)
    for name, kind, is_page in _items(package, posixpath.dirname(book)):
        if name in parts:
            continue
        if name in names and (kind in _CHAPTERS or (is_page and kind == _PICTURE)):
            is_xhtml = kind in (_XHTML, _PICTURE) or None
            page = read_html(read_part(archive, name, options.limits), chapter_options, is_xhtml=is_xhtml)
            parts[name] = _without_numbers_of_pages(page)
        elif name in names and kind == _CONTENTS:
            parts[name] = _table_of_contents(xml(name), options.watch)
        elif not options.is_repeated:
            _warn_of_chapter(name, kind, is_there=name in names, is_page=is_page)
    return ZipDocument(data, parts)


def _warn_of_chapter(name: str, kind: str, *, is_there: bool, is_page: bool) -> None:
    if kind in _CHAPTERS:
        logger.warning("%s: the book names this chapter, but does not have it, so it is not translated", name)
    elif is_there and is_page and kind in _BOOKS:
        logger.warning("%s: this chapter is no page of XHTML but %s, so it is not translated", name, kind)


def _refuse_encryption(encryption: XmlText) -> None:
    for element in encryption.root.walk():
        if element.local == "EncryptionMethod":
            method = element.attributes.get("Algorithm", "")
            if method not in _FONTS:
                raise DataError("the chapters of this book are encrypted (DRM), so they cannot be read")


def _path_of_book(container: XmlText) -> str:
    for element in container.root.walk():
        if element.local == "rootfile" and "full-path" in element.attributes:
            return element.attributes["full-path"]
    raise DataError(f"this is no EPUB file: its {_CONTAINER} names no book")


def _without_numbers_of_pages(page: SplicedDocument) -> SplicedDocument:
    """A page without the texts in a list of the pages of the printed book, such as iv and 12."""
    text, place = page.content.text, 0
    while (found := _LIST_OF_PAGES.search(text, place)) is not None:
        place = found.end()
        tag = text.rfind("<", max(0, place - _LONGEST_TAG), place)
        if tag < 0 or not text.startswith("<nav", tag):
            continue
        end = text.find("</nav", place)
        start = text.find("<ol", place, end)
        slots = tuple(slot for slot in page.slots if not 0 <= start <= slot.start < end)
        return replace(page, slots=slots)
    return page


def _items(package: XmlText, folder: str) -> list[tuple[str, str, bool]]:
    """The name and the media type of each part of the book, and whether people read it: its chapters in order, then the others."""
    manifest = {
        each["id"]: (posixpath.normpath(posixpath.join(folder, unquote(each["href"].partition("#")[0]))), each)
        for element in package.root.walk()
        if element.local == "item" and {"id", "href"} <= (each := element.attributes).keys()
    }
    spine = [element.attributes.get("idref", "") for element in package.root.walk() if element.local == "itemref"]
    order = [*(name for name in spine if name in manifest), *manifest]
    chosen = ((*manifest[name], name in spine) for name in dict.fromkeys(order))
    return [(name, each.get("media-type", ""), is_page) for name, each, is_page in chosen]


def _package(package: XmlText, watch: ReadingWatch) -> SplicedDocument:
    """The description of the book: its title is translated, and its language named."""
    slots, edits = [], []
    for element in package.root.walk():
        if element.local in ("title", "description"):
            slots += _slots_of(package, element, element.local, watch)
        elif element.local == "language":
            edits.append(_language_edit(package, element))
        elif element.local == "reference":
            slots += [_counted(slot, watch) for slot in slots_of_attributes(package, element, ("title",), "guide")]
        edits += language_edits_of(package, element, "xml:lang")
    return SplicedDocument(package.content, tuple(slots), tuple(edits))


def _language_of(package: XmlText) -> str:
    """The first language that the book names; empty if it names none, or that it has several or none."""
    languages = (package.whole_text(element).strip() for element in package.root.walk() if element.local == "language")
    found = next(languages, "")
    return "" if found.lower() in ("und", "mul", "zxx") else found


def _language_edit(package: XmlText, element: Element) -> Edit:
    given = package.content.text[element.inner_start : element.inner_end]
    return Edit(element.inner_start, element.inner_end, partial(language_after, given))


def _counted(slot: Slot, watch: ReadingWatch) -> Slot:
    return slot._replace(segment=watch.counted(slot.segment))


def _table_of_contents(contents: XmlText, watch: ReadingWatch) -> SplicedDocument:
    page_labels = {
        label.start for target in contents.root.walk() if target.local == "pageTarget" for label in target.elements
    }
    slots = [
        slot
        for parent in contents.root.walk()
        # The text of docAuthor is a name, and that of pageTarget the number of a page.
        if parent.local in ("docTitle", "navLabel") and parent.start not in page_labels
        for element in parent.elements
        if element.local == "text"
        for slot in _slots_of(contents, element, "table of contents", watch)
    ]
    edits = language_edits_of(contents, contents.root, "xml:lang")
    return SplicedDocument(contents.content, tuple(slots), tuple(edits))


def _slots_of(xml: XmlText, element: Element, place: str, watch: ReadingWatch) -> list[Slot]:
    """An element that has text only."""
    text = xml.whole_text(element)
    if element.elements or not has_letter(text):
        return []
    segment = watch.counted(Segment.plain(text, place, keeps_spaces=False))
    return [Slot(element.inner_start, element.inner_end, segment, lambda found: escaped_xml(found.text))]
