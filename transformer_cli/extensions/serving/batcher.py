"""The batcher of a server: the sentences of many requests in batches, each sentence computed once.

The thread of a request asks for the results of its items and waits. The thread of the batcher takes items of similar
length from those that wait, and computes them in one call. Equal items are computed once.
"""

import hashlib
import logging
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import (
    Engine,
    ExplainingEngine,
    Explanation,
    Hypothesis,
    InterruptibleEngine,
    Request,
    TokenIds,
)
from transformer_cli.process.errors import UsageError

logger = logging.getLogger(__name__)


class JobCancelled(Exception):
    """Nobody waits for the result of the job any more."""


class DeadlinePassed(Exception):
    """The job has taken longer than its deadline allows."""


class Job:
    """The work of one request; one thread does it, and any other thread can cancel it."""

    def __init__(self, deadline_seconds: float) -> None:
        self.deadline_at = time.monotonic() + deadline_seconds
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._waiting: Waiting | None = None

    def cancel(self) -> None:
        """Let the thread of the job end with `JobCancelled` where it waits next."""
        with self._lock:
            self._is_cancelled = True
            waiting = self._waiting
        if waiting is not None:
            waiting.stop()

    def check(self) -> None:
        """Raise an exception if the job is cancelled, or too late."""
        if self._is_cancelled:
            raise JobCancelled
        if time.monotonic() > self.deadline_at:
            raise DeadlinePassed

    def wait_for(self, waiting: "Waiting") -> dict[Any, Any]:
        """The results of a call of the batcher.

        Raises:
            JobCancelled: the job was cancelled meanwhile.
            DeadlinePassed: the results did not come in time.
        """
        with self._lock:
            self._waiting = waiting
            if self._is_cancelled:
                raise JobCancelled
        try:
            waiting.wait(self.deadline_at - time.monotonic())
        finally:
            with self._lock:
                self._waiting = None
        if waiting.error is not None:
            raise waiting.error
        if not waiting.is_done:
            self.check()
            raise DeadlinePassed
        return waiting.results


class Waiting:
    """One call of the batcher that waits for the results of several items."""

    def __init__(self, num_items: int) -> None:
        self.results: dict[Any, Any] = {}
        self.error: BaseException | None = None
        self._num_items = num_items
        self._woken = threading.Event()
        if num_items == 0:
            self._woken.set()

    @property
    def is_done(self) -> bool:
        """Whether all results are there."""
        return len(self.results) == self._num_items

    def wait(self, seconds: float) -> None:
        """Wait until all results are there, one item has failed, or the job is cancelled."""
        self._woken.wait(max(0.0, seconds))

    def add(self, key: Hashable, result: Any) -> None:
        """Note the result of an item; the last one wakes the thread of the job."""
        self.results[key] = result
        if self.is_done:
            self._woken.set()

    def fail(self, error: BaseException) -> None:
        """Note that an item has failed, and wake the thread of the job."""
        self.error = error
        self._woken.set()

    def stop(self) -> None:
        """Wake the thread of the job before all results are there."""
        self._woken.set()


