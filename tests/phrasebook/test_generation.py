"""The splits of the phrasebook: size, determinism, and what is held out of training."""

import os
import re
import subprocess
import sys
import unicodedata
from importlib.resources import files
from pathlib import Path

import pytest

from transformer_cli.phrasebook import (
    PhrasebookPair,
    count_patterns_and_lemmas,
    fingerprint,
    generate_split,
    generation,
    is_held_out,
)
from transformer_cli.phrasebook.patterns.all_patterns import PATTERNS
from transformer_cli.phrasebook.words.lexicon import ADJECTIVES, ADVERBS, NOUNS, VERBS

NUM_TRAIN_PAIRS = 60_000
ROOT = Path(__file__).parents[2]
WORD = re.compile(r"\w+")


@pytest.fixture(scope="module")
def train() -> list[PhrasebookPair]:
    return list(generate_split("train", num_pairs=NUM_TRAIN_PAIRS, seed=1))


@pytest.fixture(scope="module")
def validation() -> list[PhrasebookPair]:
    return list(generate_split("validation", num_pairs=NUM_TRAIN_PAIRS, seed=1))


@pytest.fixture(scope="module")
def test_pairs() -> list[PhrasebookPair]:
    return list(generate_split("test", num_pairs=NUM_TRAIN_PAIRS, seed=1))


def test_splits_have_the_promised_sizes(
    train: list[PhrasebookPair],
    validation: list[PhrasebookPair],
    test_pairs: list[PhrasebookPair],
) -> None:
    assert len(train) == NUM_TRAIN_PAIRS
    assert len(validation) == 1_000
    assert len(test_pairs) >= 1_000


def test_equal_seeds_give_equal_pairs(train: list[PhrasebookPair]) -> None:
    again = list(generate_split("train", num_pairs=2_000, seed=1))
    assert again == train[:2_000]


def test_another_seed_gives_other_training_pairs_and_the_same_test(
    train: list[PhrasebookPair], test_pairs: list[PhrasebookPair]
) -> None:
    other = list(generate_split("train", num_pairs=100, seed=2))
    assert other != train[:100]
    assert list(generate_split("test", num_pairs=5, seed=2)) == test_pairs


def test_pairs_do_not_depend_on_the_hash_seed(train: list[PhrasebookPair]) -> None:
    program = (
        "from transformer_cli.phrasebook import generate_split\n"
        "for pair in generate_split('train', num_pairs=200, seed=1): print(ascii(pair))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert answer.stdout.splitlines() == [ascii(pair) for pair in train[:200]]


def test_no_english_sentence_occurs_twice(train: list[PhrasebookPair]) -> None:
    assert len({pair.source for pair in train}) == len(train)


def test_validation_and_test_share_no_sentence_with_training_or_one_another(
    train: list[PhrasebookPair],
    validation: list[PhrasebookPair],
    test_pairs: list[PhrasebookPair],
) -> None:
    splits = (train, validation, test_pairs)
    for side in ("source", "target"):
        texts = [{getattr(pair, side) for pair in split} for split in splits]
        assert not texts[0] & texts[1]
        assert not texts[0] & texts[2]
        assert not texts[1] & texts[2]


def test_training_has_no_combination_that_is_held_out(train: list[PhrasebookPair]) -> None:
    assert not any(is_held_out(pair.pattern, lemma) for pair in train for lemma in pair.lemmas)


def test_every_test_and_validation_sentence_has_a_combination_that_is_held_out(
    validation: list[PhrasebookPair], test_pairs: list[PhrasebookPair]
) -> None:
    for pair in (*validation, *test_pairs):
        assert any(is_held_out(pair.pattern, lemma) for lemma in pair.lemmas), pair


def test_a_tenth_of_the_combinations_is_held_out(
    train: list[PhrasebookPair], test_pairs: list[PhrasebookPair]
) -> None:
    lemmas = {lemma for pair in train for lemma in pair.lemmas}
    combinations = [(pattern.name, lemma) for pattern in PATTERNS for lemma in lemmas]
    assert sum(is_held_out(*x) for x in combinations) >= len(combinations) / 10


def test_every_pattern_occurs_in_training(train: list[PhrasebookPair]) -> None:
    assert {pair.pattern for pair in train} == {pattern.name for pattern in PATTERNS}


def test_nearly_every_test_word_occurs_in_training(
    train: list[PhrasebookPair], test_pairs: list[PhrasebookPair]
) -> None:
    for side in ("source", "target"):
        known = {word for pair in train for word in WORD.findall(getattr(pair, side))}
        words = [word for pair in test_pairs for word in WORD.findall(getattr(pair, side))]
        assert sum(word not in known for word in words) <= 0.001 * len(words)


def test_there_are_enough_patterns_and_lemmas() -> None:
    num_patterns, num_lemmas = count_patterns_and_lemmas()
    assert num_patterns >= 100
    assert num_lemmas >= 500
    assert len({pattern.name for pattern in PATTERNS}) == num_patterns


def test_each_language_has_five_hundred_lemmas_besides_names() -> None:
    english = {noun.english[0] for noun in NOUNS} | {adjective.english for adjective in ADJECTIVES}
    english |= {f"{verb.base} {verb.particle}".strip() for verb in VERBS}
    english |= {adverb.english for adverb in ADVERBS}
    italian = {noun.italian[0] for noun in NOUNS} | {adjective.italian for adjective in ADJECTIVES}
    italian |= {verb.italian for verb in VERBS} | {adverb.italian for adverb in ADVERBS}
    assert len(english) >= 500
    assert len(italian) >= 500


def test_sentences_begin_with_a_capital_and_end_with_a_mark(train: list[PhrasebookPair]) -> None:
    for pair in train:
        for text in (pair.source, pair.target):
            assert text[0].isupper(), pair
            assert text[-1] in ".?!", pair
            assert "  " not in text, pair
            assert " ." not in text, pair
            assert unicodedata.is_normalized("NFC", text)


def test_the_share_of_ambiguous_english_is_small(train: list[PhrasebookPair]) -> None:
    targets = {pair.source: pair.target for pair in train}
    others = list(generate_split("train", num_pairs=15_000, seed=2))
    again = [pair for pair in others if pair.source in targets]
    assert len(again) >= 500
    ambiguous = [pair for pair in again if targets[pair.source] != pair.target]
    assert len(ambiguous) <= 0.01 * len(again)


def test_the_fingerprint_is_a_sha256() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", fingerprint())
    assert fingerprint() == fingerprint()


def test_the_fingerprint_covers_the_files_in_subfolders() -> None:
    paths = {path for path, _ in generation._files_below(files(generation.PACKAGE))}
    assert {"lookup.py", "words/nouns.tsv", "patterns/situations/travel.py"} <= paths


def test_asking_for_no_pairs_gives_none() -> None:
    assert list(generate_split("train", num_pairs=0, seed=1)) == []


def test_asking_for_more_than_can_be_made_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(pattern for pattern in PATTERNS if pattern.name in {"hour", "hour.past"})
    generation._held_out_pairs()
    monkeypatch.setattr(generation, "PATTERNS", few)
    monkeypatch.setattr(generation, "MAX_REPEATED_DRAWS", 5_000)
    with pytest.raises(ValueError, match=r"asked for 1000 training pairs, but found only \d+"):
        list(generate_split("train", num_pairs=1_000, seed=1))
