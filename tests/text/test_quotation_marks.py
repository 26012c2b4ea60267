"""Quotation marks without a partner, and words in quotation marks that training has not seen."""

import pytest

from transformer_cli.text.quotation_marks import mark_without_partner, unseen_names_in_quotes


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ('"The dog is red.', ""),
        ('The dog is red."', "The dog is red."),
        ('The "dog is red.', "The "),
        ("The dog \u00abis red.", "The dog "),
        ('The "dog" is "red.', 'The "dog" is '),
        ('A 5" long dog', "A 5"),
        ('The "dog" is red.', None),
        ("The dogs' house isn't \u2018red.", None),
        ('The "dog and "house', None),
        ('The dog " is red', None),
        ('dog"house', None),
        ("The dog is red.", None),
    ],
)
def test_the_only_mark_without_a_partner_is_found(text: str, before: str | None) -> None:
    assert mark_without_partner(text) == (None if before is None else len(before))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('Click "Frobnicate" now', ["Frobnicate"]),
        ("Click \u201cFrobnicate\u201d, \u00ab Wibble \u00bb and 'wobble'", ["Frobnicate", "Wibble", "wobble"]),
        ('Use "Frobnicate Wibble" here', ["Frobnicate Wibble"]),
        ('The "red Wibble" is here', []),
        ('The "dog" is red', []),
        ('The "frobnicate the dog now please" is red', []),
        ("The dogs' wibbles' house", []),
        ('Click "Frobnicate and go', []),
    ],
)
def test_words_in_quotation_marks_of_which_training_has_seen_none_are_found(text: str, names: list[str]) -> None:
    seen = {"Click", "now", "and", "Use", "here", "The", "red", "is", "dog", "the", "please", "house", "dogs"}
    assert [text[start:end] for start, end in unseen_names_in_quotes(text, seen)] == names
