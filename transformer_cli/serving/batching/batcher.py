"""The batcher: sentences of several requests are computed together, by one thread.

The thread of a request asks for the results of its items and waits. The thread of the batcher takes items of similar
length from those that wait, and computes them in one call. Equal items are computed once.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from transformer_cli.decoding.length_batches import length_batches
from transformer_cli.serving.batching.jobs import Job, Waiting

logger = logging.getLogger(__name__)

# Items that are compared by length to fill a batch; the oldest item is always in the batch.
_WINDOW_ITEMS = 1000
# About how long a batch takes: it cannot be interrupted, and short requests wait for it.
_BATCH_SECONDS = 1.5
_MIN_BATCH_TOKENS = 256
_FIRST_BATCH_TOKENS = 1024
# What padding adds to a batch, about.
_PADDING = 1.15
# The share of the last batch in the estimated speed.
_SHARE_OF_LAST = 0.3
# How long an idle batcher waits for requests whose text is prepared at this moment.
_GATHERING_SECONDS = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of work: only items of the same kind are computed together."""

    key: Hashable
    """Equal for equal kinds."""
    name: str
    """What it does; the speed of kinds with the same name is about the same."""
    compute: Callable[[Sequence[Any]], Sequence[Any]]
    """One result for each item. The result of an item does not depend on the other items."""
    length: Callable[[Any], int]
    """The number of tokens of an item."""
    max_tokens: int
    """Largest number of tokens of a batch, padding included."""

    @property
    def place(self) -> Hashable:
        """What tells this kind from all others."""
        return self.name, self.key


class _Unit:
    """One item, and the calls that wait for its result."""

    __slots__ = ("item", "key", "kind", "waiting")

    def __init__(self, kind: Kind, key: Hashable, item: Any) -> None:
        self.kind, self.key, self.item = kind, key, item
        self.waiting: list[Waiting] = []

    @property
    def place(self) -> tuple[Hashable, Hashable]:
        """The key of the unit among units of all kinds."""
        return self.kind.place, self.key


class Counts:
    """What a batcher has done since its start; other threads read it."""

    def __init__(self) -> None:
        self.num_batches = 0
        self.num_items = 0
        self.num_tokens = 0
        self.busy_seconds = 0.0


