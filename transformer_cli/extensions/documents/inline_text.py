"""The core of a segment as one text, in which its markup is places and labels."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import NamedTuple

from transformer_cli.decoding.protected_spans import stands_for_number
from transformer_cli.extensions.documents.segments import Markup, Piece, Role, Segment, plain_text

# A text with more is no text of a person.
MAX_MARKUP = 1000
MAX_DEPTH = 50
DIVISION = "\x1d"
"""Ends a line of a segment that keeps spaces, and is no character of the document: markup beside it stays beside it."""
_SPACES = re.compile(r"[ \t\r\n\f\v]+")


class MarkedRange(NamedTuple):
    """A range of a text between an OPEN and its CLOSE: text[start:end]."""

    start: int
    end: int
    opening: Markup
    closing: Markup
    parents: tuple[int, ...]
    """The numbers of the ranges around it, the outermost first."""
    is_apart: bool = False
    """Of one without text: whether white space stands on both sides of it; in the text, only that before it is left."""


class MarkedPoint(NamedTuple):
    """A point in a text, before text[place]."""

    place: int
    markup: Markup
    parents: tuple[int, ...]
    """As of `MarkedRange`."""
    is_apart: bool = False
    """Whether white space stands on both sides of it; in the text, only that before it is left."""


@dataclass(frozen=True, slots=True)
class InlineText:
    """The core of a segment: its text, and the markup inside it."""

    text: str
    """Begins and ends with a visible character. A label such as {{0}} stands for each WORD."""
    ranges: tuple[MarkedRange, ...]
    """In the order of their OPEN."""
    points: tuple[MarkedPoint, ...]
    words: dict[str, Markup]
    """Each label and what it stands for."""
    before: tuple[Piece, ...]
    """What stands before the core and never moves: white space, points, and markup around the whole core."""
    after: tuple[Piece, ...]

    @classmethod
    def of(cls, segment: Segment) -> "InlineText":
        """The core of a segment."""
        before, core, after = _cut_out(segment.pieces)
        core = core if segment.keeps_spaces else _with_single_spaces(core)
        text = ""
        opened: list[tuple[int, Markup, int]] = []
        ranges: list[MarkedRange | None] = []
        points: list[MarkedPoint] = []
        words: dict[str, Markup] = {}
        labels = _unused_labels(plain_text(core))
        followed = _followed_by_space(segment.pieces)
        for piece in core:
            if isinstance(piece, str):
                text += piece
            elif piece.role is Role.WORD:
                label = next(labels)
                if piece.shown == "#" or stands_for_number(piece.shown):  # # stands in the branches of a plural
                    label = f"{{{{num_{label[2:]}"
                words[label] = piece
                text += label
            elif piece.role is Role.POINT:
                parents = tuple(outer.number for _, outer, _ in opened)
                is_apart = text.endswith(" ") and piece in followed
                points.append(MarkedPoint(len(text), piece, parents, is_apart))
            elif piece.role is Role.OPEN:
                opened.append((len(text), piece, len(ranges)))
                ranges.append(None)
            else:
                start, opening, index = opened.pop()
                parents = tuple(outer.number for _, outer, _ in opened)
                is_apart = start == len(text) and text.endswith(" ") and piece in followed
                ranges[index] = MarkedRange(start, len(text), opening, piece, parents, is_apart)
        complete = tuple(each for each in ranges if each is not None)
        return cls(text, complete, tuple(points), words, before, after)

    def with_words(self, text: str) -> list[Piece]:
        """A text as pieces, in which each label becomes its WORD again."""
        pieces: list[Piece] = []
        place = 0
        for start, end in self.labels_in(text):
            pieces += [text[place:start], self.words[text[start:end]]]
            place = end
        return [piece for piece in [*pieces, text[place:]] if piece]

    def labels_in(self, text: str) -> list[tuple[int, int]]:
        """Where the labels of its words stand in a text, such as its translation."""
        if not self.words:
            return []
        return [match.span() for match in _LABEL.finditer(text) if match[0] in self.words]

    def without_labels(self, text: str, sign: str) -> str:
        """A text with a sign in place of each character of the labels."""
        result, place = "", 0
        for start, end in self.labels_in(text):
            result += text[place:start] + sign * (end - start)
            place = end
        return result + text[place:]


def has_too_much_markup(pieces: Sequence[Piece]) -> bool:
    """Whether a segment has more markup, or deeper ranges, than are moved."""
    depth = num_markup = 0
    for piece in pieces:
        if isinstance(piece, Markup):
            num_markup += 1
            depth += (piece.role is Role.OPEN) - (piece.role is Role.CLOSE)
            if num_markup > MAX_MARKUP or depth > MAX_DEPTH:
                return True
    return False


def _with_single_spaces(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces with one space in place of all white space between two words, also where markup stands in it."""
    single: list[Piece] = []
    ends_with_space = False
    for piece in pieces:
        if not isinstance(piece, str):
            ends_with_space = ends_with_space and piece.role is not Role.WORD
            single.append(piece)
            continue
        text = _SPACES.sub(" ", piece)
        text = text[1:] if ends_with_space and text.startswith(" ") else text
        if text:
            single.append(text)
            ends_with_space = text.endswith(" ")
    return tuple(single)


