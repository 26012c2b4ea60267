"""A glossary and protected spans together: both promises hold, with any model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig, TokenizerConfig
from transformer_cli.decoding import Glossary, Hypothesis, Request, Translation
from transformer_cli.decoding.glossary import AppliedTerm, word_sequence
from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.text.spans import find_spans
from transformer_cli.text.tokenizer import train_tokenizer

from .small_translators import random_model, translator

TEXTS = [
    "The dog and the cold house cost 20 euros, said Anna.",
    "Der Hund läuft über die Straße; das Haus ist groß.",
    "Marco und Maria wollen 30 Türen, kalt oder warm.",
]
TOKENIZERS = {
    "bpe": train_tokenizer(TEXTS, TokenizerConfig(kind="bpe", vocab_size=340)),
    "words": train_tokenizer(TEXTS, TokenizerConfig()),
}
TRANSLATORS = {
    kind: replace(translator(tokenizer, model=random_model(tokenizer, max_length=200)), protects_spans=True)
    for kind, tokenizer in TOKENIZERS.items()
}
TERMS = {
    "dog": "Hund",
    "front door": "Haustür",
    "cold": "kalt",
    "house": "großes Haus",
    "Anna": "Änne",
    "A4 paper": "Papier A4",
}
words = st.sampled_from(["the", "dog", "front door", "cold", "house", "Anna", "A4 paper", "and"])
spans = st.sampled_from(
    ["https://example.org/dog", "12.50", "7", "{name}", "<b>", "</b>", "a@dog.com", "%s", "A4", "5kg"]
)
lines = st.lists(words | spans, min_size=1, max_size=7).map(" ".join)


def translated(kind: str, line: str, terms: dict[str, str] = TERMS) -> Translation:
    [found] = TRANSLATORS[kind].with_glossary(Glossary.of(terms)).translate([line])
    return found


def num_of(term: str, text: str) -> int:
    """How often the words of a term stand in a text."""
    found, wanted = word_sequence(text.casefold()), word_sequence(term.casefold())
    places = range(len(found) - len(wanted) + 1)
    return sum(list(found[place : place + len(wanted)]) == list(wanted) for place in places)


@pytest.mark.heavy
@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=12, deadline=None)
@given(line=lines)
def test_each_term_and_each_span_is_in_the_translation(kind: str, line: str) -> None:
    found = translated(kind, line)
    outside = [span for span in find_spans(line) if line[span.start : span.end] != "A4"]
    promise = Promise.of(line, outside, may_repeat_numbers=True, allowed=frozenset({"A4"}))
    assert not outside or promise.is_kept_by(found.text)
    assert found.text.count("A4") >= line.count("A4") or found.is_partly_copied
    for source in ("front door", "Anna", "A4 paper"):
        assert sum(term.source == source for term in found.terms) == line.count(source)
    for term in found.terms:
        assert term.is_applied or found.is_partly_copied
        if not found.is_partly_copied:
            asked = [each.target for each in found.terms].count(term.target)
            assert num_of(term.target, found.text) >= asked


@pytest.mark.long
def test_a_word_in_a_url_is_no_term() -> None:
    found = translated("bpe", "the house https://example.org/dog and dog@dog.com")
    assert [term.source for term in found.terms] == ["house"]


@pytest.mark.long
def test_a_stand_in_is_no_source_term() -> None:
    found = translated("bpe", "the house https://example.org", {"anna": "Hund", "marco": "Hund"})
    assert found.terms == ()
    assert "Hund" not in found.text


@pytest.mark.long
def test_a_term_with_a_number_wins_over_the_protection_of_the_number() -> None:
    found = translated("bpe", "the A4 paper", {"A4 paper": "Straße"})
    assert found.terms == (AppliedTerm("A4 paper", "Straße", True),)
    assert "Straße" in found.text


class Inventing:
    """An engine that writes the term, and a span that no source has."""

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        ids = tuple(TOKENIZERS["bpe"].encode("Hund @nobody"))
        return [[Hypothesis(ids, -1.0)] for _ in requests]


def test_a_sentence_that_is_copied_says_that_its_terms_are_missing() -> None:
    engine: Any = Inventing()
    inventing = replace(TRANSLATORS["bpe"], engine=engine).with_glossary(Glossary.of(TERMS))
    [found] = inventing.translate(["the dog 7"])
    assert (found.text, found.is_partly_copied) == ("the dog 7", True)
    assert found.terms == (AppliedTerm("dog", "Hund", False),)
