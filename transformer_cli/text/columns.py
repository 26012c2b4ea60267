"""Lines with columns: other texts in the ranges of a line, and its columns still aligned."""

import unicodedata
from collections.abc import Sequence

from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.sentences import TextRange

# A gap that aligns columns: at least two spaces, or spaces before the bar of a table.
_ALIGNING = lazy_pattern(r" {2,}(?=\S)| +(?=\|)")


def with_texts(line: str, ranges: Sequence[TextRange], texts: Sequence[str]) -> str:
    """The line with other texts in its ranges; gaps of spaces become longer or shorter, to keep columns aligned.

    A gap keeps at least two spaces, or one before a bar, so a longer text moves the rest of its line.

    Args:
        line: the source.
        ranges: of the line, in order.
        texts: the new text of each range.
    """
    if not ranges:
        return line
    pieces = [line[: ranges[0].start]]
    given_width = width = display_width(pieces[0])
    ends = [next_range.start for next_range in ranges[1:]] + [len(line)]
    for text_range, text, end in zip(ranges, texts, ends, strict=True):
        given_width += display_width(line[text_range.start : text_range.end])
        width += display_width(text)
        gap = _ALIGNING.match(line, text_range.end)
        num_spaces = num_given = gap.end() - gap.start() if gap else 0
        if gap:
            num_spaces = max(min(num_given, 2), given_width + num_given - width)
        rest = line[text_range.end + num_given : end]
        given_width += num_given + display_width(rest)
        width += num_spaces + display_width(rest)
        pieces += [text, " " * num_spaces, rest]
    return "".join(pieces)


def display_width(text: str) -> int:
    """The columns that a text takes on a terminal: two for a wide character, none for a combining mark."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
