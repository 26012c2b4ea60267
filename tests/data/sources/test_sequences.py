from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from transformer_cli.config import SequencesData
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.sources.corpus import generate_sequences, source_digests

TASKS = ("copy", "drop-first", "reverse", "sort", "memorise")


def _data(task: str = "copy", **settings: Any) -> SequencesData:
    return SequencesData.model_validate({"source": "sequences", "task": task, "num_pairs": 300, **settings})


def _pairs(data: SequencesData, split: Any = "train", seed: int = 1) -> list[SentencePair]:
    return list(generate_sequences(data, split, seed=seed))


def _symbols(text: str) -> list[int]:
    return [int(symbol) for symbol in text.split(" ")]


@pytest.mark.parametrize("task", TASKS)
def test_the_target_is_what_the_task_says(task: str) -> None:
    for pair in _pairs(_data(task, num_symbols=12)):
        source, target = _symbols(pair.source), _symbols(pair.target)
        expected = {
            "copy": source,
            "drop-first": source[1:],
            "reverse": list(reversed(source)),
            "sort": sorted(source),
            "memorise": source,
        }
        assert target == expected[task]


@pytest.mark.parametrize("task", TASKS)
def test_every_length_and_symbol_occurs_and_none_beyond(task: str) -> None:
    pairs = _pairs(_data(task, min_length=3, max_length=7, num_symbols=11))
    sources = [_symbols(pair.source) for pair in pairs]
    assert {len(source) for source in sources} == {3, 4, 5, 6, 7}
    assert {symbol for source in sources for symbol in source} == set(range(1, 12))


def test_lengths_are_drawn_evenly() -> None:
    pairs = _pairs(_data(num_pairs=5000, min_length=5, max_length=9))
    counts = Counter(len(_symbols(pair.source)) for pair in pairs)
    # Four standard deviations of a binomial count with mean 1000.
    assert all(abs(count - 1000) < 115 for count in counts.values())


def test_drop_first_drops_a_start_symbol() -> None:
    sources = [_symbols(pair.source) for pair in _pairs(_data("drop-first", num_symbols=10))]
    assert all(source[0] == 1 and 1 not in source[1:] for source in sources)


def test_drop_first_of_one_symbol_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs min_length of 2 or more"):
        _data("drop-first", min_length=1)


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_gives_the_same_pairs_and_another_seed_others(task: str) -> None:
    data = _data(task)
    assert _pairs(data) == _pairs(data)
    assert _pairs(data) != _pairs(data, seed=2)
    assert _pairs(data, "validation") == _pairs(data, "validation")


@pytest.mark.long
@pytest.mark.parametrize("task", ["copy", "drop-first", "reverse", "sort"])
def test_no_held_out_source_stands_in_train_whatever_the_seeds(task: str) -> None:
    data = _data(task, num_pairs=20_000, num_symbols=9, min_length=2, max_length=6)
    train = {pair.source for pair in _pairs(data)}
    validation = {pair.source for pair in _pairs(data, "validation", seed=7)}
    test = {pair.source for pair in _pairs(data, "test", seed=8)}
    assert len(train) > 5000  # with so many sequences, chance alone would produce overlaps
    assert not train & validation
    assert not train & test
    assert not validation & test


@pytest.mark.long
def test_held_out_splits_have_a_thousand_pairs_each() -> None:
    data = _data(num_pairs=10)
    assert [len(_pairs(data, split)) for split in ("train", "validation", "test")] == [
        10,
        1000,
        1000,
    ]


def test_to_memorise_every_split_is_the_training_split() -> None:
    data = _data("memorise", num_pairs=64)
    assert _pairs(data) == _pairs(data, "validation") == _pairs(data, "test")
    assert len(_pairs(data)) == 64


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(st.sampled_from(TASKS), st.integers(2, 4), st.integers(2, 3), st.integers(0, 100))
def test_few_possible_sequences_are_no_endless_loop(task: str, num_symbols: int, length: int, seed: int) -> None:
    data = _data(task, num_symbols=num_symbols, min_length=length, max_length=length)
    assert len(_pairs(data, "validation", seed)) == (300 if task == "memorise" else 1000)


def test_the_fingerprint_changes_with_whatever_changes_the_pairs() -> None:
    variants = [
        *(_data(task) for task in TASKS),
        _data(num_pairs=301),
        _data(num_symbols=11),
        _data(min_length=6),
        _data(max_length=21),
    ]
    fingerprints = [*(source_digests(data, seed=1) for data in variants), source_digests(variants[0], seed=2)]
    assert len({digest for each in fingerprints for digest in each.values()}) == len(fingerprints)
    assert source_digests(variants[0], seed=1) == fingerprints[0]
