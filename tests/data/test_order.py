from collections import Counter
from dataclasses import replace
from itertools import islice, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import Config, FilesData, PhrasebookData, TrainingConfig
from transformer_cli.data.order import (
    Budget,
    EpochOrder,
    Indices,
    UpdateSize,
    epoch_order,
    estimated_updates,
    padding_share,
    permute,
)

NUMBERS = np.random.default_rng(1)
SOURCE_LENGTHS = NUMBERS.integers(1, 40, 1000)
TARGET_LENGTHS = SOURCE_LENGTHS + NUMBERS.integers(0, 8, 1000)


def lengths(indices: Indices) -> tuple[Indices, Indices]:
    return SOURCE_LENGTHS[indices], TARGET_LENGTHS[indices]


def order(
    *,
    num_pairs: int = 1000,
    sizes: list[int] | None = None,
    weights: list[float] | None = None,
    budget: Budget = Budget(tokens=256),  # noqa: B008
    seed: int = 1,
    pool_size: int = 10_000,
) -> EpochOrder:
    sizes = sizes or [num_pairs]
    return EpochOrder(lengths, sizes, weights or [1.0] * len(sizes), budget, seed, pool_size)


def visits(plan: EpochOrder, epoch: int) -> Counter[int]:
    return Counter(int(index) for batch in plan.batches(epoch) for index in batch)


def as_lists(batches: object) -> list[list[int]]:
    return [batch.tolist() for batch in batches]  # type: ignore[attr-defined]


# --- the shuffle ---


@given(st.integers(1, 3000), st.integers(0, 2**31 - 1), st.integers(0, 1000))
def test_a_shuffle_is_a_permutation(size: int, seed: int, epoch: int) -> None:
    shuffled = permute(np.arange(size), size, (seed, epoch))
    assert sorted(shuffled.tolist()) == list(range(size))


def test_a_part_of_a_shuffle_is_that_part_of_the_whole() -> None:
    whole = permute(np.arange(1000), 1000, (1, 2))
    assert permute(np.arange(300, 400), 1000, (1, 2)).tolist() == whole[300:400].tolist()


def test_a_shuffle_of_nothing_is_empty() -> None:
    assert permute(np.arange(0), 0, (1,)).tolist() == []


@pytest.mark.long
def test_all_orders_of_four_come_equally_often() -> None:
    counts = Counter(tuple(permute(np.arange(4), 4, (seed,)).tolist()) for seed in range(2400))
    assert set(counts) == set(permutations(range(4)))
    chi_square = sum((count - 100) ** 2 / 100 for count in counts.values())
    assert chi_square < 60  # 23 degrees of freedom: 60 is exceeded once in 30,000 times


@pytest.mark.long
def test_every_pair_comes_everywhere_equally_often() -> None:
    table = np.zeros((10, 10))
    for seed in range(1000):
        table[np.arange(10), permute(np.arange(10), 10, (seed, 7))] += 1
    assert ((table - 100) ** 2 / 100).sum() < 160  # 81 degrees of freedom


def test_the_order_is_the_same_for_ever() -> None:
    """A run resumes under a newer NumPy: these are the numbers of 1.26 and of 2.4."""
    assert permute(np.arange(12), 12, (1, 0, 0)).tolist() == [1, 9, 5, 8, 2, 7, 4, 0, 3, 10, 11, 6]
    far = np.arange(10**12, 10**12 + 3)
    shuffled = permute(far, 10**13, (2**31 - 1, 5, 1, 7)).tolist()
    assert shuffled == [6235341436334, 9734005310238, 4756790756866]
    plan = EpochOrder(lambda i: (i % 7 + 1, i % 5 + 1), [12], [1.5], Budget(tokens=20), 1)
    batches = [[3, 8, 3, 10, 8], [11, 5], [0, 0, 1, 7, 2], [11, 9, 4, 9], [6, 6]]
    assert as_lists(plan.batches(3)) == batches


# --- batches ---


@pytest.mark.parametrize("budget", [Budget(tokens=256), Budget(sentences=7)])
@pytest.mark.parametrize("pool_size", [64, 10_000])
def test_every_pair_is_seen_once_per_epoch(budget: Budget, pool_size: int) -> None:
    plan = order(budget=budget, pool_size=pool_size)
    for epoch in range(3):
        assert visits(plan, epoch) == Counter(range(1000))


