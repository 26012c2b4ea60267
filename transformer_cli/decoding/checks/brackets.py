"""Brackets and quotation marks that a translation loses: those around nothing, and those around words."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import has_letter
from transformer_cli.text.sentences import (
    BRACKETS,
    Sentence,
    closing_mark,
    partners_of_brackets,
)
from transformer_cli.text.spans import SpanKind, find_spans, masked

# Which a translation into Chinese, Japanese or Korean may have instead.
_WIDE_OPENING_BRACKETS, _WIDE_CLOSING_BRACKETS = (
    "\uff08\u3010\u300c\uff3b",
    "\uff09\u3011\u300d\uff3d",
)
# Between white space, with marks at most inside; {} is a placeholder.
_EMPTY_BRACKETS = lazy_pattern(
    r"(?<!\S)(?:\([^\w()]{0,5}\)|\[[^\w\[\]]{0,5}\]|\u00ab\s*\u00bb|\"\"|\u201c\u201d)(?!\S)"
)
MAY_BE_EMPTY = lazy_pattern(r"[(\[\"\u00ab\u201c][^\w(\[]{0,5}[)\]\"\u00bb\u201d]")
"""A text without this has no brackets or quotes around nothing; most texts have none."""

_PLURAL = lazy_pattern(r"(?<=[^\W\d_]{2})(?:(?<=s)\(s\)|\((e?s)\))(?!\w)", re.IGNORECASE)


def with_plurals(text: str) -> str:
    """A text with dogs for dog(s), and processes for process(es): models hardly know such brackets. Some people write dogs(s)."""
    return _PLURAL.sub(r"\1", text) if "(" in text else text


def without_empty_brackets(text: str) -> tuple[str, list[tuple[str, float]]]:
    """A text without the brackets and quotes around nothing, and each of these with the share of the words that stand before it."""
    if not (found := [*_EMPTY_BRACKETS.finditer(text)]):
        return text, []
    num_words_before, num_words, start = [], 0, 0
    for match in found:
        num_words += len(text[start : match.start()].split())
        num_words_before.append(num_words)
        start = match.end()
    words = _EMPTY_BRACKETS.sub(" ", text).split()
    shares = (before / max(1, len(words)) for before in num_words_before)
    return " ".join(words), list(zip((match[0] for match in found), shares, strict=True))


def loses_any(brackets: Sequence[tuple[str, float]], translation: str) -> bool:
    """Whether a translation has fewer of the brackets that `without_empty_brackets` has found."""
    counts = Counter(bracket for bracket, _ in brackets)
    return any(translation.count(bracket) < number for bracket, number in counts.items())


def with_empty_brackets(translation: str, brackets: Sequence[tuple[str, float]]) -> str:
    """A translation with the brackets around nothing between those words where the source had them, as near as lengths tell."""
    words = translation.split(" ")
    num_words = len(words)
    for bracket, share in reversed(brackets):
        words.insert(round(share * num_words), bracket)
    return " ".join(words)


BRACKET = re.compile(r"[(\[]")
_WORDS = lazy_pattern(r"[^\W_](?:.*[^\W_])?", re.DOTALL)


# What may end a word; longer texts, as in dogs(cats), are words for themselves.
_ENDING = lazy_pattern(r"\W?\w{0,3}|e(?:uses?|ss[ae])|t?rices?|innen|ières?")


def is_in_word(text: str, start: int, end: int) -> bool:
    """Whether a pair of brackets belongs to a word that it touches, as in dog(s), acteur(trice) and (un)known; it encloses at most one word."""
    inside = text[start + 1 : end]
    if text[end + 1 : end + 2].isalnum():
        return len(inside.split()) < 2
    return text[max(0, start - 1) : start].isalnum() and _ENDING.fullmatch(inside) is not None


def lost_brackets(text: str, translation: str) -> list[int]:
    """The places of the brackets around words of a text, if its translation has fewer.

    A model that has seen no brackets loses what they enclose.
    """
    if translation == text or BRACKET.search(text) is None:
        return []
    visible = masked(text, find_spans(text), "0")
    found, num_protected = [], 0
    for start, end in partners_of_brackets(visible, 0, len(visible)).items():
        # A translation keeps what is protected, and the brackets around it: the address of [a link](a.html).
        num_protected += start < end and not has_letter(visible[start:end])
        if start < end and has_letter(visible[start:end]) and not is_in_word(visible, start, end):
            found += [start, end]
    num_opened, num_closed = (
        sum(map(translation.count, brackets)) - num_protected
        for brackets in (
            (*BRACKETS, *_WIDE_OPENING_BRACKETS),
            (*BRACKETS.values(), *_WIDE_CLOSING_BRACKETS),
        )
    )
    return sorted(found) if 2 * min(num_opened, num_closed) < len(found) else []


class TextPiece(NamedTuple):
    """A part of a text that lost its brackets: translated by itself, or left as it is."""

    text: str
    is_translated: bool
    closing: str = ""
    """The mark that ends its sentence, if it is a part of one: the model reads it behind the piece, as it knows sentences."""
    is_inside: bool = False
    """Whether words of its sentence stand before it."""


_QUOTED = re.compile(r"\"[^\"]+\"|\u201c[^\u201d]+\u201d|\u00ab[^\u00bb]+\u00bb")
_LIST_OF_QUOTES = lazy_pattern(rf"\s*(?:{_QUOTED.pattern})(?:\s*[,;/|]\s*(?:{_QUOTED.pattern}))+\s*")


def _ends_in_lists(text: str, brackets: Sequence[int]) -> list[int]:
    """Where the quoted parts end of lists inside brackets, as in ("dog", "cat"): a model makes other marks of those between them."""
    lists = (_LIST_OF_QUOTES.fullmatch(text, one + 1, other) for one, other in pairwise(brackets))
    return [part.end() - 1 for found in lists if found for part in _QUOTED.finditer(text, *found.span())]


def pieces_around_brackets(sentences: Sequence[Sentence]) -> list[TextPiece]:
    """The pieces of the sentences of a text, inside and outside of the brackets around words; a sentence without any is one."""
    pieces: list[TextPiece] = []
    for text, gap in sentences:
        pieces.append(TextPiece(gap, is_translated=False))
        brackets = lost_brackets(text, "")
        if not brackets:
            pieces.append(TextPiece(text, is_translated=True))
            continue
        closing, place, is_inside = closing_mark(text), 0, False
        visible = masked(text, [span for span in find_spans(text) if span.kind is SpanKind.WORD], "x")
        for bracket in [*sorted({*brackets, *_ends_in_lists(text, brackets)}), len(text)]:
            core = _WORDS.search(visible, place, bracket)
            start, end = core.span() if core else (bracket, bracket)
            pieces.append(TextPiece(text[place:start], is_translated=False))
            pieces.append(TextPiece(text[start:end], has_letter(text[start:end]), closing, is_inside))
            pieces.append(TextPiece(text[end : bracket + 1], is_translated=False))
            place, is_inside = bracket + 1, is_inside or core is not None
    return [piece for piece in pieces if piece.text]
