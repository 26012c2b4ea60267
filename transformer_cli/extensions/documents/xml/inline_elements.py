"""The text of a block element as pieces: which of the elements inside it are ranges, points, words or breaks."""

from collections.abc import Callable, Iterator
from enum import Enum

from transformer_cli.extensions.documents.markup.nested_ranges import InlinePart, nested_runs
from transformer_cli.extensions.documents.segments import Markup, Piece, Role
from transformer_cli.extensions.documents.xml.xml_elements import Element, XmlText
from transformer_cli.extensions.documents.xml.xml_tokens import XmlToken


class Inline(Enum):
    """What an element does inside a text."""

    RANGE = "range"
    """Its content is part of the text; the range moves with its words."""
    POINT = "point"
    """It stands between two words, with everything in it."""
    WORD = "word"
    """It takes the place of a word."""
    SPACES = "spaces"
    """It is white space, and stands where a POINT would."""
    BREAK = "break"
    """The text before it and the text after it are two texts."""


Kinds = Callable[[Element], Inline]


def inline_runs(
    xml: XmlText, element: Element, kind_of: Kinds, *, has_places: bool = True
) -> list[list[InlinePart]]:
    """The runs of text and markup of an element, divided at its breaks; in each run, all ranges are complete.

    Args:
        kind_of: of each element in it.
        has_places: whether the translation comes to the same place; if not, the markup is a copy.
    """
    runs: list[list[InlinePart]] = [[]]
    for part in _parts(xml, element, kind_of, has_places):
        if part is None:
            runs.append([])
        else:
            runs[-1].append(part)
    return [found for run in runs for found in nested_runs(_without_idle_gaps(run))]


def _without_idle_gaps(run: list[InlinePart]) -> list[InlinePart]:
    """A run with the gaps of `Inline.SPACES` only where they divide two words."""
    words = [at for at, part in enumerate(run) if isinstance(part.piece, str) and part.piece.strip()]  # fmt: skip
    kept, text = [], ""
    for at, part in enumerate(run):
        is_gap = part.start == part.end
        if is_gap and (not words or text[-1:].isspace() or not words[0] < at < words[-1]):
            continue
        kept.append(part)
        text = part.piece if isinstance(part.piece, str) else text
    return kept


def _parts(
    xml: XmlText, element: Element, kind_of: Kinds, has_places: bool
) -> Iterator[InlinePart | None]:
    """Text and markup in order; None for a break."""
    text = xml.content.text

    def markup(role: Role, start: int, end: int, name: str = "") -> InlinePart:
        place = start if has_places else None
        return InlinePart(Markup(role, start, text[start:end], place), start, end, name)

    for child in element.children:
        if isinstance(child, XmlToken):
            piece: Piece = xml.text_of(child)
            if piece:
                yield InlinePart(piece, child.start, child.end)
            continue
        kind = kind_of(child)
        if kind is Inline.BREAK:
            yield None
        elif kind is Inline.SPACES:
            yield markup(Role.POINT, child.start, child.end)
            yield InlinePart(" ", child.end, child.end)
        elif kind is Inline.RANGE and child.inner_end > child.inner_start:
            yield markup(Role.OPEN, child.start, child.inner_start, child.name)
            yield from _parts(xml, child, kind_of, has_places)
            yield markup(Role.CLOSE, child.inner_end, child.end, child.name)
        else:
            role = Role.WORD if kind is Inline.WORD else Role.POINT
            yield markup(role, child.start, child.end)
