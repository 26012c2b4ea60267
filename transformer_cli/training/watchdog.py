"""Ends a training that stands still, and shows where it stood."""

import faulthandler
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Self

from transformer_cli.errors import TryAgainError

CHECKS_PER_LIMIT = 8


class Watchdog:
    """While open, ends the process when nobody has said `alive` for too long.

    A thread looks at the clock, so that it needs the interpreter, which whatever waits for a disk or
    a device gives back. Nothing is saved then: the last checkpoint is what there is to go on from.

    Args:
        limit_seconds: between two signs of life; `None`: never.
    """

    def __init__(self, limit_seconds: float | None) -> None:
        self.limit_seconds = limit_seconds
        self._alive_at = time.monotonic()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def alive(self) -> None:
        """A step, a validation or a save has begun or ended."""
        self._alive_at = time.monotonic()

    def __enter__(self) -> Self:
        if self.limit_seconds is not None:
            self.alive()
            self._thread = threading.Thread(
                target=self._watch, args=(self.limit_seconds,), name="watchdog", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, limit_seconds: float) -> None:
        while not self._is_over.wait(limit_seconds / CHECKS_PER_LIMIT):
            if time.monotonic() - self._alive_at > limit_seconds:
                _end(limit_seconds)


def _end(limit_seconds: float) -> None:
    """Not by an exception: the thread that stands still would never see it."""
    error = TryAgainError(
        f"nothing has happened for more than {limit_seconds:g} s (runtime.stuck_after_seconds); "
        "above is where each thread stood",
        hint="the same command goes on from the last checkpoint; if it was only slow, raise the limit",
    )
    with suppress(OSError, ValueError):  # where nobody listens
        faulthandler.dump_traceback(sys.stderr)
        os.write(2, f"tfm: {error}\n".encode())
    os._exit(error.exit_code)
