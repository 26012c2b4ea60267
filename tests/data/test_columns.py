"""The columns of an unknown table: what its first row and the rows below say."""

import pytest

from transformer_cli.data.columns import is_header

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
