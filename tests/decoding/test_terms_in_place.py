"""A term of a glossary stands in the place of the model's own word, and not beside it."""

from dataclasses import replace
from pathlib import Path

import pytest

from transformer_cli.decoding import Glossary, Translator
from transformer_cli.decoding.glossary import word_sequence
from transformer_cli.decoding.loading import load_translator

# A source term, its target term, and the words for it that the model writes by itself.
TERMS = [
    ("station", "fermata", "stazione"),
    ("car", "auto", "macchina"),
    ("dog", "cucciolo", "cane"),
    ("train", "convoglio", "treno"),
    ("brother", "fratellino", "fratello"),
    ("book", "volume", "libro"),
    ("dogs", "cuccioli", "cane cani"),
    ("cat", "micio", "gatto"),
    ("house", "abitazione", "casa"),
    ("coffee", "espresso", "caff\u00e8"),
    ("garden", "parco", "giardino"),
    ("table", "banco", "tavolo"),
]
SENTENCES = {
    "Where is the station?": "station",
    "I have a red car and a dog.": "car dog",
    "The train is late.": "train",
    "My brother reads a book.": "brother book",
    "We have two dogs and a cat.": "dogs cat",
    "The house is big.": "house",
    "I want a coffee.": "coffee",
    "She is in the garden.": "garden",
    "The cat is on the table.": "cat table",
}


@pytest.fixture(scope="module")
def small() -> Translator:
    """The model of docs/run."""
    return load_translator(Path(__file__).parents[2] / "docs/run")


@pytest.mark.long
def test_a_term_stands_in_the_place_of_the_own_word_of_the_model(small: Translator) -> None:
    glossary = Glossary.of({source: target for source, target, _ in TERMS})
    found = list(small.with_glossary(glossary).translate(SENTENCES))
    of_terms = {source: (target, own.split()) for source, target, own in TERMS}
    beside = []
    for terms, translation in zip(SENTENCES.values(), found, strict=True):
        words = [word.casefold() for word in word_sequence(translation.text)]
        assert all(term.is_applied for term in translation.terms)
        for term in terms.split():
            target, own = of_terms[term]
            assert words.count(target) == 1
            beside += [translation.text for word in own if word in words]
    assert not beside


@pytest.mark.long
def test_the_n_best_translations_have_the_term_in_the_place_of_the_own_word_too(
    small: Translator,
) -> None:
    glossary = Glossary.of({source: target for source, target, _ in TERMS})
    three = replace(small, decoding=small.decoding.model_copy(update={"num_best": 3}))
    best = small.with_glossary(glossary).translate(SENTENCES)
    of_terms = {source: (target, own.split()) for source, target, own in TERMS}
    num_texts = 0
    for terms, one, found in zip(
        SENTENCES.values(), best, three.with_glossary(glossary).translate(SENTENCES), strict=True
    ):
        texts = [each.text for each in found.alternatives]
        num_texts += len(texts)
        assert len(set(texts)) == len(texts)
        assert texts[0] == one.text
        for text in texts:
            words = [word.casefold() for word in word_sequence(text)]
            for term in terms.split():
                target, own = of_terms[term]
                assert target in words
                assert not set(own) & set(words), text
    assert num_texts >= 2 * len(SENTENCES)


@pytest.mark.long
def test_the_rest_of_the_sentence_is_that_of_the_translation_without_terms(small: Translator) -> None:
    [free] = small.translate(["The train is late."])
    [found] = small.with_glossary(Glossary.of({"train": "convoglio"})).translate(["The train is late."])
    assert free.text.replace("treno", "convoglio") == found.text


def test_a_form_at_the_beginning_has_a_capital_letter(small: Translator) -> None:
    [found] = small.with_glossary(Glossary.of({"Anna": "maria"})).translate(["Anna is tired."])
    assert found.text.startswith("Maria")


@pytest.mark.long
def test_a_word_that_stands_for_something_else_too_stays(small: Translator) -> None:
    sentence = "The house is big. The house is red."
    [found] = small.with_glossary(Glossary.of({"big": "enorme"})).translate([sentence])
    assert found.text.count("casa") == 2
    assert "enorme" in found.text