class Batcher:
    """Computes the items of many threads in one thread, in batches."""

    def __init__(self, name: str) -> None:
        self.counts = Counts()
        self._changed = threading.Condition()
        self._pending: dict[Hashable, _Unit] = {}
        """The units that no batch has taken yet, the oldest first."""
        self._running: dict[Hashable, _Unit] = {}
        self._num_preparing = 0
        self._is_closed = False
        self._tokens_per_second: dict[Hashable, float] = {}
        """Of each kind, as measured."""
        self._thread = threading.Thread(target=self._work, name=f"batcher-{name}", daemon=True)
        self._thread.start()

    @property
    def num_pending(self) -> int:
        """The number of items that wait."""
        return len(self._pending)

    @contextmanager
    def preparing(self) -> Iterator[Callable[[], None]]:
        """A block in which a thread prepares items; an idle batcher waits a moment for them.

        Yields:
            Says that the items are ready; the end of the block says so, too.
        """
        is_counted = True

        def change(difference: int) -> None:
            with self._changed:
                self._num_preparing += difference
                self._changed.notify()

        def ready() -> None:
            nonlocal is_counted
            if is_counted:
                is_counted = False
                change(-1)

        change(1)
        try:
            yield ready
        finally:
            ready()

    def results(self, kind: Kind, items: Mapping[Any, Any], job: Job) -> dict[Any, Any]:
        """The results of items, by their keys.

        Args:
            items: each with a key. Items with equal keys are equal, also those of other callers: one is computed.
            job: of the caller.

        Raises:
            JobCancelled, DeadlinePassed: as of `Job.wait_for`; whatever `Kind.compute` raises for one of the items.
        """
        waiting = Waiting(len(items))
        units: list[_Unit] = []
        with self._changed:
            if self._is_closed:
                raise RuntimeError("the batcher is closed")
            for key, item in items.items():
                place = (kind.place, key)
                unit = self._running.get(place) or self._pending.get(place)
                if unit is None:
                    unit = self._pending[place] = _Unit(kind, key, item)
                unit.waiting.append(waiting)
                units.append(unit)
            self._changed.notify()
        try:
            return job.wait_for(waiting)
        finally:
            if not waiting.is_done:
                with self._changed:
                    self._leave(units, waiting)

    def close(self) -> None:
        """End the thread after its batch; callers that still wait get an error."""
        with self._changed:
            self._is_closed = True
            left = [*self._pending.values()]
            self._pending.clear()
            self._changed.notify()
        for unit in left:
            for waiting in unit.waiting:
                waiting.fail(RuntimeError("the batcher is closed"))
        self._thread.join(timeout=5.0)

    def _leave(self, units: Sequence[_Unit], waiting: Waiting) -> None:
        """Drop what nobody else waits for; what a batch has taken is computed to its end."""
        for unit in units:
            if waiting in unit.waiting:
                unit.waiting.remove(waiting)
            if not unit.waiting:
                self._pending.pop(unit.place, None)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._pending:
                    while not self._pending and not self._is_closed:
                        self._changed.wait()
                    self._gather()
                if self._is_closed:
                    return
                batch = self._take()
            if batch:
                self._compute(batch)

    def _gather(self) -> None:
        """Wait a moment for the items of requests whose text is prepared now, so that batches are full."""
        stop_at = time.monotonic() + _GATHERING_SECONDS
        while self._num_preparing > 0 and not self._is_closed:
            left = stop_at - time.monotonic()
            if left <= 0.0 or not self._changed.wait(left):
                return

    def _take(self) -> list[_Unit]:
        """The oldest unit, and units of similar length beside it."""
        if not self._pending:
            return []
        oldest = next(iter(self._pending.values()))
        kind = oldest.kind
        same_kind = (unit for unit in self._pending.values() if unit.kind.place == kind.place)
        window = list(islice(same_kind, _WINDOW_ITEMS))
        lengths = [kind.length(unit.item) for unit in window]
        most = self._most_tokens(kind)
        # Batches of about the same size: a small rest would take nearly as long as a full batch.
        even = sum(lengths) / math.ceil(sum(lengths) / most) if any(lengths) else 0.0
        batches = length_batches(
            window,
            lambda unit: kind.length(unit.item),
            max_tokens=min(most, max(_MIN_BATCH_TOKENS, round(_PADDING * even))),
        )
        batch = next(batch for batch in batches if oldest in batch)
        for unit in batch:
            self._running[unit.place] = self._pending.pop(unit.place)
        return batch

    def _most_tokens(self, kind: Kind) -> int:
        """The size of a batch that takes about `_BATCH_SECONDS`."""
        speed = self._tokens_per_second.get(kind.name)
        wanted = _FIRST_BATCH_TOKENS if speed is None else round(speed * _BATCH_SECONDS)
        return min(kind.max_tokens, max(_MIN_BATCH_TOKENS, wanted))

    def _note_speed(self, kind: Kind, num_tokens: int, seconds: float) -> None:
        speed = num_tokens / max(seconds, 1e-6)
        before = self._tokens_per_second.get(kind.name, speed)
        self._tokens_per_second[kind.name] = before + _SHARE_OF_LAST * (speed - before)

    def _compute(self, batch: Sequence[_Unit]) -> None:
        kind = batch[0].kind
        started_at, cpu_before = time.perf_counter(), time.process_time()
        try:
            results = kind.compute([unit.item for unit in batch])
        except BaseException as error:  # a panic in Rust is a BaseException
            if len(batch) == 1:
                self._finish(batch[0], error=error)
                return
            logger.warning(
                "a batch of %d failed (%s), so each item is computed alone",
                len(batch),
                type(error).__name__,
            )
            for unit in batch:
                self._compute([unit])
            return
        counts = self.counts
        seconds = time.perf_counter() - started_at
        num_tokens = sum(kind.length(unit.item) for unit in batch)
        # Where other programs take the cores, a batch takes longer, and a smaller one would take even more of them.
        self._note_speed(kind, num_tokens, min(seconds, time.process_time() - cpu_before))
        counts.busy_seconds += seconds
        counts.num_batches += 1
        counts.num_items += len(batch)
        counts.num_tokens += num_tokens
        for unit, result in zip(batch, results, strict=True):
            self._finish(unit, result)

    def _finish(
        self, unit: _Unit, result: Any = None, *, error: BaseException | None = None
    ) -> None:
        with self._changed:
            self._running.pop(unit.place, None)
            for waiting in unit.waiting:
                if error is None:
                    waiting.add(unit.key, result)
                else:
                    waiting.fail(error)
