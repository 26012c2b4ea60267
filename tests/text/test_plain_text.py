"""What a plain text surely has not, so that nobody has to look for it."""

import re
from collections.abc import Iterable
from itertools import product

import pytest

from transformer_cli.decoding.checks import brackets, doubts, signs
from transformer_cli.decoding.checks.numbers_in_text import has_number_sign
from transformer_cli.text import seen_words, sentences, span_kinds, spans
from transformer_cli.text.languages import _SMALL, is_plain, plain_words
from transformer_cli.text.normalization import may_be_invisible
from transformer_cli.text.seen_words import word_pattern
from transformer_cli.text.sentences import TextRange, text_ranges
from transformer_cli.text.spans import is_enclosed

# Short texts of these: with every neighbour that a sign can have.
SIGNS = "aTé ,.'-?!"
JOINTS = (" ", "-", "'", ", ", ". ", "! ")
ABSENT = {
    "a protected span": span_kinds.SPAN_SIGN,
    "a sign": signs.SIGN,
    "empty brackets": brackets.MAY_BE_EMPTY,
    "a bracket": brackets.BRACKET,
    "an ellipsis": sentences.ELLIPSIS,
    "a dash": sentences.DASH,
    "an opening quote": seen_words._OPENING_QUOTE,
    "a digit": re.compile(r"\d"),
}


def plain_texts(*places: Iterable[str]) -> list[str]:
    """With one of these signs at each place."""
    return [text for text in map("".join, product(*places)) if is_plain(text)]


def test_plain_texts_have_none_of_the_signs_that_repairs_look_for() -> None:
    texts = [text for length in range(1, 6) for text in plain_texts(*[SIGNS] * length)]
    first, last = {text[0] for text in texts}, {text[-1] for text in texts}
    texts += plain_texts(first, *[SIGNS] * 4, last)  # a million others are none
    assert len(texts) > 3000
    for name, pattern in ABSENT.items():
        assert not [text for text in texts if pattern.search(text)], name


@pytest.mark.long
def test_plain_texts_have_nothing_of_what_is_looked_for_in_other_texts() -> None:
    # Words that are parts of names, options, keys and abbreviations, with what may stand between two words.
    words = ("Ctrl", "Meta", "com", "pdf", "no", "Big", "z", "A", "\u00e0")
    texts = [text for text in map("".join, product(words, JOINTS, words, JOINTS, words[5:])) if is_plain(text)]
    assert len(texts) > 2000
    for text in texts:
        assert not [*spans._spans(text)], text
        assert {*doubts.lost_marks(text, "Parola", "it")} <= {"?"}, text
        assert text.isprintable(), text
        assert not has_number_sign(text, text), text
        for has_any in (may_be_invisible, is_enclosed):
            assert not has_any(text), text


def test_a_plain_text_is_one_range_of_its_line() -> None:
    for text in plain_texts(*[SIGNS] * 5):
        assert text_ranges(text) == [TextRange(0, len(text))]


def test_words_of_plain_texts_are_those_of_the_general_patterns() -> None:
    tokens = re.compile(r"[^\W\d_]+|\d+")
    for text in plain_texts(*[SIGNS] * 5):
        assert plain_words(text) == word_pattern("en").findall(text), text
        assert plain_words(text.casefold()) == tokens.findall(text.casefold()), text


def test_every_letter_of_plain_texts_stays_letters_when_its_case_is_folded() -> None:
    letters = re.findall(f"[{_SMALL}]", "".join(map(chr, range(0x250))))
    assert len(letters) > 200
    for letter in letters:
        assert re.fullmatch(r"[^\W\d_]+", letter.casefold()), hex(ord(letter))


@pytest.mark.parametrize(
    "text",
    [
        "The dog is big.",
        "I'm well-known, you say?",
        "Perché no!",
        "It is late. We go, too.",
    ],
)
def test_ordinary_sentences_are_plain(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " a",
        "a ",
        "a  b",
        "a,b",
        "GitHub",
        "USA",
        "room 5",
        "p. 7",
        "a.b",
        "a--b",
        "a -b",
        "well-a",
        "a...",
        "'a'",
        "dogs' house",
        "a!b",
        "a\n",
        "x\ny",
        "a: b",
        "…a",
        "Ctrl-C",
        "Ctrl-C now",
        "Ctrl-c",
        "Alt-Tab",
        "a\u00d7b",
        "LÀ",
        "ÇÀ É",
    ],
)
def test_other_texts_are_not_plain(text: str) -> None:
    assert not is_plain(text)
