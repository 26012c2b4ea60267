"""A string that is itself a whole HTML or XML file: the texts in it are translated one by one, and all else stays."""

import re
from collections.abc import Callable

from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.html import BLOCKS, CODE, is_inline_element, read_page
from transformer_cli.extensions.documents.segments import InnerText, Markup, Role, Slot, SplicedDocument
from transformer_cli.extensions.documents.xml import Element, XmlKind, XmlText, read_xml
from transformer_cli.process.errors import DataError

NOT_READ = "it is an XML file in which nobody can tell the texts for people, so it was left as it is"
_DECLARATION = re.compile(r"\s*<\?xml\s[^<>]*\?>\s*")
_PAGE = re.compile(r"(?:<!doctype\s+html[^<>]*>|<html[\s>])", re.IGNORECASE)
_FIRST_TAG = re.compile(r"\s*<(?P<name>[A-Za-z_][\w.:-]*)[^<>]*>\s*<(?![/!?])")
_CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]")

SlotOf = Callable[[XmlText, Element], Slot | None]
"""The text of an element that holds nothing else; None if it is not for people."""


def file_in_string(text: str, slot_of: SlotOf) -> Markup | None:
    """The whole string as markup with texts inside it; None if it is no file."""
    declaration = _DECLARATION.match(text)
    start = declaration.end() if declaration else len(text) - len(text.lstrip())
    if _PAGE.match(text, start):
        return _markup(text, InnerText(read_page(text)))
    first = _FIRST_TAG.match(text)
    if declaration is None and (first is None or _is_of_html(first["name"].lower()) or not text.endswith(">")):
        return None
    document = _xml_file(text[start:], slot_of)
    if document is not None:
        return _markup(text, InnerText(document, lambda written: text[:start] + written))
    return (
        None
        if declaration is None
        else _markup(text, InnerText(SplicedDocument(DecodedText(text), ()), fault=NOT_READ))
    )


def _markup(text: str, inner: InnerText) -> Markup:
    return Markup(Role.WORD, 0, text, inner=inner)


def _is_of_html(name: str) -> bool:
    return is_inline_element(name) or name in BLOCKS or name in CODE


def _xml_file(text: str, slot_of: SlotOf) -> SplicedDocument | None:
    """The texts of an XML file; None if it is not well-formed, or has text beside elements, which may be of the same sentence."""
    if _CONTROL.search(text):
        return None
    try:
        xml = read_xml(text.encode("utf-8", "surrogatepass"))
    except DataError:
        return None
    slots = []
    for element in xml.root.walk():
        kinds = {child.kind for child in element.children if not isinstance(child, Element)}
        if not element.elements:
            slot = slot_of(xml, element)
            slots += [slot] if slot else []
        elif XmlKind.CDATA in kinds or any(
            xml.text_of(child).strip() for child in element.children if not isinstance(child, Element)
        ):
            return None
    return SplicedDocument(xml.content, tuple(slots))
