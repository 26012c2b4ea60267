"""The batcher, with functions in place of an engine."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.extensions.serving.batcher import (
    Batcher,
    DeadlinePassed,
    Job,
    JobCancelled,
    WorkKind,
)

LONG = 60.0


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher("test")
    yield batcher
    batcher.close()


def kind_of(compute: Callable[[Sequence[Any]], Sequence[Any]], *, key: str = "kind", max_tokens: int = 20) -> WorkKind:
    return WorkKind(key, "test", compute, len, max_tokens)


def ask(batcher: Batcher, kind: WorkKind, *items: str, job: Job | None = None) -> list[Any]:
    results = batcher.results(kind, {item: item for item in items}, job or Job(LONG))
    return [results[item] for item in items]


class Held:
    """Computes lengths, and holds the first batch until it is released."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun = threading.Event()
        self.released = threading.Event()

    def __call__(self, items: Sequence[str]) -> list[int]:
        self.batches.append(list(items))
        self.begun.set()
        assert self.released.wait(LONG)
        return [len(item) for item in items]


def wait_until(condition: Callable[[], bool]) -> None:
    stop_at = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < stop_at
        time.sleep(0.001)


@pytest.mark.long
@given(st.lists(st.lists(st.text("ab", max_size=9), max_size=5), max_size=8))
def test_each_caller_gets_the_results_of_its_own_items(of_callers: list[list[str]]) -> None:
    batcher = Batcher("test")
    kind = kind_of(lambda items: [item.upper() for item in items])
    try:
        with ThreadPoolExecutor(8) as threads:
            found = threads.map(lambda items: ask(batcher, kind, *items), of_callers)
            assert list(found) == [[item.upper() for item in items] for items in of_callers]
    finally:
        batcher.close()


def test_items_that_wait_are_computed_together_by_length_within_the_limit(batcher: Batcher) -> None:
    held = Held()
    kind = kind_of(held, max_tokens=20)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(ask, batcher, kind, "first")
        assert held.begun.wait(LONG)
        words = ["aa", "bbbbbbbbbb", "cc", "dddddddddd", "ee", "ffffffffff"]
        others = []
        for number, word in enumerate(words, 1):
            others.append(threads.submit(ask, batcher, kind, word))
            wait_until(lambda number=number: batcher.num_pending == number)
        held.released.set()
        assert first.result(LONG) == [5]
        assert [other.result(LONG) for other in others] == [[len(word)] for word in words]
    assert "aa" in held.batches[1]  # the oldest
    assert all(len(batch) * max(map(len, batch)) <= 20 for batch in held.batches)
    # Six batches of one item, if they were not computed together.
    assert len(held.batches) <= 1 + 3


def test_equal_items_of_several_callers_are_computed_once(batcher: Batcher) -> None:
    held = Held()
    kind = kind_of(held)
    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(ask, batcher, kind, "same")]
        assert held.begun.wait(LONG)
        running += [threads.submit(ask, batcher, kind, "same") for _ in range(3)]
        running += [threads.submit(ask, batcher, kind, "other") for _ in range(3)]
        wait_until(lambda: batcher.counts.num_asked == 7)
        held.released.set()
        assert [one.result(LONG) for one in running] == [[4]] * 4 + [[5]] * 3
    assert list(chain(*held.batches)) == ["same", "other"]


def test_other_kinds_are_never_in_one_batch(batcher: Batcher) -> None:
    held = Held()
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(ask, batcher, kind_of(held), "first")
        assert held.begun.wait(LONG)
        small = kind_of(lambda items: [item.lower() for item in items], key="lower")
        large = kind_of(lambda items: [item.upper() for item in items], key="upper")
        running = [threads.submit(ask, batcher, kind, "Ab", "Cd") for kind in (small, large)]
        held.released.set()
        assert first.result(LONG) == [5]
        assert [one.result(LONG) for one in running] == [["ab", "cd"], ["AB", "CD"]]


def test_an_item_that_fails_fails_alone(batcher: Batcher) -> None:
    """I6: also a panic, which is no Exception, and an error of memory."""

    class Panic(BaseException):
        pass

    held = Held()
    errors: dict[str, BaseException] = {
        "bad": ValueError("no"),
        "panic": Panic(),
        "large": MemoryError(),
    }

    def compute(items: Sequence[str]) -> list[int]:
        for item in items:
            if item in errors:
                raise errors[item]
        return held(items)

    kind = kind_of(compute)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(ask, batcher, kind, "first")
        assert held.begun.wait(LONG)
        failing = {item: threads.submit(ask, batcher, kind, item) for item in errors}
        good = [threads.submit(ask, batcher, kind, item) for item in ("a", "bb", "ccc")]
        wait_until(lambda: batcher.num_pending == 6)
        held.released.set()
        assert first.result(LONG) == [5]
        assert [one.result(LONG) for one in good] == [[1], [2], [3]]
        for item, error in errors.items():
            with pytest.raises(type(error)):
                failing[item].result(LONG)
    assert ask(batcher, kind, "after") == [5]