@pytest.mark.parametrize("pool_size", [64, 10_000])
def test_no_batch_exceeds_its_tokens_padding_included(pool_size: int) -> None:
    for batch in order(budget=Budget(tokens=256), pool_size=pool_size).batches(0):
        assert max(SOURCE_LENGTHS[batch].max(), TARGET_LENGTHS[batch].max()) * len(batch) <= 256


def test_a_batch_is_as_large_as_its_budget_lets_it_be() -> None:
    """Except for the batch of the longest pairs, where the pairs run out."""
    sizes = [(int(TARGET_LENGTHS[batch].max()), len(batch)) for batch in order().batches(0)]
    longest = max(length for length, _ in sizes)
    # The first pair that did not fit has the same length or is longer.
    assert all((size + 1) * (length + 2) > 256 for length, size in sizes if length < longest - 2)


def test_no_batch_exceeds_its_sentences() -> None:
    sizes = Counter(len(batch) for batch in order(budget=Budget(sentences=7)).batches(0))
    assert sizes == {7: 142, 6: 1}


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    plan = order(budget=Budget(tokens=10))
    assert visits(plan, 0) == Counter(range(1000))
    for batch in plan.batches(0):
        assert len(batch) == 1 or TARGET_LENGTHS[batch].max() * len(batch) <= 10


def test_pools_are_of_like_size() -> None:
    """A last pool of few pairs would make tiny batches."""
    sizes = [sum(map(len, order(pool_size=333).pool_batches(0, pool))) for pool in range(4)]
    assert sizes == [250, 250, 250, 250]


@pytest.mark.parametrize(("pool_size", "error"), [(10_000, 0.0), (100, 0.1)])
def test_the_batches_of_an_epoch_are_estimated_from_its_first_pool(pool_size: int, error: float) -> None:
    plan = order(pool_size=pool_size)
    exact = len(list(plan.batches(0)))
    assert abs(estimated_updates(plan, UpdateSize()) - exact) <= error * exact


def test_padding_is_little() -> None:
    plan = order()
    assert padding_share(plan) < 0.1
    # Negative control: batches of the same sizes, without regard to length.
    at_random = EpochOrder(lambda i: (np.ones_like(i), np.ones_like(i)), [1000], [1.0], Budget(sentences=11), 1)
    assert padding_share(EpochOrderWithOtherLengths(at_random)) > 0.3  # type: ignore[arg-type]


class EpochOrderWithOtherLengths:
    """Plans batches with one table of lengths and measures them with another."""

    def __init__(self, plan: EpochOrder) -> None:
        self.batches = plan.batches
        self.lengths_of = lambda batch, epoch: lengths(batch)


def test_padding_is_counted_on_both_sides() -> None:
    source, target = np.array([1, 3]), np.array([2, 4])
    plan = EpochOrder(lambda i: (source[i], target[i]), [2], [1.0], Budget(sentences=2), 1)
    assert padding_share(plan) == pytest.approx(1 - (4 + 6) / (6 + 8))


# --- seed and epoch ---


def test_an_epoch_is_a_function_of_seed_and_number() -> None:
    batches = as_lists(order().batches(3))
    assert as_lists(order().batches(3)) == batches
    assert as_lists(order().batches(4)) != batches
    assert as_lists(order(seed=2).batches(3)) != batches


def test_batches_are_not_in_order_of_length() -> None:
    longest = [int(TARGET_LENGTHS[batch].max()) for batch in order().batches(0)]
    assert longest != sorted(longest)
    assert longest != sorted(longest, reverse=True)


def test_pairs_meet_other_pairs_in_the_next_epoch() -> None:
    first, second = ({frozenset(batch.tolist()) for batch in order().batches(epoch)} for epoch in (0, 1))
    assert len(first & second) < len(first) / 20


@pytest.mark.parametrize("pool_size", [64, 10_000])
def test_starting_inside_an_epoch_gives_its_rest(pool_size: int) -> None:
    plan = order(pool_size=pool_size)
    whole = as_lists(plan.batches(2))
    for first in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
        assert as_lists(plan.batches(2, first=first)) == whole[first:]


# --- several corpora ---


