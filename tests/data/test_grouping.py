"""Updates of about a number of target tokens."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.data.order import (
    Budget,
    EpochOrder,
    Indices,
    UpdateSize,
    estimated_updates,
    update_batches,
)
from transformer_cli.data.updates import StoredUpdates, Updates

from .test_updates import content, some_pairs

NUMBERS = np.random.default_rng(1)
SOURCE_LENGTHS = NUMBERS.integers(1, 40, 3000)
TARGET_LENGTHS = SOURCE_LENGTHS + NUMBERS.integers(0, 8, 3000)


def order(budget: int = 256, *, num_pairs: int = 3000, pool_size: int = 10_000) -> EpochOrder:
    def lengths(indices: Indices) -> tuple[Indices, Indices]:
        return SOURCE_LENGTHS[indices], TARGET_LENGTHS[indices]

    return EpochOrder(lengths, [num_pairs], [1.0], Budget(tokens=budget), 1, pool_size)


def tokens_of(update: list[Indices]) -> int:
    return sum(int(TARGET_LENGTHS[batch].sum()) for batch in update)


def expected_groups(sizes: list[int], wanted: int) -> list[list[int]]:
    """The rule in its plainest form: compare the distance with the next batch and without it."""
    groups: list[list[int]] = []
    for size in sizes:
        with_it = abs(sum(groups[-1]) + size - wanted) if groups else 0
        without_it = abs(sum(groups[-1]) - wanted) if groups else 0
        if groups and with_it < without_it:
            groups[-1].append(size)
        else:
            groups.append([size])
    return groups


@pytest.mark.long
@settings(max_examples=100)
@given(st.integers(40, 900), st.integers(1, 6000))
def test_a_batch_is_added_if_that_brings_the_update_closer(budget: int, wanted: int) -> None:
    one = order(budget, num_pairs=400)
    batches = list(one.batches(0))
    expected = expected_groups([tokens_of([batch]) for batch in batches], wanted)
    found = list(update_batches(one.batches(0), one, UpdateSize(target_tokens=wanted), 0))
    assert [[tokens_of([batch]) for batch in update] for update in found] == expected
    assert [pair for update in found for batch in update for pair in batch] == [
        pair for batch in batches for pair in batch
    ]


def test_an_update_is_about_the_same_with_any_size_of_batches() -> None:
    means = []
    for budget in (64, 128, 256, 512, 1024):
        one = order(budget)
        updates = list(update_batches(one.batches(0), one, UpdateSize(target_tokens=4000), 0))[:-1]
        means.append(np.mean([tokens_of(update) for update in updates]))
        assert all(abs(tokens_of(update) - 4000) <= budget / 2 for update in updates)
    assert means == pytest.approx([4000] * 5, rel=0.03)


@pytest.mark.long
def test_an_update_that_begins_at_a_batch_is_the_same_one() -> None:
    size, one = UpdateSize(target_tokens=1500), order()
    all_updates = list(update_batches(one.batches(2), one, size, 2))
    first = 0
    for number, update in enumerate(all_updates):
        rest = list(update_batches(one.batches(2, first=first), one, size, 2))
        for found, expected in zip(rest, all_updates[number:], strict=True):
            assert list(map(list, found)) == list(map(list, expected))
        first += len(update)


def test_the_number_of_updates_is_estimated_from_the_first_pool() -> None:
    for size in (UpdateSize(3), UpdateSize(target_tokens=2000)):
        one, pools = order(), order(pool_size=1000)
        assert estimated_updates(one, size) == sum(1 for _ in update_batches(one.batches(0), one, size, 0))
        counted = sum(1 for _ in update_batches(pools.batches(0), pools, size, 0))
        assert estimated_updates(pools, size) == pytest.approx(counted, rel=0.1)


def test_a_stream_of_such_updates_resumes_anywhere() -> None:
    pairs = some_pairs(60)
    of_pairs = EpochOrder(pairs.lengths, pairs.corpus_sizes, [1.0], Budget(tokens=40), seed=3)
    size = UpdateSize(target_tokens=70)
    with Updates(StoredUpdates(pairs, of_pairs, size)) as stream:
        positions, expected = [stream.position], []
        for _ in range(20):
            expected.append(content(next(stream)))
            positions.append(stream.position)
    assert len({len(update) for update in expected}) > 1, "the case is about varying numbers"
    assert positions[-1].epoch >= 2
    for step, position in enumerate(positions[:-3]):
        with Updates(StoredUpdates(pairs, of_pairs, size), position) as resumed:
            assert [content(one) for one in islice(resumed, 3)] == expected[step : step + 3]
