import sys
import time
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config.text_settings import CleaningConfig
from transformer_cli.text.normalization import (
    compose,
    is_blank,
    normalize,
    remove_control_characters,
)

RULES = CleaningConfig()


@given(st.text())
def test_normalizing_twice_changes_nothing(text: str) -> None:
    once = normalize(text, RULES)
    assert normalize(once, RULES) == once


@given(st.text())
def test_composed_text_is_what_the_unicode_standard_says(text: str) -> None:
    assert compose(text) == unicodedata.normalize("NFC", text)


@given(st.lists(st.sampled_from("ae\u0301\u0316\u0323\u1100\u1161\u11a8 \u0e34"), min_size=1))
def test_long_text_is_composed_as_short_text_is(characters: list[str]) -> None:
    text = "".join(characters) * (1001 // len(characters) + 1)
    assert compose(text) == unicodedata.normalize("NFC", text)


def test_a_megabyte_of_combining_marks_takes_seconds_at_most() -> None:
    text = "a" + "\u0301\u0316" * 250_000
    started_at = time.perf_counter()
    composed = compose(text)
    assert time.perf_counter() - started_at < 5
    # Marks below the letter come first, and one of those above becomes part of the letter.
    assert composed == "\u00e1" + "\u0316" * 250_000 + "\u0301" * 249_999


def test_accent_and_letter_become_one_character() -> None:
    assert normalize("perche\u0301", RULES) == "perché"


def test_a_control_character_between_letter_and_accent_does_not_keep_them_apart() -> None:
    assert normalize("e\x01\u0301", RULES) == "é"


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\x7f", "\x80", "\x9f", "\ufeff"])
def test_control_characters_and_byte_order_marks_are_removed(character: str) -> None:
    assert remove_control_characters(f"a{character}b") == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "a\tb",
        "a\x85b",
        "a\u2028b",
        "a\x1cb",
        "👩\u200d🚀",
        "\u200f\u05e9\u05dc",
        "a\u00a0b",
        "a\u00adb",
    ],
)
def test_white_space_joiners_and_direction_marks_stay(text: str) -> None:
    assert normalize(text, RULES) == text


def test_each_normalisation_can_be_switched_off() -> None:
    raw = "e\u0301\x07"
    assert normalize(raw, CleaningConfig(normalize_unicode=False)) == "e\u0301"
    assert normalize(raw, CleaningConfig(remove_control_characters=False)) == "é\x07"


@pytest.mark.parametrize(
    "text", ["", " ", "\t\r", "\u00a0", "\u3000", "\u200b", "\ufeff", " \u200b\u00a0\u200e"]
)
def test_text_that_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


INVISIBLE = {
    "fillers of Hangul": "\u3164\u115f\u1160\uffa0",
    "an empty pattern of Braille": "\u2800",
    "tags": "\U000e0001\U000e0020\U000e007f",
    "variation selectors": "\ufe00\ufe0f\U000e0100\u180b",
    "a grapheme joiner": "\u034f",
    "a mark of the Arabic direction": "\u061c",
    "vowels of Khmer that are never shown": "\u17b4\u17b5",
    "old controls of direction and shape": "\u206a\u206f",
    "controls of shorthand and of music": "\U0001bca0\U0001d173\U0001d159",
    "marks of annotation": "\ufff9\ufffa\ufffb",
}


@pytest.mark.parametrize("kind", INVISIBLE)
def test_characters_that_are_never_shown_are_blank_alone_and_together(kind: str) -> None:
    assert all(map(is_blank, INVISIBLE[kind]))
    assert is_blank(f" {INVISIBLE[kind]}\u200b")
    assert not is_blank(f"{INVISIBLE[kind]}a")


def test_every_character_that_unicode_calls_ignorable_is_blank() -> None:
    for code in range(sys.maxunicode + 1):
        if regex.match(r"\p{Default_Ignorable_Code_Point}", chr(code)):
            assert is_blank(chr(code)), hex(code)


def test_every_letter_digit_mark_and_symbol_that_is_shown_is_not_blank() -> None:
    shown = regex.compile(
        r"[\p{L}\p{N}\p{M}\p{P}\p{S}--\p{Default_Ignorable_Code_Point}]", regex.V1
    )
    blank = {c for c in map(chr, range(sys.maxunicode + 1)) if is_blank(c) and shown.match(c)}
    assert blank == {"\u2800", "\U0001d159"}


@pytest.mark.parametrize("text", [".", " a", "\u200ba", "\u0301", "\x07"])
def test_text_that_shows_anything_is_not_blank(text: str) -> None:
    assert not is_blank(text)
