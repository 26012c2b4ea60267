"""Which of the items that wait are computed next, and how they are cut into batches.

What waits is computed in rounds: a round takes the oldest items, up to a time by the measured speed, and all its batches are
computed before the next round begins. So batches stay full: while a round is computed, the items of the next one arrive.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from transformer_cli.extensions.serving.batching.kinds import Kind, Unit

# About how long a round takes: requests that come meanwhile wait for it.
_ROUND_SECONDS = 4.0
_MIN_ROUND_TOKENS = 512
_FIRST_ROUND_TOKENS = 2048
# Each token of an item takes its time, whatever the batch is. What depends on the batch are its steps, as many as its longest item
# has tokens, and its padding: longest * (this number + items). Measured on a CPU with a model of 3 + 3 layers (d_model 256): a
# step takes as long as the padding of 145 tokens, since the search drops the rows of finished sentences.
_ITEMS_OF_OVERHEAD = 150
# The most items of a piece: see `_pieces`.
_MAX_PIECE = 16
# The share of the last batch in the estimated speed.
_SHARE_OF_LAST = 0.3


class BatchSizes:
    """Chooses batches; one thread uses it."""

    def __init__(self) -> None:
        self._tokens_per_second: dict[str, float] = {}
        """Of each kind, by its name."""

    def is_full(self, pending: Iterable[Unit]) -> bool:
        """Whether more items would make the next round no larger."""
        units = list(_of_first_kind(pending))
        return sum(unit.num_tokens for unit in units) >= self._round_tokens(units[0].kind)

    def next_round(self, pending: Iterable[Unit]) -> list[list[Unit]]:
        """The batches of the next round; the first one contains the oldest unit.

        Args:
            pending: the oldest first; there is at least one.
        """
        units: list[Unit] = []
        left = 0
        for unit in _of_first_kind(pending):
            if units and left < unit.num_tokens:
                break
            left = (left if units else self._round_tokens(unit.kind)) - unit.num_tokens
            units.append(unit)
        oldest = units[0]
        batches = cheapest_batches(units, oldest.kind)
        return sorted(batches, key=lambda batch: oldest not in batch)

    def note(self, kind: Kind, num_tokens: int, seconds: float) -> None:
        """Note how long a batch took."""
        speed = num_tokens / max(seconds, 1e-6)
        before = self._tokens_per_second.get(kind.name, speed)
        self._tokens_per_second[kind.name] = before + _SHARE_OF_LAST * (speed - before)

    def _round_tokens(self, kind: Kind) -> int:
        """The number of tokens, without padding, that take about `_ROUND_SECONDS`."""
        speed = self._tokens_per_second.get(kind.name)
        wanted = _FIRST_ROUND_TOKENS if speed is None else round(speed * _ROUND_SECONDS)
        return max(_MIN_ROUND_TOKENS, wanted)


def cheapest_batches(units: Sequence[Unit], kind: Kind) -> list[list[Unit]]:
    """The batches that take the least time together, among those of neighbours in length that keep the limits of the kind.

    Args:
        units: at least one, all of this kind.
    """
    pieces = list(_pieces(sorted(units, key=lambda unit: unit.num_tokens), kind))
    # Entry i: the least cost of the first i pieces, and where the last of their batches begins.
    costs, starts = [0], [0]
    for end, last in enumerate(pieces, 1):
        longest, num_items = last[-1].num_tokens, 0
        options: list[tuple[int, int]] = []
        for start in range(end - 1, -1, -1):
            num_items += len(pieces[start])
            if options and (num_items > kind.max_items or num_items * longest > kind.max_tokens):
                break
            options.append((costs[start] + longest * (_ITEMS_OF_OVERHEAD + num_items), start))
        cost, start = min(options)
        costs.append(cost)
        starts.append(start)
    batches, end = [], len(pieces)
    while end > 0:
        start = starts[end]
        batches.append([unit for piece in pieces[start:end] for unit in piece])
        end = start
    return batches


def _pieces(units: Iterable[Unit], kind: Kind) -> Iterator[list[Unit]]:
    """Units of the same length, few together: a batch consists of whole pieces, so fewer ways to cut are tried."""
    for length, equal in groupby(units, key=lambda unit: unit.num_tokens):
        size = max(1, min(_MAX_PIECE, kind.max_items, kind.max_tokens // max(1, length)))
        while piece := list(islice(equal, size)):
            yield piece


def _of_first_kind(pending: Iterable[Unit]) -> Iterator[Unit]:
    """The units of the same kind as the first one."""
    units = iter(pending)
    oldest = next(units)
    yield oldest
    yield from (unit for unit in units if unit.kind.place == oldest.kind.place)
