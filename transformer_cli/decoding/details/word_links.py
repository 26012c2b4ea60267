"""Word alignment: links between the words of a line and those of its translation, from attention weights.

White space separates words, as in `str.split`, so punctuation is part of the word beside it. A link is written in the
Pharaoh format, which fast_align, awesome-align and Marian write, too: `0-0 1-2` links the first word of the source
with the first of the target, and the second with the third.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.text.normalization import with_plain_spaces

if TYPE_CHECKING:  # numpy is imported where it computes: a translation by CTranslate2 does without
    import numpy as np
    from numpy.typing import NDArray

Span = tuple[int, int]
_WORD = re.compile(r"\S+")


class Link(NamedTuple):
    """A word of the source and a word of the target that translates it; both are counted from zero."""

    source: int
    target: int


def word_spans(text: str) -> list[Span]:
    """Where the words of a text stand; they are those of `text.split()`."""
    return [match.span() for match in _WORD.finditer(text)]


def places_of(texts: Iterable[str], line: str) -> list[int]:
    """Where each text begins in the line, which consists of them in order, with only white space between them."""
    places: list[int] = []
    end = 0
    for text in texts:
        places.append(line.index(text, end))
        end = places[-1] + len(text)
    return places


def words_at(tokens: Iterable[Span], words: Sequence[Span]) -> list[range]:
    """For each token, the indices of the words that it overlaps; none for white space.

    Args:
        tokens: an empty span belongs to the character that follows it.
        words: as of `word_spans`, in order.
    """
    starts, ends = [start for start, _ in words], [end for _, end in words]
    return [
        range(bisect_right(ends, start), bisect_left(starts, max(end, start + 1)))
        for start, end in tokens
    ]


def linked_words(
    weights: "NDArray[np.float32]", source_words: Sequence[range], target_words: Sequence[range]
) -> list[Link]:
    """Link each target word with the source word that its tokens attend to most, summed over the tokens of both.

    Args:
        weights: (T, S) attention weights.
        source_words: for each of the S source tokens, the indices of its words; none for [EOS] and tags.
        target_words: for each of the T target tokens, the indices of its words.

    Returns:
        One link for each target word, in the order of the target words; none if the source has no words.
    """
    totals: dict[int, dict[int, float]] = {}
    for row, of_target in zip(weights.tolist(), target_words, strict=True):
        for target in of_target:
            total = totals.setdefault(target, {})
            for weight, of_source in zip(row, source_words, strict=True):
                for source in of_source:
                    total[source] = total.get(source, 0.0) + weight
    return [
        Link(max(total, key=total.__getitem__), target)
        for target, total in sorted(totals.items())
        if total
    ]


def pharaoh(links: Iterable[Link]) -> str:
    """Links in the Pharaoh format, sorted by the source word and then by the target word."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def places_as_given(text: str, read: str) -> Sequence[int] | None:
    """For each character of a normalised text, its place in the text as given; None if it has other characters."""
    if read == text:
        return range(len(text))
    places: list[int] = []
    place = 0
    for character in read:
        while place < len(text) and with_plain_spaces(text[place]) != character:
            place += 1
        places.append(place)
        place += 1
    return places if not places or places[-1] < len(text) else None
