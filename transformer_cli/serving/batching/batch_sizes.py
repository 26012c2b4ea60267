"""Which of the items that wait are the next batch, and how large it is, by the measured speed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from transformer_cli.decoding.length_batches import length_batches
from transformer_cli.serving.batching.kinds import Kind, Unit

# Items that are compared by length to fill a batch; the oldest item is always in the batch.
_WINDOW_ITEMS = 1000
# About how long a batch takes: short requests that come meanwhile wait for it.
_BATCH_SECONDS = 1.5
_MIN_BATCH_TOKENS = 256
_FIRST_BATCH_TOKENS = 1024
# The time of a batch is about proportional to its longest item, times the number of its items and these together: each step of
# a search has a cost of its own. Measured on a CPU: 10 for a model of 3 + 3 layers (d_model 256), 18 for one of 2 + 2.
_ITEMS_OF_OVERHEAD = 12
# The share of the last batch in the estimated speed.
_SHARE_OF_LAST = 0.3


class BatchSizes:
    """Chooses batches; one thread uses it."""

    def __init__(self) -> None:
        self._tokens_per_second: dict[str, float] = {}
        """Of each kind, by its name."""

    def is_full(self, pending: Iterable[Unit]) -> bool:
        """Whether the oldest unit and those of its kind are at least a batch already."""
        window = _window(pending)
        return sum(unit.num_tokens for unit in window) >= self._most_tokens(window[0].kind)

    def next_batch(self, pending: Iterable[Unit]) -> list[Unit]:
        """The oldest unit, and those of its kind with which it is computed in the shortest time.

        Args:
            pending: the oldest first; there is at least one.
        """
        window = _window(pending)
        oldest = window[0]
        lengths = cheapest_lengths([unit.num_tokens for unit in window])
        similar = [unit for unit in window if unit.num_tokens in lengths]
        most = self._most_tokens(oldest.kind)
        batches = length_batches(similar, lambda unit: unit.num_tokens, max_tokens=most)
        return next(batch for batch in batches if oldest in batch)

    def note(self, kind: Kind, num_tokens: int, seconds: float) -> None:
        """Note how long a batch took."""
        speed = num_tokens / max(seconds, 1e-6)
        before = self._tokens_per_second.get(kind.name, speed)
        self._tokens_per_second[kind.name] = before + _SHARE_OF_LAST * (speed - before)

    def _most_tokens(self, kind: Kind) -> int:
        """The size of a batch that takes about `_BATCH_SECONDS`."""
        speed = self._tokens_per_second.get(kind.name)
        wanted = _FIRST_BATCH_TOKENS if speed is None else round(speed * _BATCH_SECONDS)
        return min(kind.max_tokens, max(_MIN_BATCH_TOKENS, wanted))


def cheapest_lengths(lengths: Sequence[int]) -> range:
    """The lengths of the batch with the first item, if all items are cut into the batches that take the least time together.

    Args:
        lengths: of all items; there is at least one.
    """
    counted = sorted(Counter(lengths).items())
    # Entry i: the least cost of the i shortest lengths, and where the last of their batches begins.
    costs, starts = [0], [0]
    for end, (longest, _) in enumerate(counted, 1):
        num_items, options = _ITEMS_OF_OVERHEAD, []
        for start in range(end - 1, -1, -1):
            num_items += counted[start][1]
            options.append((costs[start] + longest * num_items, start))
        cost, start = min(options)
        costs.append(cost)
        starts.append(start)
    end = len(counted)
    while counted[starts[end]][0] > lengths[0]:
        end = starts[end]
    return range(counted[starts[end]][0], counted[end - 1][0] + 1)


def _window(pending: Iterable[Unit]) -> list[Unit]:
    """The oldest units of the kind of the first one."""
    units = iter(pending)
    oldest = next(units)
    same_kind = (unit for unit in units if unit.kind.place == oldest.kind.place)
    return [oldest, *islice(same_kind, _WINDOW_ITEMS - 1)]
