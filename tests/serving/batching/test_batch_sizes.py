"""How the items that wait are cut into batches."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.serving.batching.batch_sizes import BatchSizes, cheapest_cuts
from transformer_cli.serving.batching.kinds import Kind, Unit

OVERHEAD = 150


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


@given(st.lists(st.integers(1, 200), min_size=1, max_size=9))
def test_the_batches_of_all_items_have_the_least_cost_together(lengths: list[int]) -> None:
    batches = [[one for one in lengths if one in cut] for cut in cheapest_cuts(lengths)]
    assert sorted(one for batch in batches for one in batch) == sorted(lengths)
    cost = sum(max(batch) * (len(batch) + OVERHEAD) for batch in batches)
    assert cost == cost_by_brute_force(lengths)


def test_a_few_long_items_do_not_hold_up_many_short_ones() -> None:
    assert cheapest_cuts([5] * 100 + [60] * 3) == [range(60, 61), range(5, 6)]


def test_a_few_items_of_different_length_are_one_batch() -> None:
    assert cheapest_cuts([9, 12, 10, 14]) == [range(9, 15)]


@pytest.mark.parametrize("tokens_per_second", [10.0, 1000.0, 1e6])
def test_a_round_takes_about_the_wanted_time_and_its_batches_keep_the_limit(
    tokens_per_second: float,
) -> None:
    kind = Kind("kind", "test", list, len, 4096)
    sizes = BatchSizes()
    sizes.note(kind, round(tokens_per_second), 1.0)
    units = [Unit(kind, number, "x" * (5 + number % 20)) for number in range(1000)]
    batches = sizes.next_round(units)
    assert units[0] in batches[0]
    taken = sorted((unit.key for batch in batches for unit in batch), key=lambda key: int(str(key)))
    assert taken == list(range(len(taken)))  # the oldest ones
    assert all(
        len(batch) * max(unit.num_tokens for unit in batch) <= kind.max_tokens for batch in batches
    )
    wanted = max(512, 3.0 * tokens_per_second)
    num_tokens = sum(unit.num_tokens for batch in batches for unit in batch)
    assert num_tokens <= wanted
    assert num_tokens > wanted - 25 or len(taken) == 1000
    assert sizes.is_full(units) == (wanted <= sum(unit.num_tokens for unit in units))
