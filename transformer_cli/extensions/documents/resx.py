"""RESX and RESW, the texts of programs for .NET and Windows: the values without a type are translated."""

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import LineNumbers, SplicedDocument
from transformer_cli.extensions.documents.strings import slot_of_element
from transformer_cli.extensions.documents.xml import read_xml
from transformer_cli.process.errors import DataError


def read_resx(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A file of resources. Pictures, sizes and names of controls stay, and so does each text whose comment begins with {Locked}.

    Raises:
        DataError: it is no RESX file, or is damaged, too large, or made to harm.
    """
    xml = read_xml(data, options)
    if xml.root.name != "root":
        raise DataError(f"this is no RESX file: its root is <{xml.root.name}>, and not <root>")
    lines = LineNumbers(xml.content.text)
    slots = []
    for element in options.watch.over(xml.root.elements):
        given, value, comment = element.attributes, element.child("value"), element.child("comment")
        name = given.get("name", "")
        if element.name != "data" or value is None or "type" in given or "mimetype" in given:
            continue
        if name.startswith(">>") or (comment and xml.whole_text(comment).startswith("{Locked}")):
            continue
        slot = slot_of_element(xml, value, f"line {lines.number_at(value.start)}", name)
        if slot is not None:
            options.watch.counted(slot.segment)
            slots.append(slot)
    return SplicedDocument(xml.content, tuple(slots))
