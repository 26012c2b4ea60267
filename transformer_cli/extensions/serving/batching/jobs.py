"""Jobs: one job for each request that is translated, with its deadline, and a way to cancel it."""

import threading
import time
from collections.abc import Hashable
from typing import Any


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
