"""Sequences of similar length together, so that batches hold little padding."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

# What a model says about one position is a number per word of the vocabulary: for all positions
# that it is asked about at once, at most 256 MB in float32.
MAX_LOGITS = 2**26

Item = TypeVar("Item")


def length_batches(
    items: Iterable[Item],
    length: Callable[[Item], int],
    *,
    max_tokens: int,
    max_items: int | None = None,
) -> Iterator[list[Item]]:
    """The longest first; a batch has at most `max_tokens` with its padding, or a single item."""
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
