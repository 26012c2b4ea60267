"""Plain text: each line is a segment, as `tfm translate` reads a file without markup."""

import re

from transformer_cli.extensions.documents.character_encoding import decoded
from transformer_cli.extensions.documents.line_numbers import LineNumbers
from transformer_cli.extensions.documents.reading_options import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import Segment, TranslatedSegment, has_letter
from transformer_cli.extensions.documents.spliced import Slot, SplicedDocument

_LINE = re.compile(r"[^\r\n]+")


def read_plain_text(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A plain text; line ends, blank lines and the layout of each line stay."""
    content = decoded(data, given=options.encoding)
    lines = LineNumbers(content.text)
    slots = [
        Slot(
            line.start(),
            line.end(),
            options.watch.counted(Segment.plain(line[0], f"line {lines.number_at(line.start())}")),
            _text_of,
        )
        for line in options.watch.over(_LINE.finditer(content.text))
        if has_letter(line[0])
    ]
    return SplicedDocument(content, tuple(slots))


def _text_of(found: TranslatedSegment) -> str:
    return found.text
