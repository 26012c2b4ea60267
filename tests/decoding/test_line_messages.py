"""What is said of a line is what its record holds, and nothing is said of a line without marks in its record."""

import logging
from dataclasses import fields, replace

import pytest

from transformer_cli.decoding.checks.doubts import MADE_UP, UNSEEN
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import warn_of_lines

PLAIN = Translation("She comes on 14 May.", "Viene il 14 May.", -1.0, ())
SAID = {
    "is_cut": "a sentence of more than 9 tokens, which was translated in parts",
    "is_divided": "a sentence was translated clause by clause, because it is longer than those of the training, or because its "
    "translation as a whole was doubtful: look whether words are missing",
    "is_untranslated": "a sentence or a part of it was left as it is, because the model loses text of it or cannot read it",
    "is_partly_copied": "a sentence was left as it is, because the model loses the protected parts of it",
    "is_in_pieces": "a sentence was translated in pieces around the parts that must stay, so read it again",
}


def messages_of(caplog: pytest.LogCaptureFixture, *translations: Translation) -> list[str]:
    with caplog.at_level(logging.WARNING):
        warn_of_lines([*enumerate(translations, 1)], max_length=9, is_strict=False, only_green=False)
    return caplog.messages


@pytest.mark.parametrize("name", SAID)
def test_each_mark_of_a_record_is_told_with_the_number_of_its_line(name: str, caplog: pytest.LogCaptureFixture) -> None:
    marked = replace(PLAIN, **{name: True})  # type: ignore[arg-type]
    assert messages_of(caplog, PLAIN, marked) == [f"line 2: {SAID[name]}"]


def test_a_line_whose_record_has_no_mark_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    quiet = {"is_repaired", "is_from_memory", "is_of_terms"}
    names = {field.name for field in fields(Translation) if field.name.startswith("is_")}
    assert names == {*SAID, *quiet}, "a new mark needs a message here, or a reason for none"
    assert messages_of(caplog, replace(PLAIN, **dict.fromkeys(quiet, True))) == []  # type: ignore[arg-type]


def test_lines_are_told_in_ranges_and_many_of_them_with_the_option_that_names_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    marked = replace(PLAIN, is_cut=True)
    of_ranges = messages_of(caplog, *[marked] * 7, PLAIN, marked, marked, PLAIN, marked)
    assert of_ranges == [f"lines 1 to 7, 9, 10, 12: {SAID['is_cut']}"]
    caplog.clear()
    of_many = messages_of(caplog, *[marked, PLAIN] * 8)
    assert of_many == [f"lines 1, 3, 5, 7, 9 and 3 more (tfm translate --json tells it of each line): {SAID['is_cut']}"]


def test_many_unseen_words_are_told_with_the_option_that_names_all(caplog: pytest.LogCaptureFixture) -> None:
    marked = replace(PLAIN, doubts=(f"{UNSEEN}: {', '.join('abcdefg')}", f"{MADE_UP}: x"))
    other = replace(PLAIN, doubts=(f"{MADE_UP}: y, z",))
    assert messages_of(caplog, marked, other) == [
        f"line 1: the translation {UNSEEN}: a, b, c, d, e and 2 more (tfm translate --json tells all)",
        f"lines 1, 2: the translation {MADE_UP}: x, y, z",
    ]
