"""The batches of one optimizer update: a fixed number of batches, or about a number of target tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transformer_cli.config import TrainingConfig
from transformer_cli.data.batches.order import EpochOrder, Indices


@dataclass(frozen=True, slots=True)
class UpdateSize:
    """How many batches an update has; the last update of an epoch has those that are left."""

    num_batches: int = 1
    """`training.accumulate`; used only if `target_tokens` is None."""
    target_tokens: int | None = None
    """`training.update_tokens`: a batch is added as long as that brings the update closer to this number."""

    @classmethod
    def of(cls, training: TrainingConfig) -> "UpdateSize":
        """The size that a config asks for."""
        return cls(training.accumulate, training.update_tokens)


def update_batches(
    order: EpochOrder, size: UpdateSize, epoch: int, *, first: int = 0
) -> Iterator[list[Indices]]:
    """Yield all micro-batches of each update of an epoch, before several processes share them out.

    They are a pure function of the order: an update that begins at batch `first` is the same one, whether the
    iterator began there or earlier.

    Args:
        order: the batches of every epoch.
        size: how many of them an update has.
        epoch: the number of the epoch, from 0.
        first: the first batch of the first update.
    """
    return _groups(order.batches(epoch, first=first), order, size, epoch)


def estimated_updates(order: EpochOrder, size: UpdateSize, epoch: int = 0) -> int:
    """Number of updates of an epoch: exact if it has one pool, else estimated from its first pool."""
    first_pool = order.pool_batches(epoch, 0)
    num_pools = order.num_pools(epoch)
    if size.target_tokens is None:
        return -(-len(first_pool) * num_pools // size.num_batches)
    return num_pools * sum(1 for _ in _groups(first_pool, order, size, epoch))


def _groups(
    batches: Iterable[Indices], order: EpochOrder, size: UpdateSize, epoch: int
) -> Iterator[list[Indices]]:
    group: list[Indices] = []
    num_tokens = 0
    for batch in batches:
        added = int(order.lengths_of(batch, epoch)[1].sum()) if size.target_tokens else 0
        if group and _is_complete(size, len(group), num_tokens, added):
            yield group
            group, num_tokens = [], 0
        group.append(batch)
        num_tokens += added
    if group:
        yield group


def _is_complete(size: UpdateSize, num_batches: int, num_tokens: int, added: int) -> bool:
    """Whether the update is as close to its size without the next batch, which has `added` target tokens."""
    if size.target_tokens is None:
        return num_batches >= size.num_batches
    missing = size.target_tokens - num_tokens
    return added - missing >= missing
