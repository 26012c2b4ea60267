"""The best translations of a line, joined from those of its parts."""

from collections.abc import Sequence
from typing import NamedTuple


class Alternative(NamedTuple):
    """One of the best translations of a line."""

    text: str
    score: float


def join_alternatives(
    parts: Sequence[Sequence[Alternative]], gaps: Sequence[str]
) -> tuple[Alternative, ...]:
    """The n-th best translation of a line joins the n-th best of each part, with a gap between two parts."""
    return tuple(
        Alternative(
            _with_gaps([alternative.text for alternative in of_parts], gaps),
            sum(alternative.score for alternative in of_parts),
        )
        for of_parts in zip(*parts, strict=False)
    )


def _with_gaps(texts: Sequence[str], gaps: Sequence[str]) -> str:
    """The texts that are not empty, joined."""
    joined = ""
    for text, gap in zip(texts, gaps, strict=True):
        joined += (gap if joined else "") + text if text else ""
    return joined
