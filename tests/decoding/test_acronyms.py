"""Abbreviations in capitals, such as AI and PDF, that a translation lacks."""

from dataclasses import replace

import pytest

from transformer_cli.config import TokenizerConfig
from transformer_cli.decoding.checks.acronyms import lost_acronyms
from transformer_cli.decoding.checks.doubts import ACRONYM
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import Translator
from transformer_cli.text.tokenizer import train_tokenizer

from .stub_translators import StubEngine, stub_translator, upper

WORDS = {
    "Open": "Apri",
    "the": "il",
    "garden": "giardino",
    "red": "rosso",
    "AI": "",
    "Boston": "Boston",
    "Anna": "Anna",
}
TOKENIZER = train_tokenizer([" ".join([*WORDS, *WORDS.values(), "NOT", "not", "."])] * 2, TokenizerConfig())
# Words of several tokens in small letters, as a trained tokenizer divides rare ones.
PIECES = train_tokenizer(
    ["open the dog not big card is here and there"] * 9, TokenizerConfig(kind="bpe", vocab_size=330)
)


def translator_that_loses(*words: str) -> Translator:
    """A translator that writes nothing for some words."""

    def model(text: str) -> list[str]:
        return [" ".join(WORDS.get(word, word) for word in text.split() if word not in words).replace("  ", " ")]

    stub = stub_translator(upper, repair=True)
    pipeline = replace(stub.pipeline, source_tokenizer=TOKENIZER, target_tokenizer=TOKENIZER, spellings=None)
    return replace(stub, pipeline=pipeline, engine=StubEngine(model, TOKENIZER))


@pytest.mark.parametrize(
    ("lost", "text", "doubts"),
    [
        ((), "Apri il AI giardino", ()),  # a name stands in the place of AI while it is translated
        (("Boston",), "Apri il AI giardino", ()),  # another name
        (("Boston", "Anna"), "Apri il giardino", (f"{ACRONYM}: AI",)),
    ],
)
def test_an_abbreviation_comes_back_or_is_named(lost: tuple[str, ...], text: str, doubts: tuple[str, ...]) -> None:
    [found] = translator_that_loses(*lost).translate(["Open the AI garden"])
    assert (found.text, found.doubts) == (text, doubts)
    assert found.is_repaired == (not doubts)


@pytest.mark.parametrize(
    ("source", "text", "lost"),
    [
        ("Open the PDF.", "Ouvrez le PDUR.", ("PDF",)),
        ("Open the PDFs.", "Ouvrez les PDF.", ()),
        ("Open the USB card.", "Ouvrez les cartes USBes.", ("USB",)),
        ("The DNA is here.", "L'ADN est ici.", ()),
        ("The DNA is here.", "L'A.D.N. est ici.", ()),
        ("The DNA is here.", "Le DAN est ici.", ("DNA",)),
        ("The DNA and the PDF.", "Le chien.", ("DNA", "PDF")),
        ("It is OK.", "Ça va.", ()),
        ("It is NOT here.", "Il n'est pas ici.", ()),  # emphasis
        ("Part XIV is here.", "La partie 14 est ici.", ()),
        ("OPEN THE PDF.", "Ouvrez.", ()),
        ("Open AI.pdf and AI/ML.", "Ouvrez.", ()),
    ],
)
def test_abbreviations_are_told_from_other_words_in_capitals(source: str, text: str, lost: tuple[str, ...]) -> None:
    pipeline = replace(stub_translator(upper, languages=("en", "fr")).pipeline, source_tokenizer=PIECES)
    assert lost_acronyms(pipeline, Translation(source, text, 0.0, ())) == lost