def test_a_weight_of_two_shows_each_pair_twice() -> None:
    seen = visits(order(sizes=[10, 20], weights=[2.0, 1.0]), 0)
    assert seen == Counter({**dict.fromkeys(range(10), 2), **dict.fromkeys(range(10, 30), 1)})


def test_a_weight_of_one_half_shows_another_half_each_epoch() -> None:
    plan = order(sizes=[100, 20], weights=[0.5, 1.0])
    first, second = visits(plan, 0), visits(plan, 1)
    for seen in (first, second):
        assert sum(seen[pair] for pair in range(100)) == 50
        assert max(seen.values()) == 1
        assert all(seen[pair] == 1 for pair in range(100, 120))
    assert set(first) != set(second)


@pytest.mark.long
def test_over_many_epochs_each_pair_is_seen_as_often_as_its_weight_says() -> None:
    plan = order(sizes=[50, 10], weights=[0.3, 1.5])
    total = sum((visits(plan, epoch) for epoch in range(200)), Counter())
    assert all(30 < total[pair] < 90 for pair in range(50))  # 60 expected
    assert all(250 < total[pair] < 350 for pair in range(50, 60))  # 300 expected


@pytest.mark.long
@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from([0.01, 0.1, 0.5, 1.0, 1.5, 3.0])),
        min_size=1,
        max_size=5,
    )
)
def test_no_pair_is_seen_more_often_than_its_weight_rounded_up(
    corpora: list[tuple[int, float]],
) -> None:
    sizes, weights = [size for size, _ in corpora], [weight for _, weight in corpora]
    plan = order(sizes=sizes, weights=weights) if sum(sizes) else order(sizes=[1])
    seen = visits(plan, 0)
    assert seen.total() == plan.num_pairs()
    pair = 0
    for size, weight in corpora:
        for _ in range(size):
            assert int(weight) <= seen[pair] <= int(weight) + (weight % 1 > 0)
            pair += 1


def test_a_small_weight_never_empties_a_corpus() -> None:
    assert order(sizes=[3], weights=[0.01]).num_pairs() == 1


# --- from a config ---


def test_the_config_gives_budget_weights_and_seed() -> None:
    data = FilesData.model_validate({"source": "files", "corpora": [{"path": "a.tsv", "weight": 2}, {"path": "b.tsv"}]})
    training = TrainingConfig(max_steps=1, batch_tokens=99)
    config = Config(name="a", seed=5, data=data, training=training)
    plan = epoch_order(lengths, [3, 4], config)
    assert (plan.weights, plan.budget, plan.seed) == ([2.0, 1.0], Budget(tokens=99), 5)
    training = TrainingConfig(max_steps=1, batch_sentences=8)
    plan = epoch_order(lengths, [3], Config(name="a", data=PhrasebookData(), training=training))
    assert (plan.weights, plan.budget) == ([1.0], Budget(sentences=8))


def test_planning_is_lazy_and_needs_no_table_of_the_corpus() -> None:
    num_pairs = 10**10

    def equal_lengths(indices: Indices) -> tuple[Indices, Indices]:
        assert len(indices) <= 1000
        return np.full_like(indices, 10), np.full_like(indices, 10)

    plan = EpochOrder(equal_lengths, [num_pairs], [1.0], Budget(tokens=100), 1, pool_size=1000)
    batches = list(islice(plan.batches(0), 300))
    pairs = np.concatenate(batches)
    assert len(np.unique(pairs)) == 3000
    assert pairs.max() > num_pairs * 0.9


@pytest.mark.parametrize("pool_size", [300, 10_000])
def test_the_growth_by_sampled_subwords_is_that_of_the_first_twenty_batches(pool_size: int) -> None:
    def sampled(epoch: int, visits: Indices) -> tuple[Indices, Indices]:
        source, target = lengths(visits % 1000)
        return source, target + (visits + epoch) % 5

    plan = replace(order(pool_size=pool_size, budget=Budget(tokens=64)), sampled_lengths=sampled)
    first = np.concatenate(list(islice(plan.batches(0), 20)))
    longer, ordinary = TARGET_LENGTHS[first] + first % 5, TARGET_LENGTHS[first]
    assert plan.growth() == longer.sum() / ordinary.sum()
    assert plan.growth() > 1.0
