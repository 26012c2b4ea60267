from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.engine import batches_watched, length_batches


@given(lengths=st.lists(st.integers(0, 50)), max_tokens=st.integers(1, 200))
def test_every_item_is_in_one_batch_and_no_batch_is_over_budget(lengths: list[int], max_tokens: int) -> None:
    items = list(enumerate(lengths))
    batches = list(length_batches(items, lambda item: item[1], max_tokens=max_tokens))
    assert sorted(item for batch in batches for item in batch) == items
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(length for _, length in batch) <= max_tokens


def test_batches_are_as_large_as_the_budget_allows() -> None:
    batches = list(length_batches([3, 1, 4, 1, 5, 9, 2, 6], int, max_tokens=12))
    assert batches == [[9], [6, 5], [4, 3, 2], [1, 1]]


def test_equal_lengths_keep_their_order() -> None:
    assert list(length_batches(["b", "a", "c"], len, max_tokens=10)) == [["b", "a", "c"]]


def test_batches_have_no_more_items_than_they_may() -> None:
    assert list(length_batches([1] * 5, int, max_tokens=100, max_items=2)) == [[1, 1], [1, 1], [1]]


def test_a_watch_hears_of_each_batch_that_is_done() -> None:
    heard: list[tuple[int, int]] = []
    with batches_watched(lambda num_done, num_all: heard.append((num_done, num_all))):
        for _ in length_batches([3, 3, 2, 1], int, max_tokens=6):
            heard.append((0, 0))
    list(length_batches([1], int, max_tokens=6))
    assert heard == [(0, 0), (2, 4), (0, 0), (4, 4)]
