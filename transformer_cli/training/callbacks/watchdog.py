"""A watchdog: ends a training that hangs, and shows where each thread hangs."""

import faulthandler
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from transformer_cli.errors import TryAgainError
from transformer_cli.training.callbacks import Callback

CHECKS_PER_LIMIT = 8


class Watchdog(Callback):
    """Ends the process when no step, no batch of a validation and no save has ended for too long.

    A thread looks at the clock. It can run whenever the main thread waits for a disk or a device, because
    Python's GIL is free then. Nothing is saved: a run goes on from its last checkpoint.

    Args:
        limit_seconds: longest time without a step, a batch of a validation, or a save; or None.
    """

    def __init__(self, limit_seconds: float | None) -> None:
        self.limit_seconds = limit_seconds
        self._alive_at = time.monotonic()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        if self.limit_seconds is not None:
            self._alive_at = time.monotonic()
            self._thread = threading.Thread(
                target=self._watch, args=(self.limit_seconds,), name="watchdog", daemon=True
            )
            self._thread.start()

    def on_step(self, *_: Any, **__: Any) -> None:
        """A sign of life: a step, a validation or a save has ended."""
        self._alive_at = time.monotonic()

    on_validation = on_save = on_step

    def should_stop_now(self) -> bool:
        """Note that the training is alive: this is called between the batches of a validation."""
        self._alive_at = time.monotonic()
        return False

    def on_end(self) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, limit_seconds: float) -> None:
        while not self._is_over.wait(limit_seconds / CHECKS_PER_LIMIT):
            if time.monotonic() - self._alive_at > limit_seconds:
                _end(limit_seconds)


def _end(limit_seconds: float) -> None:
    """End the process at once: the thread that hangs would never see an exception."""
    error = TryAgainError(
        f"nothing has happened for more than {limit_seconds:g} s (runtime.stuck_after_seconds); "
        "see the stacks of threads above",
        hint="the same command goes on from the last checkpoint; if it was only slow, raise the limit",
    )
    with suppress(OSError, ValueError):  # standard error may be closed
        faulthandler.dump_traceback(sys.stderr)
        os.write(2, f"tfm: {error}\n".encode())
    os._exit(error.exit_code)
