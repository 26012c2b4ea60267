"""The everyday sentences with which a run is measured: they are kept out of what it learns from."""

import re

import pytest

from transformer_cli.phrasebook import PhrasebookPair, generate_split
from transformer_cli.phrasebook.generation import everyday_sentences, written_alike
from transformer_cli.phrasebook.patterns.situations.conversation import PHRASES

WORD = re.compile(r"\w+")


@pytest.fixture(scope="module")
def pairs() -> list[PhrasebookPair]:
    train = generate_split("train", num_pairs=60_000, seed=1)
    validation = generate_split("validation", num_pairs=1, seed=1)
    return [*train, *validation, *generate_split("test", num_pairs=1, seed=1)]


def test_there_are_a_hundred_with_accepted_translations() -> None:
    assert len(everyday_sentences()) == 100
    for english, accepted in everyday_sentences().items():
        assert accepted, english
        assert len(set(accepted)) == len(accepted), english
        for text in (english, *accepted):
            assert text[0].isupper()
            assert text[-1] in ".?!", text


def test_no_split_contains_one(pairs: list[PhrasebookPair]) -> None:
    made = {written_alike(pair.source) for pair in pairs}
    assert [x for x in everyday_sentences() if written_alike(x) in made] == []


def test_none_is_a_set_phrase() -> None:
    phrases = {written_alike(phrase.english + phrase.mark) for phrase in PHRASES}
    assert [x for x in everyday_sentences() if written_alike(x) in phrases] == []


def test_contractions_do_not_hide_one() -> None:
    assert written_alike("What's the password?") == written_alike("What is the password?")
    assert written_alike("I am late.") == written_alike("I'm late.")


def test_nearly_all_their_words_can_be_learned(pairs: list[PhrasebookPair]) -> None:
    learned = {word for pair in pairs for word in WORD.findall(pair.source.lower())}
    needed = {word for english in everyday_sentences() for word in WORD.findall(english.lower())}
    assert len(needed - learned) <= 3, needed - learned


def test_set_phrases_are_frequent_enough_to_be_learned(pairs: list[PhrasebookPair]) -> None:
    num_phrases = sum(pair.pattern in {"phrase.tu", "phrase.lei"} for pair in pairs)
    assert 0.035 <= num_phrases / len(pairs) <= 0.06
