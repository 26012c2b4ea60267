"""The layout of a line: which parts of it are text, and how columns stay aligned when the text changes."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Indentation, the quote marks of an e-mail (> >), and then at most two marks of a list, with the white space
# after them: - * • 1. 2) a) (iv) # [x]
_BEGINNING = re.compile(
    r"\s*(?:>\s*)*"
    r"(?:(?:[-*+\u2022\u2023\u25e6\u25aa\u25ab\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7\u2192\u2713\u2717]|\#{1,6}|\(?\d{1,3}[.)]|\(?(?:[A-Za-z]|[ivxIVX]{1,5})\)|\[[ xX]?\])(?:\s+|\Z)){0,2}"
)
# What always separates two columns: tabs, a bar, a row of dots or lines.
_COLUMN_GAP = re.compile(r"\s{0,2}(?:\t|\||\.{6}|…{2}|(?:\. ){3}|_{3})[\s|._…]*")
# What separates columns, unless a sentence goes on after it.
_WIDE_GAP = re.compile(r"\s{2,}|\s?\.{4,}\s?")
_SENTENCE_END = frozenset(".?!…")


class TextRange(NamedTuple):
    """The text line[start:end]."""

    start: int
    end: int


def text_ranges(line: str, visible: str | None = None) -> list[TextRange]:
    """The ranges of a line that hold text to translate, in order; everything else stays as it is.

    Each range begins and ends without white space, and holds at least one letter. So the cells of a table that are
    only numbers and symbols belong to no range, and neither do the gaps between its columns.

    Args:
        line: without a line end.
        visible: the line with all letters of protected spans hidden, of the same length; None: nothing is protected.
    """
    visible = line if visible is None else visible
    beginning = _BEGINNING.match(line)
    cells = _cells(visible, beginning.end() if beginning else 0)
    return [cell for cell in cells if _has_letter(visible, cell)]


def _cells(line: str, start: int) -> Iterator[TextRange]:
    """The cells of a line from `start` on, without the white space around them."""
    place = start
    for gap in _COLUMN_GAP.finditer(line, start):
        yield from _cells_with_wide_gaps(line, place, gap.start())
        place = gap.end()
    yield from _cells_with_wide_gaps(line, place, len(line))


def _cells_with_wide_gaps(line: str, start: int, end: int) -> Iterator[TextRange]:
    parts: list[TextRange] = []
    for gap in [*_WIDE_GAP.finditer(line, start, end), None]:
        parts.append(_stripped(line, start, gap.start() if gap else end))
        start = gap.end() if gap else end
    cells: list[TextRange] = []
    for part, goes_on in zip(parts, _go_on(line, parts), strict=True):
        if cells and (_is_one_text(line, cells[-1], part) or goes_on):
            part = TextRange(cells.pop().start, part.end)
        cells.append(part)
    yield from cells


def _is_one_text(line: str, left: TextRange, right: TextRange) -> bool:
    """Whether a sentence goes on after a wide gap: some people type two spaces after a sentence, or several in it."""
    if not (_has_letter(line, left) and _has_letter(line, right)):
        return False
    gap = line[left.end : right.start]
    return len(gap) < 3 or "." in gap or line[right.end - 1] in _SENTENCE_END


def _go_on(line: str, parts: list[TextRange]) -> list[bool]:
    """For each part, whether it and all that follow continue a sentence: with small letters first, up to a mark."""
    ends = [part.end for part in parts if part.start < part.end]
    goes_on = bool(ends) and line[ends[-1] - 1] in _SENTENCE_END
    found = []
    for left, part in zip([*reversed(parts[:-1]), None], reversed(parts), strict=True):
        first = line[part.start : min(part.start + 1, part.end)]
        goes_on = goes_on and (not first or first.islower())
        found.append(bool(first) and goes_on and left is not None and _has_letter(line, left))
    return found[::-1]


def _stripped(line: str, start: int, end: int) -> TextRange:
    text = line[start:end]
    return TextRange(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def _has_letter(line: str, cell: TextRange) -> bool:
    return any(map(str.isalpha, line[cell.start : cell.end]))


# A gap that aligns columns: at least two spaces, or spaces before the bar of a table.
_ALIGNING = re.compile(r" {2,}(?=\S)| +(?=\|)")


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
