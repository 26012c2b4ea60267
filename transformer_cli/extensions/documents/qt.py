"""The .ts of Qt Linguist: each message without a translation gets one."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.inline_text import DIVISION
from transformer_cli.extensions.documents.segments import (
    LineNumbers,
    Markup,
    Piece,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    merged,
    rendered,
)
from transformer_cli.extensions.documents.strings import string_of, tagged_segment
from transformer_cli.extensions.documents.xml import (
    Element,
    Inline,
    XmlText,
    escaped_xml,
    inline_runs,
    language_edits,
    read_xml,
    white_space_before,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.normalization import has_letter

logger = logging.getLogger(__name__)

_GONE = frozenset(["obsolete", "vanished"])
# A byte that is a tab, a line end or a space divides a text; any other one, such as x1b, stands between its words.
_WHITE_SPACE = re.compile(r"""=\s*["'](?:x0?[9ad]|x20|xa0|9|10|13|32|160)["']""", re.IGNORECASE)


def read_qt(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A file of Qt Linguist: its messages without a translation, or with an empty one.

    A translation that a person should look at stays unfinished, as Linguist calls it; every other one is finished.

    Raises:
        DataError: it is no such file, or is damaged, too large, or made to harm.
    """
    if not data.lstrip(b"\xef\xbb\xbf\xff\xfe\r\n\t \x00").startswith(b"<"):
        raise DataError(
            "this is no file of Qt Linguist, which is XML",
            hint="code in TypeScript is not translated: its texts belong into .json or .xlf",
        )
    xml = read_xml(data, options)
    if xml.root.name != "TS":
        raise DataError(f"this is no file of Qt Linguist: its root is <{xml.root.name}>")
    lines = LineNumbers(xml.content.text)
    slots: list[Slot] = []
    for message in options.watch.over(xml.root.walk()):
        source, translation = message.child("source"), message.child("translation")
        if message.local != "message" or source is None:
            continue
        given = {} if translation is None else translation.attributes
        text = xml.whole_text(source)
        if given.get("type") in _GONE or not has_letter(text):
            continue
        if translation is not None and xml.whole_text(translation).strip():
            continue
        place = f"line {lines.number_at(message.start)}"
        segment = _segment(xml, source, place)
        if segment is None:
            logger.warning(
                "%s: the message is not translated, because its source has elements that are not read: %s",
                place,
                xml.raw(source),
            )
            continue
        slots.append(_slot(xml, message, translation, options.watch.counted(segment), has_bytes=bool(source.elements)))
    edits = language_edits(xml, xml.root, ("sourcelanguage", "language"), has_open_units=bool(slots))
    return SplicedDocument(xml.content, tuple(slots), tuple(edits))


def _segment(xml: XmlText, source: Element, place: str) -> Segment | None:
    """The text of a source; None if it has elements other than bytes in it."""
    if not source.elements:
        return replace(tagged_segment(xml.whole_text(source), place), is_of_qt=True)
    if any(each.local != "byte" or each.elements for each in source.elements):
        return None
    pieces: list[Piece] = []
    for part in chain.from_iterable(inline_runs(xml, source, lambda byte: Inline.POINT, has_places=False)):
        pieces.append(part.piece)
        if isinstance(part.piece, Markup) and _WHITE_SPACE.search(part.piece.raw):
            pieces.append(DIVISION)
    return Segment(tuple(merged(pieces)), place, keeps_spaces=True, has_references=True)


def _slot(
    xml: XmlText,
    message: Element,
    translation: Element | None,
    segment: Segment,
    *,
    has_bytes: bool,
) -> Slot:
    """Where the translation of a message stands, or belongs."""
    finish = _with_bytes if has_bytes else _as_text
    if translation is not None:
        forms = [each for each in translation.elements if each.local == "numerusform"]
        gap, text = "", xml.content.text
        form_gap = white_space_before(text, forms[0].start) if forms else ""
        end_gap = white_space_before(text, translation.inner_end) if forms else ""
        render = partial(_written, finish, gap, len(forms), form_gap, end_gap)
        return Slot(translation.start, translation.end, segment, render)
    last = message.elements[-1]
    gap = white_space_before(xml.content.text, last.start)
    num_forms = int(message.attributes.get("numerus") == "yes")
    return Slot(last.end, last.end, segment, partial(_written, finish, gap, num_forms, "", ""))


def _as_text(found: TranslatedSegment) -> str:
    return escaped_xml(string_of(found))


def _with_bytes(found: TranslatedSegment) -> str:
    return rendered(found.pieces, escaped_xml).replace(DIVISION, "")


def _written(
    finish: Callable[[TranslatedSegment], str],
    gap: str,
    num_forms: int,
    form_gap: str,
    end_gap: str,
    found: TranslatedSegment,
) -> str:
    """The element of a translation; each form of a plural gets the same text, in which %n is the number."""
    text = finish(found)
    if num_forms:
        text = f"{form_gap}<numerusform>{text}</numerusform>" * num_forms + end_gap
    state = ' type="unfinished"' if found.doubts else ""
    return f"{gap}<translation{state}>{text}</translation>"