def _followed_by_space(pieces: Sequence[Piece]) -> set[Piece]:
    """The markup before white space of the document."""
    return {
        piece
        for piece, after in pairwise(pieces)
        if isinstance(after, str) and after[:1].isspace() and not after.startswith(DIVISION)
    }


def _cut_out(
    pieces: Sequence[Piece],
) -> tuple[tuple[Piece, ...], tuple[Piece, ...], tuple[Piece, ...]]:
    """What stands before the core of a segment, the core, and what stands after it."""
    start, end = 0, len(pieces)
    while True:
        first = start
        while start < end and (length := _length_of_edge(pieces, range(start, end))):
            start += length
        while start < end and (length := _length_of_edge(pieces, range(end - 1, start - 1, -1))):
            end -= length
        if start < end and _is_range(pieces, start, end - 1):
            start, end = start + 1, end - 1
        elif start in (first, end):
            break
    before, core, after = list(pieces[:start]), list(pieces[start:end]), list(pieces[end:])
    if core and isinstance(core[0], str):
        stripped = core[0].lstrip()
        before.append(core[0][: len(core[0]) - len(stripped)])
        core[0] = stripped
    if core and isinstance(core[-1], str):
        stripped = core[-1].rstrip()
        after.insert(0, core[-1][len(stripped) :])
        core[-1] = stripped
    return tuple(filter(None, before)), tuple(filter(None, core)), tuple(filter(None, after))


def _length_of_edge(pieces: Sequence[Piece], places: Sequence[int]) -> int:
    """How many of the pieces at these places hold no word, from the first one on: one, a range without words, or none."""
    first = pieces[places[0]]
    if isinstance(first, str) or first.role not in (Role.OPEN, Role.CLOSE):
        return int(_is_edge(first))
    for number, place in enumerate(places[1:], 2):
        piece = pieces[place]
        if isinstance(piece, Markup) and piece.role in (Role.OPEN, Role.CLOSE):
            if piece.number == first.number:
                return number
        elif not _is_edge(piece):
            return 0
    return 0


def _is_edge(piece: Piece) -> bool:
    return not piece.strip() if isinstance(piece, str) else piece.role is Role.POINT


def _is_range(pieces: Sequence[Piece], first: int, last: int) -> bool:
    """Whether an OPEN and its CLOSE stand at both ends."""
    opening, closing = pieces[first], pieces[last]
    return (
        isinstance(opening, Markup)
        and isinstance(closing, Markup)
        and opening.role is Role.OPEN
        and closing.role is Role.CLOSE
        and opening.number == closing.number
    )


# In the place of one with num_, the model reads a number.
_LABEL = re.compile(r"\{\{(?:num_)?\d+\}\}")


def _unused_labels(text: str) -> Iterator[str]:
    used = set(_LABEL.findall(text))
    labels = (f"{{{{{number}}}}}" for number in count())
    return (label for label in labels if label not in used)