def test_a_cancelled_job_ends_and_its_items_are_dropped(batcher: Batcher) -> None:
    """I4."""
    held = Held()
    kind = kind_of(held)
    job = Job(LONG)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(ask, batcher, kind, "first")
        assert held.begun.wait(LONG)
        cancelled = threads.submit(ask, batcher, kind, "dropped", "shared", job=job)
        other = threads.submit(ask, batcher, kind, "shared")
        wait_until(lambda: batcher.counts.num_asked == 3)
        job.cancel()
        with pytest.raises(JobCancelled):
            cancelled.result(LONG)
        assert batcher.num_pending == 1
        held.released.set()
        assert first.result(LONG) == [5]
        assert other.result(LONG) == [6]
    assert "dropped" not in list(chain(*held.batches))


def test_a_job_ends_at_its_deadline_while_the_engine_computes(batcher: Batcher) -> None:
    held = Held()
    with pytest.raises(DeadlinePassed):
        ask(batcher, kind_of(held), "slow", job=Job(0.05))
    held.released.set()
    assert ask(batcher, kind_of(held), "slow") == [4]


def test_a_job_that_was_cancelled_before_does_not_wait(batcher: Batcher) -> None:
    job = Job(LONG)
    job.cancel()
    held = Held()
    held.released.set()
    with pytest.raises(JobCancelled):
        ask(batcher, kind_of(held), "late", job=job)


def test_an_idle_batcher_waits_for_items_that_are_prepared_but_not_long(batcher: Batcher) -> None:
    held = Held()
    held.released.set()
    kind = kind_of(held)
    with batcher.preparing():  # it never gets ready
        started_at = time.monotonic()
        assert ask(batcher, kind, "a") == [1]
        assert 0.004 < time.monotonic() - started_at < 10.0
    with batcher.preparing() as ready, ThreadPoolExecutor(2) as threads:
        first = threads.submit(ask, batcher, kind, "bb")
        second = threads.submit(ask, batcher, kind, "cc")
        ready()
        assert [first.result(LONG), second.result(LONG)] == [[2], [2]]


def test_a_closed_batcher_lets_nobody_wait() -> None:
    batcher = Batcher("test")
    held = Held()
    kind = kind_of(held)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(ask, batcher, kind, "first")
        assert held.begun.wait(LONG)
        second = threads.submit(ask, batcher, kind, "second")
        wait_until(lambda: batcher.num_pending == 1)
        closing = threads.submit(batcher.close)
        with pytest.raises(RuntimeError):
            second.result(LONG)
        held.released.set()
        closing.result(LONG)
        assert first.result(LONG) == [5]
        with pytest.raises(RuntimeError):
            ask(batcher, kind, "third")


def test_a_running_item_that_nobody_needs_is_named_and_computed_anew_for_others(
    batcher: Batcher,
) -> None:
    """The engine can stop for it; a caller that comes later does not get its unfinished result."""
    begun, left = threading.Event(), threading.Event()
    gone: list[list[str]] = []

    def compute_wanted(items: Sequence[str], unwanted: Callable[[], Collection[str]]) -> Sequence[str]:
        begun.set()
        assert left.wait(LONG)
        gone.append(sorted(unwanted()))
        return ["unfinished" if item in unwanted() else item.upper() for item in items]

    kind = WorkKind("kind", "test", lambda items: items, len, 100, compute_wanted)
    job = Job(LONG)
    with ThreadPoolExecutor(8) as threads:
        both = threads.submit(ask, batcher, kind, "left", "shared", job=job)
        assert begun.wait(LONG)
        other = threads.submit(ask, batcher, kind, "shared")
        wait_until(lambda: batcher.counts.num_asked == 2)
        job.cancel()
        with pytest.raises(JobCancelled):
            both.result(LONG)
        left.set()
        assert other.result(LONG) == ["SHARED"]
        assert gone == [["left"]]
    assert ask(batcher, kind, "left") == ["LEFT"]


def test_a_running_item_is_wanted_while_one_caller_waits(batcher: Batcher) -> None:
    begun, released = threading.Event(), threading.Event()

    def compute_wanted(items: Sequence[str], unwanted: Callable[[], Collection[str]]) -> Sequence[str]:
        begun.set()
        assert released.wait(LONG)
        assert not unwanted()
        return [item.upper() for item in items]

    kind = WorkKind("kind", "test", lambda items: items, len, 100, compute_wanted)
    job = Job(LONG)
    with ThreadPoolExecutor(8) as threads:
        leaving = threads.submit(ask, batcher, kind, "same", job=job)
        assert begun.wait(LONG)
        staying = threads.submit(ask, batcher, kind, "same")
        wait_until(lambda: batcher.counts.num_asked == 2)
        job.cancel()
        with pytest.raises(JobCancelled):
            leaving.result(LONG)
        released.set()
        assert staying.result(LONG) == ["SAME"]