Unwanted = Callable[[], Collection[Any]]
"""Returns the items of a batch that nobody needs any more. Their number never falls."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkKind:
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
    """Largest number of tokens of a batch, padding included; an item with more is a batch of its own."""
    compute_wanted: Callable[[Sequence[Any], Unwanted], Sequence[Any]] | None = None
    """The same as `compute`, but it may ask at any time which items are unwanted, and return anything for them. None: all
    items are computed to their end."""
    max_items: int = sys.maxsize
    """Largest number of items of a batch."""

    @property
    def place(self) -> Hashable:
        """What tells this kind from all others."""
        return self.name, self.key

    def results(self, items: Sequence[Any], unwanted: Unwanted) -> Sequence[Any]:
        """One result for each item, by `compute_wanted` if there is one."""
        if self.compute_wanted is None:
            return self.compute(items)
        return self.compute_wanted(items, unwanted)


class Unit:
    """One item, and the calls that wait for its result."""

    __slots__ = ("item", "key", "kind", "waiting")

    def __init__(self, kind: WorkKind, key: Hashable, item: Any) -> None:
        self.kind, self.key, self.item = kind, key, item
        self.waiting: list[Waiting] = []

    @property
    def place(self) -> tuple[Hashable, Hashable]:
        """The key of the unit among units of all kinds."""
        return self.kind.place, self.key

    @property
    def num_tokens(self) -> int:
        """The number of tokens of its item."""
        return self.kind.length(self.item)


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
        units = list(_units_of_first_kind(pending))
        return sum(unit.num_tokens for unit in units) >= self._round_tokens(units[0].kind)

    def next_round(self, pending: Iterable[Unit]) -> list[list[Unit]]:
        """The batches of the next round; the first one contains the oldest unit.

        Args:
            pending: the oldest first; there is at least one.
        """
        units: list[Unit] = []
        left = 0
        for unit in _units_of_first_kind(pending):
            if units and left < unit.num_tokens:
                break
            left = (left if units else self._round_tokens(unit.kind)) - unit.num_tokens
            units.append(unit)
        oldest = units[0]
        batches = cheapest_batches(units, oldest.kind)
        return sorted(batches, key=lambda batch: oldest not in batch)

    def note(self, kind: WorkKind, num_tokens: int, seconds: float) -> None:
        """Note how long a batch took."""
        speed = num_tokens / max(seconds, 1e-6)
        before = self._tokens_per_second.get(kind.name, speed)
        self._tokens_per_second[kind.name] = before + _SHARE_OF_LAST * (speed - before)

    def _round_tokens(self, kind: WorkKind) -> int:
        """The number of tokens, without padding, that take about `_ROUND_SECONDS`."""
        speed = self._tokens_per_second.get(kind.name)
        wanted = _FIRST_ROUND_TOKENS if speed is None else round(speed * _ROUND_SECONDS)
        return max(_MIN_ROUND_TOKENS, wanted)


def cheapest_batches(units: Sequence[Unit], kind: WorkKind) -> list[list[Unit]]:
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


def _pieces(units: Iterable[Unit], kind: WorkKind) -> Iterator[list[Unit]]:
    """Units of the same length, few together: a batch consists of whole pieces, so fewer ways to cut are tried."""
    for length, equal in groupby(units, key=lambda unit: unit.num_tokens):
        size = max(1, min(_MAX_PIECE, kind.max_items, kind.max_tokens // max(1, length)))
        while piece := list(islice(equal, size)):
            yield piece


def _units_of_first_kind(pending: Iterable[Unit]) -> Iterator[Unit]:
    """The units of the same kind as the first one."""
    units = iter(pending)
    oldest = next(units)
    yield oldest
    yield from (unit for unit in units if unit.kind.place == oldest.kind.place)


Key = bytes

# About what Python takes for the key of an entry and its place.
_BYTES_OF_KEY = 300


def key_of(conditions: bytes, item: object) -> Key:
    """The hash of everything that decides about a result.

    Args:
        conditions: the hash of the model and of the settings of decoding.
        item: what is computed, such as a request: the token ids of the source, the prefix, the terms and the seed.
            Its `repr` tells it from all others.
    """
    return hashlib.blake2b(conditions + repr(item).encode(), digest_size=16).digest()


class _Entry(NamedTuple):
    result: Any
    num_bytes: int


class ResultCache:
    """Results by the keys of their requests; several threads may use it."""

    def __init__(self, max_bytes: int) -> None:
        self.num_hits = 0
        self.num_misses = 0
        self.num_bytes = 0
        """About the memory that it takes."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Any:
        """The result of a request; None if it is not there."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self.num_misses += 1
                return None
            self.num_hits += 1
            self._entries.move_to_end(key)
            return found.result

    def put(self, key: Key, result: Any, num_bytes: int) -> None:
        """Keep a result; drop others if memory is full.

        Args:
            result: not None; nobody changes it.
            num_bytes: about the memory that it takes.
        """
        entry = _Entry(result, num_bytes + _BYTES_OF_KEY)
        if entry.num_bytes > self._max_bytes:
            return
        with self._lock:
            before = self._entries.pop(key, None)
            self.num_bytes += entry.num_bytes - (before.num_bytes if before else 0)
            self._entries[key] = entry
            while self.num_bytes > self._max_bytes:
                _, dropped = self._entries.popitem(last=False)
                self.num_bytes -= dropped.num_bytes


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


class BatcherCounts:
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
        self.counts = BatcherCounts()
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

    def results(self, kind: WorkKind, items: Mapping[Any, Any], job: Job) -> dict[Any, Any]:
        """The results of items, by their keys.

        Args:
            items: each with a key. Items with equal keys are equal, also those of other callers: one is computed.
            job: of the caller.

        Raises:
            JobCancelled, DeadlinePassed: as of `Job.wait_for`; whatever `WorkKind.compute` raises for one of the items.
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
                with self._changed:
                    is_wanted = bool(unit.waiting)
                    if not is_wanted and self._running.get(unit.place) is unit:
                        del self._running[unit.place]  # else a later caller would wait for what nobody computes
                if is_wanted:
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

    def _finish(self, unit: Unit, result: Any = None, *, error: BaseException | None = None) -> None:
        with self._changed:
            if self._running.get(unit.place) is unit:
                del self._running[unit.place]
            for waiting in unit.waiting:
                if error is None:
                    waiting.add(unit.key, result)
                else:
                    waiting.fail(error)
                self._num_answered += waiting.is_done


