"""Batches of sequences of similar length, so that they hold little padding."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

# The largest number of logits of a batch, 256 MiB in float32. Each position has one logit per token of the
# vocabulary.
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
        max_tokens: the largest number of tokens, with padding; a longer item is a batch of its own.
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