def test_an_item_that_nobody_needs_when_its_batch_fails_is_computed_for_a_later_caller(
    batcher: Batcher,
) -> None:
    """A caller that comes later would else wait, until its deadline, for a batch that has ended."""
    begun, left = threading.Event(), threading.Event()

    def compute(items: Sequence[str]) -> list[str]:
        if len(items) > 1:
            begun.set()
            assert left.wait(LONG)
            raise ValueError("a batch of two")
        return [item.upper() for item in items]

    kind = kind_of(compute)
    job = Job(LONG)
    with ThreadPoolExecutor(8) as threads:
        both = threads.submit(ask, batcher, kind, "left", "kept", job=job)
        assert begun.wait(LONG)
        other = threads.submit(ask, batcher, kind, "kept")
        wait_until(lambda: batcher.counts.num_asked == 2)
        job.cancel()
        with pytest.raises(JobCancelled):
            both.result(LONG)
        left.set()
        assert other.result(LONG) == ["KEPT"]
    assert ask(batcher, kind, "left", job=Job(5.0)) == ["LEFT"]


def test_a_free_batcher_takes_all_that_waits(batcher: Batcher) -> None:
    """Also items of different length, if a second batch would take longer than their padding."""
    held = Held()
    kind = kind_of(held, max_tokens=1000)
    with ThreadPoolExecutor(16) as threads:
        first = threads.submit(ask, batcher, kind, "first")
        assert held.begun.wait(LONG)
        words = [chr(ord("a") + number) * (10 + number) for number in range(10)]
        others = [threads.submit(ask, batcher, kind, word) for word in words]
        wait_until(lambda: batcher.num_pending == 10)
        held.released.set()
        assert first.result(LONG) == [5]
        assert [other.result(LONG) for other in others] == [[len(word)] for word in words]
    assert [len(batch) for batch in held.batches] == [1, 10]


class Steps:
    """Computes long items in steps, and asks between them whether they are wanted, as a search does."""

    def __init__(self, num_steps: int) -> None:
        self.done: list[str] = []
        """The items in the order in which they were done."""
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self._num_steps = num_steps

    def __call__(self, items: Sequence[str], unwanted: Callable[[], Collection[str]]) -> list[int]:
        if max(map(len, items)) > 10:
            self.begun.set()
            assert self.go_on.wait(LONG)
            for _ in range(self._num_steps):
                unwanted()
        self.done += items
        return [len(item) for item in items]


def test_a_long_item_gives_way_to_short_ones_that_wait(batcher: Batcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_cli.extensions.serving.batcher._SECONDS_BEFORE_GIVING_WAY", 0.0)
    steps = Steps(num_steps=5)
    kind = replace(kind_of(lambda items: [0] * len(items), max_tokens=100), compute_wanted=steps)
    with ThreadPoolExecutor(8) as threads:
        long = threads.submit(ask, batcher, kind, "l" * 80)
        assert steps.begun.wait(LONG)
        others = []
        for number, word in enumerate(["aa", "b" * 60, "cc"], 1):
            others.append(threads.submit(ask, batcher, kind, word))
            wait_until(lambda number=number: batcher.num_pending == number)
        steps.go_on.set()
        assert long.result(LONG) == [80]
        assert [other.result(LONG) for other in others] == [[2], [60], [2]]
    # What is nearly as long waits for its turn.
    assert sorted(steps.done[:2]) == ["aa", "cc"]
    assert steps.done[2:] == ["l" * 80, "b" * 60]


def test_a_short_item_that_fails_harms_no_long_one_that_gave_way(
    batcher: Batcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer_cli.extensions.serving.batcher._SECONDS_BEFORE_GIVING_WAY", 0.0)
    steps = Steps(num_steps=2)

    def failing(items: Sequence[str], unwanted: Any) -> list[int]:
        if "bad" in items:
            raise ValueError("bad")
        return steps(items, unwanted)

    kind = replace(kind_of(lambda items: [0] * len(items), max_tokens=100), compute_wanted=failing)
    with ThreadPoolExecutor(8) as threads:
        long = threads.submit(ask, batcher, kind, "l" * 80)
        assert steps.begun.wait(LONG)
        bad = threads.submit(ask, batcher, kind, "bad")
        wait_until(lambda: batcher.num_pending == 1)
        steps.go_on.set()
        assert long.result(LONG) == [80]
        with pytest.raises(ValueError, match="bad"):
            bad.result(LONG)
