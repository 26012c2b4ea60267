"""The batcher: sentences of several requests are computed together, by one thread.

The thread of a request asks for the results of its items and waits. The thread of the batcher takes items of similar
length from those that wait, and computes them in one call. Equal items are computed once.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from transformer_cli.extensions.serving.batching.batch_sizes import BatchSizes
from transformer_cli.extensions.serving.batching.jobs import Job, Waiting
from transformer_cli.extensions.serving.batching.kinds import Kind, Unit

logger = logging.getLogger(__name__)

# How long a free batcher waits for requests whose text is prepared at this moment.
_GATHERING_SECONDS = 0.005
# Clients that were answered often ask again at once. The batcher waits for them so long at most: a share of the time of
# their batch, and this many seconds; but it stops when none has come for a moment.
_SHARE_OF_BATCH = 0.25
_MAX_GATHERING_SECONDS = 0.25
_MOMENT_SECONDS = 0.02
_LOOKING_SECONDS = 0.002
# A batch that has computed so long gives way to shorter items that wait, for one batch of them; then it computes again,
# at least as long as they took.
_SECONDS_BEFORE_GIVING_WAY = 0.3
# Items are shorter than a batch if they have at most this share of the tokens of its longest item.
_SHARE_OF_SHORTER = 0.25


class Counts:
    """What a batcher has done since its start; other threads read it."""

    def __init__(self) -> None:
        self.num_asked = 0
        """The number of calls of `Batcher.results`."""
        self.num_batches = 0
        self.num_items = 0
        self.num_tokens = 0
        self.busy_seconds = 0.0


class Batcher:
    """Computes the items of many threads in one thread, in batches."""

    def __init__(self, name: str) -> None:
        self.counts = Counts()
        self._changed = threading.Condition()
        self._pending: dict[Hashable, Unit] = {}
        """The units that no batch has taken yet, the oldest first."""
        self._running: dict[Hashable, Unit] = {}
        self._num_preparing = 0
        self._num_answered = 0
        self._num_left = 0
        """The number of calls of `results` that have ended without all results."""
        self._sizes = BatchSizes()
        self._gives_way = False
        """Whether a batch waits for another one that was put before it."""
        self._seconds_of_others = 0.0
        """For how long batches have waited so."""
        self._is_closed = False
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
        units: list[Unit] = []
        with self._changed:
            if self._is_closed:
                raise RuntimeError("the batcher is closed")
            self.counts.num_asked += 1
            for key, item in items.items():
                place = (kind.place, key)
                unit = self._running.get(place) or self._pending.get(place)
                if unit is None:
                    unit = self._pending[place] = Unit(kind, key, item)
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

    def _leave(self, units: Sequence[Unit], waiting: Waiting) -> None:
        """Drop what nobody else waits for."""
        self._num_left += 1
        for unit in units:
            if waiting in unit.waiting:
                unit.waiting.remove(waiting)
            if not unit.waiting and self._pending.get(unit.place) is unit:
                del self._pending[unit.place]

    def _work(self) -> None:
        num_answered, asked_before, gathering = 0, 0, 0.0
        while True:
            with self._changed:
                while not self._pending and not self._is_closed:
                    self._changed.wait()
            self._gather(asked_before + num_answered, max(_GATHERING_SECONDS, gathering))
            with self._changed:
                if self._is_closed:
                    return
                if not self._pending:
                    continue
                batches = self._sizes.next_round(self._pending.values())
            started_at, answered_before = time.monotonic(), self._num_answered
            for planned in batches:
                if batch := self._taken(planned):
                    self._compute(batch)
            seconds = time.monotonic() - started_at
            gathering = min(_SHARE_OF_BATCH * seconds, _MAX_GATHERING_SECONDS)
            num_answered = self._num_answered - answered_before
            asked_before = self.counts.num_asked

    def _taken(self, planned: Sequence[Unit]) -> list[Unit]:
        """The units of a batch that are still wanted; from now on they are running."""
        with self._changed:
            batch = [unit for unit in planned if self._pending.get(unit.place) is unit]
            for unit in batch:
                self._running[unit.place] = self._pending.pop(unit.place)
        return batch

    def _gather(self, expected: int, seconds: float) -> None:
        """Wait for requests that come at this moment, so that batches are full.

        Args:
            expected: the number of calls of `results`, since the start, with which all clients have asked again.
            seconds: the longest time to wait.
        """
        with self._changed:
            if not self._pending or self._sizes.is_full(self._pending.values()):
                return
        stop_at = time.monotonic() + seconds
        num_asked, quiet_at = -1, stop_at
        while self._num_preparing > 0 or self.counts.num_asked < expected:
            now = time.monotonic()
            if num_asked != self.counts.num_asked:
                num_asked, quiet_at = self.counts.num_asked, now + _MOMENT_SECONDS
            is_quiet = self._num_preparing == 0 and now >= quiet_at
            if is_quiet or now >= stop_at or self._is_closed:
                return
            time.sleep(_LOOKING_SECONDS)

    def _compute(self, batch: Sequence[Unit]) -> None:
        kind = batch[0].kind
        started_at, cpu_before = time.perf_counter(), time.process_time()
        others_before = self._seconds_of_others
        gone: list[Any] = []
        try:
            results = kind.results([unit.item for unit in batch], self._unwanted(batch, gone))
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
                if unit.waiting:
                    self._compute([unit])
            return
        counts = self.counts
        seconds_of_others = self._seconds_of_others - others_before
        seconds = time.perf_counter() - started_at - seconds_of_others
        num_tokens = sum(unit.num_tokens for unit in batch)
        if not gone and not seconds_of_others:
            # Where other programs take the cores, a batch takes longer, and a smaller one would take even more of them.
            self._sizes.note(kind, num_tokens, min(seconds, time.process_time() - cpu_before))
        counts.busy_seconds += seconds
        counts.num_batches += 1
        counts.num_items += len(batch)
        counts.num_tokens += num_tokens
        for unit, result in zip(batch, results, strict=True):
            self._finish(unit, result)

    def _unwanted(self, batch: Sequence[Unit], gone: list[Any]) -> Callable[[], Collection[Any]]:
        """Appends to `gone` the items of a running batch for which nobody waits any more, and returns it.

        Whoever asks for such an item later does not get the result of this batch.
        """
        num_seen = self._num_left
        longest = max(unit.num_tokens for unit in batch)
        give_way_at = time.monotonic() + _SECONDS_BEFORE_GIVING_WAY

        def unwanted() -> Collection[Any]:
            nonlocal num_seen, give_way_at
            if self._pending and not self._gives_way and time.monotonic() >= give_way_at:
                seconds = self._compute_shorter(_SHARE_OF_SHORTER * longest)
                give_way_at = time.monotonic() + max(_SECONDS_BEFORE_GIVING_WAY, seconds)
            if num_seen != self._num_left:
                with self._changed:
                    num_seen = self._num_left
                    for unit in batch:
                        if not unit.waiting and self._running.get(unit.place) is unit:
                            del self._running[unit.place]
                            gone.append(unit.item)
            return gone

        return unwanted

    def _compute_shorter(self, most_tokens: float) -> float:
        """Compute one batch of items that wait, in the middle of another batch; returns the seconds that it took.

        Args:
            most_tokens: of an item.
        """
        started_at = time.monotonic()
        with self._changed:
            shorter = [unit for unit in self._pending.values() if unit.num_tokens <= most_tokens]
            planned = self._sizes.next_round(shorter)[0] if shorter else []
        if not planned:
            return 0.0
        self._gives_way = True
        try:
            self._compute(self._taken(planned))
        finally:
            self._gives_way = False
        seconds = time.monotonic() - started_at
        self._seconds_of_others += seconds
        return seconds

    def _finish(
        self, unit: Unit, result: Any = None, *, error: BaseException | None = None
    ) -> None:
        with self._changed:
            if self._running.get(unit.place) is unit:
                del self._running[unit.place]
            for waiting in unit.waiting:
                if error is None:
                    waiting.add(unit.key, result)
                else:
                    waiting.fail(error)
                self._num_answered += waiting.is_done
