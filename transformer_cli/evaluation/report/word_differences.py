"""The words of a translation and of its reference, marked where they differ."""

import difflib
from typing import NamedTuple


class Words(NamedTuple):
    """A run of words that stand in both texts, or in one of them."""

    text: str
    is_common: bool


def word_differences(reference: str, hypothesis: str) -> tuple[list[Words], list[Words]]:
    """Both texts, reference first, cut into runs of common words and of other words.

    Joined with one space, the runs of a text are its words. Equal words that stand in another order are common only
    once.
    """
    sides = reference.split(), hypothesis.split()
    blocks = difflib.SequenceMatcher(None, *sides, autojunk=False).get_opcodes()
    of_reference = [
        Words(" ".join(sides[0][first:last]), kind == "equal")
        for kind, first, last, _, _ in blocks
        if first < last
    ]
    of_hypothesis = [
        Words(" ".join(sides[1][first:last]), kind == "equal")
        for kind, _, _, first, last in blocks
        if first < last
    ]
    return of_reference, of_hypothesis
