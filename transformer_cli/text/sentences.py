"""Splitting a line into sentences, and the white space between two sentences of a language."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sentencex import get_sentence_boundaries

from transformer_cli.text.languages import has_spaces, primary_language

_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_NUMBER = re.compile(r"\s*\(?\d+[.)]*")
# " ' and the closing quotes of English, French and Japanese.
_CLOSING_QUOTES = frozenset("\"'\u201d\u2019\u00bb\u300d\u300f")
# `sentencex` panics at white space of several bytes, and refuses lone surrogates. Both become one character.
_UNREADABLE = re.compile(r"[^\S\n ]|[\ud800-\udfff]")
# `sentencex` takes a time that grows with the square of a text without white space.
MAX_CHARACTERS_AT_ONCE = 5000


class Sentence(NamedTuple):
    """One sentence of a line."""

    text: str
    gap: str
    """The white space before the sentence; empty for the first one, whose text keeps it."""


def split_sentences(text: str, language: str) -> list[Sentence]:
    """The sentences of a line, in order; their gaps and texts joined are the line.

    A part without a letter or digit is no sentence of its own: it stays with the sentence before it, or with the
    first. The number of a list (`1.`) ends no sentence, and neither does a closing quote without white space after
    it: 「行こう」と言った.

    Args:
        text: a line.
        language: of the text, such as en or zh-CN. The library `sentencex` has rules for about 300 languages; for
            others it uses those of English.
    """
    sentences: list[Sentence] = []
    start, gap = 0, ""
    has_words = False  # whether the sentence that begins at `start` has a letter or digit
    for first, place, following in _triples(
        [0, *_boundaries(text, primary_language(language)), len(text)]
    ):
        part = text[first:place].rstrip()
        has_words = has_words or bool(_LETTER_OR_DIGIT.search(part))
        next_gap = text[first + len(part) : place]
        is_open = (first == start and _NUMBER.fullmatch(part)) or (
            not next_gap and part[-1:] in _CLOSING_QUOTES
        )
        if has_words and not is_open and _LETTER_OR_DIGIT.search(text, place, following):
            sentences.append(Sentence(text[start : first + len(part)], gap))
            start, gap, has_words = place, next_gap, False
    return [*sentences, Sentence(text[start:], gap)]


def _triples(places: list[int]) -> Iterator[tuple[int, int, int]]:
    return zip(places, places[1:], places[2:], strict=False)


def gap_between(source_gap: str, source_language: str, target_language: str) -> str:
    """The white space between two translations; `source_gap` is the one between their source sentences."""
    if has_spaces(target_language):
        return source_gap or " "
    return "" if has_spaces(source_language) else source_gap


def _boundaries(text: str, language: str) -> list[int]:
    """Where the second sentence and all later ones begin."""
    readable = _UNREADABLE.sub(" ", text)
    places: list[int] = []
    start = 0
    while len(readable) - start > MAX_CHARACTERS_AT_ONCE:
        window = _boundaries_of_window(readable[start : start + MAX_CHARACTERS_AT_ONCE], language)
        # The text after a place decides whether a sentence ends there. So the next window starts one sentence earlier,
        # and finds the last place again.
        start_of_next = window[-2] if len(window) > 2 else MAX_CHARACTERS_AT_ONCE
        places += [start + place for place in window if place <= start_of_next]
        start += start_of_next
    return places + [start + place for place in _boundaries_of_window(readable[start:], language)]


def _boundaries_of_window(text: str, language: str) -> list[int]:
    try:
        boundaries = get_sentence_boundaries(language, text)
    except BaseException as error:
        # A Rust panic is no `Exception`. Without boundaries the text is translated as one sentence.
        if type(error).__name__ != "PanicException":
            raise
        return []
    return [boundary["start_index"] for boundary in boundaries if boundary["start_index"] > 0]
