"""Divides text with inline tags into runs in which every tag has its partner; tags without one stay between the runs."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from transformer_cli.extensions.documents.segments import Markup, Piece, Role


class InlinePart(NamedTuple):
    """A part of a file inside a block: text, or a tag."""

    piece: Piece
    start: int
    """Where it stands in the text of the file."""
    end: int
    name: str = ""
    """Of a tag: a range begins and ends with the same name."""


def nested_runs(parts: Sequence[InlinePart]) -> list[list[InlinePart]]:
    """The runs of parts between tags that have no partner, or whose range would cross such a tag.

    The CLOSE of each range gets the number of its OPEN.
    """
    partners = partners_of(parts)
    unpaired = [
        isinstance(part.piece, Markup)
        and part.piece.role in (Role.OPEN, Role.CLOSE)
        and index not in partners
        for index, part in enumerate(parts)
    ]
    num_before = [0, *accumulate(unpaired)]
    runs: list[list[InlinePart]] = [[]]
    for index, part in enumerate(parts):
        partner = partners.get(index, index)
        first, last = min(index, partner), max(index, partner)
        if unpaired[index] or num_before[first] != num_before[last]:
            runs.append([])
        elif isinstance(part.piece, Markup) and partner < index:
            opening = parts[partner].piece
            assert isinstance(opening, Markup)
            runs[-1].append(part._replace(piece=part.piece._replace(number=opening.number)))
        else:
            runs[-1].append(part)
    return [run for run in runs if run]


def partners_of(parts: Sequence[InlinePart]) -> dict[int, int]:
    """The index of the partner of each OPEN and CLOSE that has one; ranges are nested."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    num_opened: dict[str, int] = {}
    for index, part in enumerate(parts):
        if not isinstance(part.piece, Markup):
            continue
        if part.piece.role is Role.OPEN:
            opened.append(index)
            num_opened[part.name] = num_opened.get(part.name, 0) + 1
        elif part.piece.role is Role.CLOSE and num_opened.get(part.name):
            while True:
                last = opened.pop()
                num_opened[parts[last].name] -= 1
                if parts[last].name == part.name:
                    break
            partners |= {last: index, index: last}
    return partners
