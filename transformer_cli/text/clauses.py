"""Where a long sentence may be divided: at marks between clauses, before conjunctions, and between words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from transformer_cli.text.languages import primary_language

# Places for a cut, best first; the group holds the marks and the white space that stand between the two parts.
_MARKS = tuple(
    re.compile(pattern)
    for pattern in (
        # The end of a sentence inside brackets, or one that the division into sentences did not take for an end.
        r"(?:[!?\u2026]|\.\.|\w{4}\.|\.[)\]\u201d\u00bb])[)\]\"'\u201d\u00bb]*(\s+)|[\u3002\uff01\uff1f]()",
        r"(\s*;\s+|:\s+|\s+[-\u2013\u2014/|]\s+|\s*\u2014\s*|[\uff1b\uff1a])",
        r"(,\s+|[\uff0c\u3001])",
    )
)
_INNER_END = re.compile(r"(?:[.!?][)\]]|\u2026|\.\.\.)(\s+)(?=\w)")
_BETWEEN_WORDS = re.compile(r"(\s+)")
_CONJUNCTIONS = {
    "de": "und aber oder weil denn dass wenn während",
    "en": "and but or because while although so that which",
    "es": "y e pero o porque cuando aunque que",
    "fr": "et mais ou car parce quand pendant qui que",
    "it": "e ed ma o perché quando mentre che",
    "nl": "en maar of omdat want terwijl die",
    "pt": "e mas ou porque quando enquanto que",
}
# The share of a text that each of its parts has at least.
_SMALLEST_SHARE = {"marks": 0.1, "words": 0.25}
# Between two words without a mark, only a text of so many words is divided.
_FEWEST_WORDS = 6


class Cut(NamedTuple):
    """A text in two parts; together with the marks between them, they are the text."""

    left: str
    marks: str
    """Marks and white space between the two; the marks that end a sentence stay with the left part."""
    right: str


def cut_after_sentence(text: str) -> Cut | None:
    """The text after its first inner sentence, which a bracket or an ellipsis ends and a capital letter follows; else None.

    The division into sentences does not end a sentence there: "(It is late.) We go." A single word before the cut, as in
    "Well... We go.", is no sentence.
    """
    for match in _INNER_END.finditer(text):
        start, end = match.span(1)
        cut = Cut(text[:start], text[start:end], text[end:])
        if cut.right[:1].isupper() and len(cut.left.split()) > 1 and _has_word(cut.left):
            return cut
    return None


def cut_in_two(text: str, share: float, language: str, *, anywhere: bool = False) -> Cut | None:
    """The text in two parts, at the best place; None if there is none.

    The best place is at a mark that ends a sentence, else at a semicolon, a colon or a dash, else at a comma, else before
    a conjunction of the language. Of several, the one nearest to `share` counts. Both parts have a letter or digit.

    Args:
        text: a sentence or a clause.
        share: how much of the text the left part shall hold, 0 to 1.
        language: of the text.
        anywhere: whether a text without such a place may be divided between any two words.
    """
    levels = [(mark, "marks") for mark in _MARKS]
    if conjunctions := _CONJUNCTIONS.get(primary_language(language)):
        joined = "|".join(conjunctions.split())
        levels.append((re.compile(rf"(\s+)(?=(?:{joined})\s)", re.IGNORECASE), "words"))
    if anywhere and len(text.split()) >= _FEWEST_WORDS:
        levels.append((_BETWEEN_WORDS, "words"))
    for boundary, kind in levels:
        least = len(text) * min(_SMALLEST_SHARE[kind], share / 2)
        cuts = [
            cut
            for cut in _cuts(text, boundary)
            if least <= len(cut.left) <= len(text) - least
            and _has_word(cut.left)
            and _has_word(cut.right)
        ]
        if cuts:
            return min(cuts, key=lambda cut: abs(len(cut.left) - share * len(text)))
    return None


def _cuts(text: str, boundary: re.Pattern[str]) -> Iterator[Cut]:
    for match in boundary.finditer(text):
        start, end = match.span(match.lastindex or 0)
        yield Cut(text[:start], text[start:end], text[end:])


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))