if TYPE_CHECKING:
    from torch import Tensor

# A long document asks for so many sentences at once, so that it does not hold up short requests.
_SENTENCES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ServedEngine:
    """An engine that many requests use together; see `for_job`."""

    engine: Engine
    model_digest: str
    """What tells this model from all other models of the server."""
    batcher: Batcher
    cache: ResultCache

    def for_job(self, job: Job, ready: Callable[[], None]) -> "EngineOfJob":
        """The engine with which the thread of a job translates.

        Args:
            ready: called when the first sentences of the job are prepared.
        """
        return EngineOfJob(self, job, ready)


@dataclass(frozen=True, slots=True)
class EngineOfJob:
    """An `ExplainingEngine` for the thread of one job: it waits for the batcher, and ends when the job is cancelled."""

    shared: ServedEngine
    job: Job
    ready: Callable[[], None]

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        shared, conditions = self.shared, search_conditions(self.shared.model_digest, options)
        keys = [key_of(conditions, tuple(request)) for request in requests]
        found: dict[Key, Sequence[Hypothesis]] = {}
        missing: dict[Key, Request] = {}
        for key, request in zip(keys, requests, strict=True):
            if key in found or key in missing:
                continue
            cached = shared.cache.get(key)
            if cached is None:
                missing[key] = request
            else:
                found[key] = cached
        if missing:
            kind = _translation(shared.engine, conditions, options)
            self.ready()
            for some in _in_turns(missing):
                results = shared.batcher.results(kind, some, self.job)
                for key, hypotheses in results.items():
                    shared.cache.put(key, hypotheses, _num_bytes(hypotheses))
                found |= results
        self.job.check()
        return [list(found[key]) for key in keys]

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`; it is computed in the thread of the job."""
        engine = self.shared.engine
        return engine.negative_log_likelihood(sources, targets, batch_tokens=batch_tokens)

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> "Tensor":
        """See `Engine.next_token_probabilities`; it is computed in the thread of the job."""
        return self.shared.engine.next_token_probabilities(source, prefix)

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        """See `ExplainingEngine.explain`."""
        engine = self.shared.engine
        if not isinstance(engine, ExplainingEngine):
            raise UsageError("this engine gives no probabilities and no attention weights")

        def explained(batch: Sequence[tuple[Request, TokenIds]]) -> list[Explanation]:
            batch_requests, their_targets = [one for one, _ in batch], [target for _, target in batch]
            return engine.explain(batch_requests, their_targets, batch_tokens=batch_tokens, num_best=num_best)

        kind = WorkKind(
            num_best,
            "explain",
            explained,
            lambda pair: max(len(pair[0].ids), len(pair[1])),
            batch_tokens,
        )
        pairs = list(zip(requests, targets, strict=True))
        self.ready()
        results = self.shared.batcher.results(kind, dict(zip(pairs, pairs, strict=True)), self.job)
        return [results[pair] for pair in pairs]


def _translation(engine: Engine, conditions: bytes, options: DecodingConfig) -> WorkKind:
    """The work of translating requests with one engine and the same options."""

    def compute_wanted(
        requests: Sequence[Request], unwanted: Callable[[], Collection[Request]]
    ) -> list[list[Hypothesis]]:
        assert isinstance(engine, InterruptibleEngine)
        return engine.interruptible(unwanted).translate(requests, options)

    kind = WorkKind(
        conditions,
        "translate",
        lambda requests: engine.translate(requests, options),
        lambda request: len(request.ids),
        options.batch_tokens,
    )
    if not isinstance(engine, InterruptibleEngine):
        return kind
    return replace(kind, compute_wanted=compute_wanted, max_items=engine.max_sentences(options))


def _in_turns(requests: Mapping[Key, Request]) -> Iterator[dict[Key, Request]]:
    """Requests of similar length, some at a time: between them, sentences of other jobs have their turn."""
    by_length = sorted(requests.items(), key=lambda item: len(item[1].ids))
    for start in range(0, len(by_length), _SENTENCES_AT_ONCE):
        yield dict(by_length[start : start + _SENTENCES_AT_ONCE])


def _num_bytes(hypotheses: Sequence[Hypothesis]) -> int:
    """About the memory of hypotheses."""
    return 300 + sum(200 + 40 * len(hypothesis.ids) for hypothesis in hypotheses)


@lru_cache(maxsize=1024)
def search_conditions(model_digest: str, options: DecodingConfig) -> bytes:
    """The hash of a model and of settings of decoding."""
    return hashlib.blake2b(f"{model_digest}\n{options.model_dump_json()}".encode(), digest_size=16).digest()
