"""How the items that wait are cut into batches."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.serving.batching.batch_sizes import BatchSizes, cheapest_lengths
from transformer_cli.serving.batching.kinds import Kind, Unit

OVERHEAD = 12


def cost_by_brute_force(lengths: list[int]) -> int:
    """The least cost of all ways to cut the sorted lengths into batches."""
    ordered = sorted(lengths)
    inner = range(1, len(ordered))
    ways = [cuts for size in range(len(ordered)) for cuts in combinations(inner, size)]
    return min(
        sum(
            ordered[end - 1] * (end - start + OVERHEAD)
            for start, end in zip((0, *cuts), (*cuts, len(ordered)), strict=True)
        )
        for cuts in ways
    )


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9))
def test_the_batches_of_all_items_have_the_least_cost_together(lengths: list[int]) -> None:
    left, cost = list(lengths), 0
    while left:
        taken = cheapest_lengths(left)
        assert left[0] in taken
        batch = [length for length in left if length in taken]
        cost += max(batch) * (len(batch) + OVERHEAD)
        left = [length for length in left if length not in taken]
    assert cost == cost_by_brute_force(lengths)


def test_a_few_long_items_do_not_hold_up_many_short_ones() -> None:
    lengths = [5] * 100 + [60] * 3
    assert cheapest_lengths(lengths) == range(5, 6)
    assert cheapest_lengths(lengths[::-1]) == range(60, 61)


def test_a_few_items_of_different_length_are_one_batch() -> None:
    assert cheapest_lengths([9, 12, 10, 14]) == range(9, 15)


@pytest.mark.parametrize("tokens_per_second", [10.0, 1000.0, 1e6])
def test_a_batch_takes_about_the_wanted_time_and_keeps_the_limit(tokens_per_second: float) -> None:
    kind = Kind("kind", "test", list, len, 4096)
    sizes = BatchSizes()
    sizes.note(kind, round(tokens_per_second), 1.0)
    units = [Unit(kind, number, "x" * 10) for number in range(1000)]
    batch = sizes.next_batch(units)
    assert units[0] in batch
    expected = min(4096, max(256, 1.5 * tokens_per_second))
    assert len(batch) == expected // 10
    assert sizes.is_full(units)
