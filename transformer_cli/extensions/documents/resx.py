"""RESX and RESW, the texts of programs for .NET and Windows: the values without a type are translated."""

import re
from functools import partial

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.repeated_keys import RepeatedKeys
from transformer_cli.extensions.documents.segments import LineNumbers, Segment, SplicedDocument
from transformer_cli.extensions.documents.strings import (
    slot_of_element,
    tagged_segment,
    with_placeholders,
)
from transformer_cli.extensions.documents.xml import read_xml
from transformer_cli.process.errors import DataError

# {Locked}, and {Locked="one","two"} for words of the value.
_LOCKED_WORDS = re.compile(r'\{Locked=((?:"[^"]+"(?:\s*,\s*)?)+)\}')


def read_resx(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A file of resources. Pictures, sizes and names of controls stay.

    So does a text whose comment begins with {Locked}, and words of it that the comment names as {Locked="word"}.

    Raises:
        DataError: it is no RESX file, or is damaged, too large, or made to harm.
    """
    xml = read_xml(data, options)
    if xml.root.name != "root":
        raise DataError(f"this is no RESX file: its root is <{xml.root.name}>, and not <root>")
    lines = LineNumbers(xml.content.text)
    slots = []
    keys = RepeatedKeys()
    for element in options.watch.over(xml.root.elements):
        given, value, comment = element.attributes, element.child("value"), element.child("comment")
        name = given.get("name", "")
        if element.name != "data" or value is None or "type" in given or "mimetype" in given:
            continue
        note = xml.whole_text(comment).strip() if comment else ""
        if name.startswith(">>") or note.startswith("{Locked}"):
            continue
        keys.add(name, element.start)
        place = f"line {lines.number_at(value.start)}"
        locked = re.findall(r'"([^"]+)"', " ".join(_LOCKED_WORDS.findall(note)))
        read = partial(_with_locked_words, locked) if locked else None
        slot = slot_of_element(xml, value, place, name, read)
        if slot is not None:
            options.watch.counted(slot.segment)
            slots.append(slot)
    keys.warn(xml.content.text, options)
    return SplicedDocument(xml.content, tuple(slots))


def _with_locked_words(words: list[str], text: str, place: str) -> Segment:
    """The segment of a value in which these words stay as they are."""
    longest_first = sorted(words, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    return with_placeholders(tagged_segment(text, place), re.compile(pattern))
