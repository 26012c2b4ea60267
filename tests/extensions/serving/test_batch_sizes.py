"""How the items that wait are cut into batches."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.extensions.serving.batcher import BatchSizes, Unit, WorkKind, cheapest_batches

OVERHEAD = 150


def kind_of(max_tokens: int = 10**6, max_items: int = 10**6) -> WorkKind:
    return WorkKind("kind", "test", list, len, max_tokens, max_items=max_items)


def lengths_of_batches(lengths: list[int], kind: WorkKind) -> list[list[int]]:
    units = [Unit(kind, number, "x" * length) for number, length in enumerate(lengths)]
    batches = cheapest_batches(units, kind)
    assert Counter(id(unit) for batch in batches for unit in batch) == Counter(map(id, units))
    return [[unit.num_tokens for unit in batch] for batch in batches]


def cost_by_brute_force(lengths: list[int], kind: WorkKind) -> int:
    """The least cost of all ways to cut the sorted lengths into batches that keep the limits."""
    ordered = sorted(lengths)
    inner = range(1, len(ordered))
    ways = [
        [ordered[start:end] for start, end in zip((0, *cuts), (*cuts, len(ordered)), strict=True)]
        for size in range(len(ordered))
        for cuts in combinations(inner, size)
    ]
    return min(cost_of(way) for way in ways if all(fits(batch, kind) for batch in way))


def fits(batch: list[int], kind: WorkKind) -> bool:
    tokens = max(batch) * len(batch)
    return len(batch) == 1 or (tokens <= kind.max_tokens and len(batch) <= kind.max_items)


def cost_of(batches: list[list[int]]) -> int:
    return sum(max(batch) * (len(batch) + OVERHEAD) for batch in batches)


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=9, unique=True),
    st.integers(1, 1000),
    st.integers(1, 9),
)
def test_the_batches_keep_the_limits_and_have_the_least_cost_together(
    lengths: list[int], max_tokens: int, max_items: int
) -> None:
    kind = kind_of(max_tokens, max_items)
    batches = lengths_of_batches(lengths, kind)
    assert all(fits(batch, kind) for batch in batches)
    assert cost_of(batches) == cost_by_brute_force(lengths, kind)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=80), st.integers(1, 400), st.integers(1, 40))
def test_items_of_equal_length_are_cut_where_a_limit_demands_it(
    lengths: list[int], max_tokens: int, max_items: int
) -> None:
    kind = kind_of(max_tokens, max_items)
    assert all(fits(batch, kind) for batch in lengths_of_batches(lengths, kind))


def test_a_few_long_items_do_not_hold_up_many_short_ones() -> None:
    assert lengths_of_batches([5] * 100 + [60] * 3, kind_of()) == [[60] * 3, [5] * 100]


def test_a_few_items_of_different_length_are_one_batch() -> None:
    assert lengths_of_batches([9, 12, 10, 14], kind_of()) == [[9, 10, 12, 14]]


def test_a_limit_leaves_no_tiny_batch_behind() -> None:
    batches = lengths_of_batches([34] * 60 + [30] * 64, kind_of(max_tokens=4096))
    assert sorted(map(len, batches)) == [60, 64]


@pytest.mark.parametrize("tokens_per_second", [10.0, 1000.0, 1e6])
def test_a_round_takes_about_the_wanted_time_and_its_batches_keep_the_limit(
    tokens_per_second: float,
) -> None:
    kind = WorkKind("kind", "test", list, len, 4096)
    sizes = BatchSizes()
    sizes.note(kind, round(tokens_per_second), 1.0)
    units = [Unit(kind, number, "x" * (5 + number % 20)) for number in range(1000)]
    batches = sizes.next_round(units)
    assert units[0] in batches[0]
    taken = sorted((unit.key for batch in batches for unit in batch), key=lambda key: int(str(key)))
    assert taken == list(range(len(taken)))  # the oldest ones
    assert all(len(batch) * max(unit.num_tokens for unit in batch) <= kind.max_tokens for batch in batches)
    wanted = max(512, 4.0 * tokens_per_second)
    num_tokens = sum(unit.num_tokens for batch in batches for unit in batch)
    assert num_tokens <= wanted
    assert num_tokens > wanted - 25 or len(taken) == 1000
    assert sizes.is_full(units) == (wanted <= sum(unit.num_tokens for unit in units))
