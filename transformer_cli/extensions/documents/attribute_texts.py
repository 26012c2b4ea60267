"""Texts in attributes of office documents: descriptions, tips, watermarks, and the words beside the numbers of a list."""

import re
from collections.abc import Iterator

from transformer_cli.extensions.documents.segments import Markup, Piece, Role, Segment, Slot, TranslatedSegment
from transformer_cli.extensions.documents.xml import Element, XmlText, as_attribute, escaped_xml, place_of_attribute
from transformer_cli.text.normalization import has_letter

_NAME_OF_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|bmp|emf|wmf|svg|tiff?|webp)\s*\Z", re.IGNORECASE)
# The number of a level: %1 in Word, %1% in LibreOffice; those of several levels, such as %1.%2, are one.
_NUMBER = re.compile(r"%\d%?(?:[^\w\s%]*%\d%?)*")
# One letter alone is a mark, such as the o of a list in Word.
_WORD = re.compile(r"[^\W\d_]{2}")


def slots_of_attributes(xml: XmlText, element: Element, names: tuple[str, ...], place: str) -> Iterator[Slot]:
    """The texts of attributes; the name of a picture's file, which some programs put there, is none.

    Args:
        names: of the attributes, without prefixes.
    """
    for name, text in element.attributes.items():
        if name.rpartition(":")[2] not in names or not has_letter(text) or _NAME_OF_PICTURE.search(text):
            continue
        where = place_of_attribute(xml, element, name)
        if where is not None:
            yield Slot(*where, Segment.plain(text, place), as_attribute)


def slots_of_labels(xml: XmlText, element: Element, names: tuple[str, ...]) -> Iterator[Slot]:
    """The words before and behind the numbers of a list, such as Annex in `Annex %1.`; the spaces around them stay."""
    for name, text in element.attributes.items():
        words = text.strip()
        where = place_of_attribute(xml, element, name) if name.rpartition(":")[2] in names else None
        if where is None or not _WORD.search(_NUMBER.sub("", words)):
            continue
        raw = xml.content.text[slice(*where)]
        start, end = where[0] + len(raw) - len(raw.lstrip()), where[1] - len(raw) + len(raw.rstrip())
        yield Slot(start, end, Segment(_with_numbers(words), "numbers of a list"), _as_label)


def _with_numbers(label: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    place = 0
    for number in _NUMBER.finditer(label):
        text = label[place : number.start()]
        pieces += [*([text] if text else []), Markup(Role.WORD, number.start(), number[0])]
        place = number.end()
    return (*pieces, label[place:]) if label[place:] else tuple(pieces)


def _as_label(found: TranslatedSegment) -> str:
    written = (piece if isinstance(piece, str) else piece.raw for piece in found.pieces)
    return escaped_xml("".join(written)).replace('"', "&quot;").replace("'", "&apos;")
