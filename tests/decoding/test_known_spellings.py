"""Unknown words, read in a spelling that the vocabulary knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import TokenizerConfig
from transformer_cli.decoding.text_pipeline import KnownSpellings
from transformer_cli.text.tokenizer import train_tokenizer

TEXTS = [
    "The cat's house isn't far - he says: \"hi\".",
    "Perché la città è l'acqua?",
    "Rome the cat",
]
OF_WORDS = train_tokenizer(TEXTS, TokenizerConfig())
SUBWORDS = train_tokenizer(TEXTS, TokenizerConfig(kind="bpe", vocab_size=300))
pieces = [
    "THE",
    "The",
    "the",
    "citta",
    "CITTÀ",
    "cat\u2019s",
    "l\u2019",
    "acqua",
    "Rome",
    "other",
    "\u201c",
    "\u2013",
    " ",
    "  ",
    ".",
    "XY",
]
texts = st.lists(st.sampled_from(pieces), max_size=12).map("".join) | st.text(max_size=20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THE CAT'S HOUSE ISN'T FAR.", "The cat's house isn't far."),
        ("rome", "Rome"),
        ("Cat", "cat"),
        ("the House", "the house"),
        ("THE CAT THE CAT", "The cat the cat"),
        ('"THE CAT THE CAT', '"The cat the cat'),
        ("perche la citta e l'acqua?", "Perché la città è l'acqua?"),
        ("CITTA", "città"),
        ("the cat\u2019s house isn\u2019t far", "the cat's house isn't far"),
        ("\u201chi\u201d \u2013 the cat", '"hi" - the cat'),
        ("L\u2019acqua", "l'acqua"),
        ("the   cat", "the cat"),
        (" the cat ", " the cat "),
        ("unknown words the catt", "unknown words the catt"),
        ("", ""),
    ],
)
def test_words_are_read_in_a_spelling_that_is_known(text: str, expected: str) -> None:
    assert KnownSpellings(OF_WORDS).respelled(text) == expected


@given(texts)
def test_a_respelled_text_has_no_more_unknown_words_and_does_not_change_again(text: str) -> None:
    spellings = KnownSpellings(OF_WORDS)
    respelled = spellings.respelled(text)
    assert len(OF_WORDS.unknown_words(respelled)) <= len(OF_WORDS.unknown_words(text))
    assert spellings.respelled(respelled) == respelled


@given(texts)
def test_a_text_of_known_words_changes_in_its_spaces_only(text: str) -> None:
    respelled = KnownSpellings(SUBWORDS).respelled(text)
    assert respelled.split() == text.split()
