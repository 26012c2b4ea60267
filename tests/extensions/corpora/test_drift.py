"""Where the two sides of a corpus drift apart."""

import itertools
import random
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.extensions.corpora.drift import (
    COST_OF_CHANGE,
    DriftFinder,
    OffsetPath,
    Stretch,
    line_features,
)

from .phrases import clean_lines

NUM_LINES = 1200


def stretches(source: Sequence[str], target: Sequence[str]) -> list[Stretch]:
    finder = DriftFinder()
    for lines in itertools.zip_longest(source, target):
        finder.add(*lines)
    return finder.finish()


def test_a_clean_corpus_has_no_drift() -> None:
    source, target = clean_lines(NUM_LINES)
    assert stretches(source, target) == [Stretch(1, len(source), 0)]


@pytest.mark.long
@pytest.mark.parametrize("place", [150, 600, 1050])
@pytest.mark.parametrize(("num_lines", "offset"), [(-1, -1), (1, 1), (-4, -4), (3, 3)])
def test_lines_that_are_missing_or_too_many_are_found(place: int, num_lines: int, offset: int) -> None:
    source, target = clean_lines(NUM_LINES)
    if num_lines < 0:
        target = target[:place] + target[place - num_lines :]
    else:
        target = target[:place] + target[5 : 5 + num_lines] + target[place:]
    found = stretches(source, target)
    assert [stretch.offset for stretch in found] == [0, offset]
    assert abs(found[1].first_line - place) <= 10


def test_a_drift_that_ends_again_is_found_on_both_ends() -> None:
    source, target = clean_lines(NUM_LINES)
    damaged = target[:300] + target[301:800] + [target[7]] + target[800:]
    found = stretches(source, damaged)
    assert [stretch.offset for stretch in found] == [0, -1, 0]
    assert abs(found[1].first_line - 300) <= 10
    assert abs(found[2].first_line - 801) <= 10


@pytest.mark.long
def test_many_missing_targets_leave_sources_without_translations_and_then_an_offset() -> None:
    source, target = clean_lines(NUM_LINES)
    found = stretches(source, target[:400] + target[500:])
    assert [stretch.offset for stretch in found] == [0, None, -100]
    assert abs(found[1].first_line - 401) <= 10
    assert abs(found[2].first_line - 501) <= 10


def test_many_missing_sources_are_an_offset() -> None:
    source, target = clean_lines(NUM_LINES)
    found = stretches(source[:400] + source[700:], target)
    assert [stretch.offset for stretch in found] == [0, 300]
    assert abs(found[1].first_line - 401) <= 10


@pytest.mark.long
def test_lines_whose_translations_are_too_far_away_belong_to_no_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transformer_cli.extensions.corpora.drift.FAR_LINES", 50)
    monkeypatch.setattr("transformer_cli.extensions.corpora.drift.WINDOW_LINES", 150)
    source, target = clean_lines(NUM_LINES)
    found = stretches(source, target[:400] + target[700:])
    assert [stretch.offset for stretch in found] == [0, None]
    assert abs(found[1].first_line - 401) <= 10


@pytest.mark.long
def test_a_shuffled_side_has_no_relation_to_the_other() -> None:
    source, target = clean_lines(NUM_LINES)
    random.Random(1).shuffle(target)
    assert stretches(source, target) == [Stretch(1, len(source), None)]


def burmese(word: str) -> str:
    """Invented syllables of the Burmese script for a word: always the same, of a length that says nothing."""
    choose = random.Random(zlib.crc32(word.encode()))
    syllables = range(choose.randrange(1, 6))
    return "".join(chr(0x1000 + choose.randrange(33)) + choose.choice(("", "\u102d", "\u103b")) for _ in syllables)


@cache
def sides_without_spaces() -> tuple[list[str], list[str]]:
    """Sentences of one length without marks, and their words in a script without spaces between words."""
    sides: tuple[list[str], list[str]] = ([], [])
    for source, target in zip(*clean_lines(8000), strict=True):
        if len(source.split()) == 5 and "," not in source and 22 <= len(source) <= 24:
            sides[0].append(source.rstrip(".?!").lower())
            sides[1].append("".join(map(burmese, target.rstrip(".?!").lower().split())))
    return sides


@pytest.mark.long
@pytest.mark.parametrize("num_lines", [60, 150])
def test_a_script_without_spaces_belongs_to_its_translations(num_lines: int) -> None:
    source, target = (side[:num_lines] for side in sides_without_spaces())
    assert stretches(source, target) == [Stretch(1, num_lines, 0)]
    assert stretches(source[1:], target)[0].offset == 1


def test_a_shuffled_script_without_spaces_has_no_relation_if_there_are_enough_lines() -> None:
    source, target = (list(side) for side in sides_without_spaces())
    random.Random(1).shuffle(target)
    assert stretches(source, target) == [Stretch(1, len(source), None)]


@pytest.mark.parametrize("source", [["a dog"] * 300, [f"dog {letter}" for letter in "abcdefghij"]])
def test_lines_that_are_few_or_all_alike_are_unclear_and_stay_as_they_stand(
    source: list[str],
) -> None:
    finder = DriftFinder()
    for line in source:
        finder.add(line, "ခွေး")
    assert finder.finish() == [Stretch(1, len(source), 0)]
    assert finder.relation == "unclear"


def test_digits_and_marks_of_another_script_are_those_of_ours() -> None:
    assert line_features("၁၂၃၊ x")[1:] == line_features("123, x")[1:]


def test_a_few_wrong_pairs_are_no_drift() -> None:
    source, target = clean_lines(NUM_LINES)
    for place in (100, 101, 500, 900):
        target[place] = target[place + 50]
    assert [stretch.offset for stretch in stretches(source, target)] == [0]


@pytest.mark.long
def test_the_end_of_a_window_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = clean_lines(NUM_LINES)
    target = target[:600] + target[601:]
    expected = stretches(source, target)[1].first_line
    for size in (590, 600, 610):
        monkeypatch.setattr("transformer_cli.extensions.corpora.drift.WINDOW_LINES", size)
        found = stretches(source, target)
        assert [stretch.offset for stretch in found] == [0, -1]
        assert abs(found[1].first_line - expected) <= 3


def test_empty_lines_and_an_empty_corpus_are_no_drift() -> None:
    assert stretches([], []) == []
    assert stretches([""] * 50, [""] * 50) == [Stretch(1, 50, 0)]
    source, target = clean_lines(NUM_LINES)
    source[200:400] = [""] * 200
    assert [stretch.offset for stretch in stretches(source, target)] == [0]


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_the_path_is_the_best_of_all_paths(seed: int, num_parts: int) -> None:
    num_lines, num_states = 6, 3
    scores = np.random.default_rng(seed).normal(0, COST_OF_CHANGE, (num_lines, num_states))
    path = OffsetPath(num_states, first=1)
    parts = np.array_split(scores, num_parts)
    states = np.concatenate([*map(path.add, parts), path.finish()])

    def score(candidate: Sequence[int]) -> float:
        changes = sum(one != other for one, other in itertools.pairwise((1, *candidate)))
        return float(sum(scores[i, s] for i, s in enumerate(candidate))) - changes * COST_OF_CHANGE

    best = max(itertools.product(range(num_states), repeat=num_lines), key=score)
    # A part is settled when the next one is known, so it may differ from the best path of all parts.
    if num_parts <= 2:
        assert states.tolist() == list(best)
    assert len(states) == num_lines
