"""The .ts of Qt Linguist: each message without a translation gets one."""

from functools import partial

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    LineNumbers,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    has_letter,
)
from transformer_cli.extensions.documents.strings import string_of, tagged_segment
from transformer_cli.extensions.documents.xml import (
    Element,
    XmlText,
    escaped_xml,
    language_edits,
    read_xml,
    white_space_before,
)
from transformer_cli.process.errors import DataError

_GONE = frozenset(["obsolete", "vanished"])


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
        if message.local != "message" or source is None or source.elements:
            continue
        given = {} if translation is None else translation.attributes
        text = xml.whole_text(source)
        if given.get("type") in _GONE or not has_letter(text):
            continue
        if translation is not None and xml.whole_text(translation).strip():
            continue
        segment = tagged_segment(text, f"line {lines.number_at(message.start)}")
        slots.append(_slot(xml, message, translation, options.watch.counted(segment)))
    edits = language_edits(
        xml, xml.root, ("sourcelanguage", "language"), has_open_units=bool(slots)
    )
    return SplicedDocument(xml.content, tuple(slots), tuple(edits))


def _slot(xml: XmlText, message: Element, translation: Element | None, segment: Segment) -> Slot:
    """Where the translation of a message stands, or belongs."""
    if translation is not None:
        place = translation.start, translation.end
        forms = [each for each in translation.elements if each.local == "numerusform"]
        gap, text = "", xml.content.text
        form_gap = white_space_before(text, forms[0].start) if forms else ""
        end_gap = white_space_before(text, translation.inner_end) if forms else ""
        return Slot(*place, segment, partial(_written, gap, len(forms), form_gap, end_gap))
    last = message.elements[-1]
    gap = white_space_before(xml.content.text, last.start)
    num_forms = int(message.attributes.get("numerus") == "yes")
    return Slot(last.end, last.end, segment, partial(_written, gap, num_forms, "", ""))


def _written(
    gap: str, num_forms: int, form_gap: str, end_gap: str, found: TranslatedSegment
) -> str:
    """The element of a translation; each form of a plural gets the same text, in which %n is the number."""
    text = escaped_xml(string_of(found))
    if num_forms:
        text = f"{form_gap}<numerusform>{text}</numerusform>" * num_forms + end_gap
    state = ' type="unfinished"' if found.doubts else ""
    return f"{gap}<translation{state}>{text}</translation>"
