"""Batches of sequences of similar length, so that they hold little padding."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

# The largest number of logits of a batch. Each position has one logit per token of the vocabulary. A GPU gets few, large
# kernels, with 256 MiB of logits in float32. On a CPU, 16 MiB are enough for its speed, and memory stays small.
MAX_LOGITS = 2**26
MAX_LOGITS_ON_CPU = 2**22

Item = TypeVar("Item")
Watch = Callable[[int, int], object]
"""Gets the number of items that are done, and of all items."""
_watch: ContextVar[Watch | None] = ContextVar("_watch", default=None)


@contextmanager
def batches_watched(watch: Watch) -> Iterator[None]:
    """A block in which a function hears of each batch of this thread that is done; for progress bars."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def max_logits(device_type: str) -> int:
    """The largest number of logits of a batch on a device of this type, such as cpu or cuda."""
    return MAX_LOGITS_ON_CPU if device_type == "cpu" else MAX_LOGITS


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
    longest, num_done = 0, 0
    in_order = sorted(items, key=length, reverse=True)
    tell = _watch.get() or (lambda num_done, num_all: None)
    for item in in_order:
        if batch and ((len(batch) + 1) * longest > max_tokens or len(batch) == max_items):
            yield batch
            num_done += len(batch)
            tell(num_done, len(in_order))
            batch = []
        longest = longest if batch else length(item)
        batch.append(item)
    if batch:
        yield batch
        tell(len(in_order), len(in_order))
