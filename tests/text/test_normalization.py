import sys
import time
import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_cli.config.data import CleaningConfig
from transformer_cli.text.normalization import (
    compose,
    is_blank,
    may_be_invisible,
    normalize,
    reads_without_invisible,
    remove_control_characters,
    with_plain_spaces,
    without_invisible,
)

RULES = CleaningConfig()


def as_source(text: str) -> str:
    return normalize(text, RULES, removes_invisible=True)


def as_target(text: str, rules: CleaningConfig = RULES) -> str:
    return normalize(text, rules, removes_invisible=False)


@given(st.text())
def test_normalizing_twice_changes_nothing(text: str) -> None:
    once = as_target(text)
    assert as_target(once) == once


@given(st.text())
def test_composed_text_is_what_the_unicode_standard_says(text: str) -> None:
    assert compose(text) == unicodedata.normalize("NFC", text)


@given(st.lists(st.sampled_from("ae\u0301\u0316\u0323\u1100\u1161\u11a8 \u0e34"), min_size=1))
def test_long_text_is_composed_as_short_text_is(characters: list[str]) -> None:
    text = "".join(characters) * (1001 // len(characters) + 1)
    assert compose(text) == unicodedata.normalize("NFC", text)


@pytest.mark.long
def test_a_megabyte_of_combining_marks_takes_seconds_at_most() -> None:
    text = "a" + "\u0301\u0316" * 250_000
    started_at = time.process_time()
    composed = compose(text)
    assert time.process_time() - started_at < 5
    # Marks below the letter come first, and one of those above becomes part of the letter.
    assert composed == "\u00e1" + "\u0316" * 250_000 + "\u0301" * 249_999


def test_accent_and_letter_become_one_character() -> None:
    assert as_target("perche\u0301") == "perché"


def test_a_control_character_between_letter_and_accent_does_not_keep_them_apart() -> None:
    assert as_target("e\x01\u0301") == "é"


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
def test_white_space_joiners_and_direction_marks_stay_in_a_target(text: str) -> None:
    assert as_target(text) == text


def test_each_normalisation_can_be_switched_off() -> None:
    raw = "e\u0301\x07"
    assert as_target(raw, CleaningConfig(normalize_unicode=False)) == "e\u0301"
    assert as_target(raw, CleaningConfig(remove_control_characters=False)) == "é\x07"


@pytest.mark.parametrize("text", ["", " ", "\t\r", "\u00a0", "\u3000", "\u200b", "\ufeff", " \u200b\u00a0\u200e"])
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


@pytest.mark.long
def test_every_character_that_unicode_calls_ignorable_is_blank() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    ignorable = regex.findall(r"\p{Default_Ignorable_Code_Point}", everything)
    assert len(ignorable) > 4000
    assert [hex(ord(one)) for one in ignorable if not is_blank(one)] == []


@pytest.mark.long
def test_every_letter_digit_mark_and_symbol_that_is_shown_is_not_blank() -> None:
    shown = regex.compile(r"[\p{L}\p{N}\p{M}\p{P}\p{S}--\p{Default_Ignorable_Code_Point}]", regex.V1)
    blank = {c for c in map(chr, range(sys.maxunicode + 1)) if is_blank(c) and shown.match(c)}
    assert blank == {"\u2800", "\U0001d159"}


@pytest.mark.parametrize("text", [".", " a", "\u200ba", "\u0301", "\x07"])
def test_text_that_shows_anything_is_not_blank(text: str) -> None:
    assert not is_blank(text)


OTHER_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
REMOVED = (
    "\u00ad\u034f\u061c\u180b\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2064"
    "\u2066\u2067\u2068\u2069\u206a\ufe00\ufe0e\ufe0f\ufeff\U000e0001\U000e0041\U000e007f\U000e0100"
)


def test_every_space_of_unicode_becomes_a_plain_space_in_a_source() -> None:
    separators = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Zs"]
    assert separators == [" ", *OTHER_SPACES]
    assert {as_source(f"a{space}b") for space in separators} == {"a b"}


@pytest.mark.parametrize("character", [*REMOVED], ids=ascii)
def test_what_nobody_sees_vanishes_from_latin_words(character: str) -> None:
    assert as_source(f"sta{character}tion") == "station"
    assert as_source(f"{character}a{character} {character * 3}b{character}") == "a b"


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian
        "\u06f2\u06f0\u200c\u0633\u0627\u0644\u06af\u06cc",  # Persian, behind digits
        "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",  # Hindi
        "\u0d05\u0d35\u0d28\u0d4d\u200d \u0d0e",  # Malayalam, at the end of a word
        "\u0d9a\u0dca\u200d\u0dbb\u0dd2",  # Sinhala
        "\u182d\u180e\u1820 \u1820\u180b",  # Mongolian
    ],
)
def test_joiners_stay_in_the_scripts_that_are_spelled_with_them(text: str) -> None:
    assert as_source(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f469\U0001f3fd\u200d\U0001f680",
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f642\u200d\u2194\ufe0f",
        "1\ufe0f\u20e3 #\ufe0f\u20e3",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u260e\ufe0e",
    ],
)
def test_emoji_keep_all_their_characters(text: str) -> None:
    assert as_source(text) == text
    assert as_source(f"a{text}\u200b b") == f"a{text} b"


def test_a_joiner_vanishes_where_no_word_is_spelled_with_it() -> None:
    assert as_source("\u0645\u06cc\u200c \u0645") == "\u0645\u06cc \u0645"
    assert as_source("\u0645\u200c\u200b\ufe0f\u200c\u062e") == "\u0645\u200c\u062e"
    assert as_source("Auf\u200clage \u200d\U0001f525\u200d") == "Auflage \U0001f525"


def test_a_letter_and_its_accent_become_one_without_the_character_between_them() -> None:
    assert as_source("e\u200b\u0301") == "\u00e9"


@given(st.text(st.one_of(st.characters(), st.sampled_from(OTHER_SPACES + REMOVED))))
@example("a\u2764\u2066\u0301\u0d4d\u200d\u094d\u0301")
def test_a_source_that_is_normalised_twice_is_the_same(text: str) -> None:
    once = as_source(text)
    assert as_source(once) == once
    assert not once.isascii() or not may_be_invisible(once)


@given(st.text())
def test_a_text_without_such_characters_is_left_alone(text: str) -> None:
    if not may_be_invisible(text):
        assert with_plain_spaces(without_invisible(text)) == text


@pytest.mark.parametrize(
    ("setting", "is_sentencepiece", "expected"),
    [(True, False, True), (None, False, True), (False, False, False), (True, True, False), (None, True, False)],
)
def test_models_read_without_invisible_characters_unless_told_otherwise_or_imported(
    setting: bool | None, is_sentencepiece: bool, expected: bool
) -> None:
    rules = CleaningConfig(normalize_invisible=setting)
    assert reads_without_invisible(rules, is_sentencepiece=is_sentencepiece) is expected
