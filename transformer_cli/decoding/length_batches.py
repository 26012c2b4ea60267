"""Sequences of similar length together, so that batches hold little padding."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def length_batches(
    items: Iterable[Item], length: Callable[[Item], int], max_tokens: int
) -> Iterator[list[Item]]:
    """The longest first; a batch has at most `max_tokens` with its padding, or a single item."""
    batch: list[Item] = []
    longest = 0
    for item in sorted(items, key=length, reverse=True):
        if batch and (len(batch) + 1) * longest > max_tokens:
            yield batch
            batch = []
        longest = longest if batch else length(item)
        batch.append(item)
    if batch:
        yield batch
