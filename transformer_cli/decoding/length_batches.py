"""Batches of sequences of similar length, so that they hold little padding."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

# The model returns one logit per token of the vocabulary for each position. A batch has at most so many
# logits: 256 MB in float32.
MAX_LOGITS = 2**26

Item = TypeVar("Item")


def length_batches(
    items: Iterable[Item],
    length: Callable[[Item], int],
    *,
    max_tokens: int,
    max_items: int | None = None,
) -> Iterator[list[Item]]:
    """Sort items by length and cut them into batches, the longest items first.

    Args:
        items: anything that has a length.
        length: the number of tokens of an item.
        max_tokens: the largest number of tokens in a batch, padding included; a longer item is alone.
        max_items: the largest number of items in a batch; None: no limit.
    """
    batch: list[Item] = []
    longest = 0
    for item in sorted(items, key=length, reverse=True):
        if batch and ((len(batch) + 1) * longest > max_tokens or len(batch) == max_items):
            yield batch
            batch = []
        longest = longest if batch else length(item)
        batch.append(item)
    if batch:
        yield batch
