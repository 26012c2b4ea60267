"""The columns of an unknown table: what its first row and the rows below say."""

import pytest

from transformer_cli.data.columns import is_header, kind_of_cells

# The cells are not longer than the names, so that only what the names mean can tell.
WORDS = [["casa", "house"], ["cane", "dog"], ["due", "two"], ["io", "I"]]


@pytest.mark.parametrize(
    ("titles", "is_named"),
    [
        (["source", "target"], True),
        (["sentence", "translation"], True),
        (["sentence", "sentence"], True),
        (["frase", "sentence"], False),  # a pair of a word list
        (["translation", "traduzione"], False),
        (["English", "Italian"], True),
        (["English", "Inglese"], False),
        (["sentence", "house"], False),
    ],
)
def test_two_languages_or_roles_name_columns_and_a_word_with_its_translation_does_not(
    titles: list[str], is_named: bool
) -> None:
    assert is_header(titles, WORDS) is is_named


def test_a_code_is_a_word_where_more_than_one_cell_in_twenty_is_as_short() -> None:
    long, short = ["\u12a0\u121b\u122d\u129b", "una frase"], ["\u12a0", "a"]
    assert is_header(["am", "it"], [short, *[long] * 19])
    assert not is_header(["am", "it"], [short, short, *[long] * 18])


CHAKMA = "\U00011107\U00011127"


@pytest.mark.parametrize(
    ("titles", "is_named"),
    [
        ([CHAKMA * 3, f"{CHAKMA} {CHAKMA * 2}"], True),  # as long as the texts below
        (["", CHAKMA * 3, CHAKMA * 2], True),
        ([CHAKMA, "a dog"], False),  # a pair in the other order
        ([CHAKMA, f"{CHAKMA}."], False),
        (["Linux", "Windows"], False),
        ([" ".join([CHAKMA] * 5), CHAKMA], False),
    ],
)
def test_names_in_the_script_of_one_side_are_a_header(titles: list[str], is_named: bool) -> None:
    rows = [
        ["1"] * (len(titles) - 2) + ["dog", CHAKMA],
        ["1"] * (len(titles) - 2) + ["a cat", CHAKMA * 9],
    ]
    assert is_header(titles, rows * 4) is is_named
    mixed = [[*row[:-2], CHAKMA, "dog"] for row in rows]
    assert not is_header(titles, rows * 4 + mixed)


@pytest.mark.parametrize("word", ["casa", "\u2820\u281e\u2813", "\U00011bc2\U00011bc6"])  # Italian, Braille, Sunuwar
def test_a_column_of_any_script_holds_text(word: str) -> None:
    assert kind_of_cells([f"{word} {number}" for number in range(9)]) == "text"
    assert kind_of_cells([f"\u2605 {number}" for number in range(9)]) == "numbers"
