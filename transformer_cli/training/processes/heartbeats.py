"""Heartbeats: how the processes of a training notice that one of them is gone, and which one."""

import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from transformer_cli.process.errors import TryAgainError
from transformer_cli.process.torchrun import Launch

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

BEAT_SECONDS = 1.0
SILENT_SECONDS = 5.0
"""After an error of the network, a rank that was silent for this time is named as the one that is lost."""
LOST_SECONDS = 40.0
"""If a rank was silent for this time, the training ends, even without an error of the network."""


class Heartbeats:
    """A thread that increments a counter in a shared store, and watches the counters of the other ranks.

    A process that was killed closes its connections, so that the others get an error at once; but the error does not
    name it. A process that was suspended, or a machine that lost its network, gives no error at all.

    Args:
        store: a connection that no other thread uses.
        launch: the place of this process.
    """

    def __init__(self, store: "Store", launch: Launch) -> None:
        self._store, self._launch = store, launch
        self._keys = [f"alive/{rank}" for rank in range(launch.size)]
        self._last_counts = [-1] * launch.size
        self._changed_at = [time.monotonic()] * launch.size
        self._beat_at = time.monotonic()
        self._is_over = threading.Event()
        self._has_store = True
        self._thread = threading.Thread(target=self._beat, name="heartbeats", daemon=True)

    def __enter__(self) -> Self:
        process = f"process {os.getpid()} on {socket.gethostname()}"
        self._store.set(f"name/{self._launch.rank}", process)
        self._store.add(self._keys[self._launch.rank], 1)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(
            timeout=BEAT_SECONDS
        )  # after an error it may wait for a store that is gone

    def lost_ranks(self) -> str:
        """The ranks that have been silent for a while, for a message; waits a few seconds for the first of them."""
        stop_at = time.monotonic() + 2 * SILENT_SECONDS
        while time.monotonic() < stop_at and self._has_store:
            if silent := self._silent_for(SILENT_SECONDS):
                return self._described(silent)
            time.sleep(BEAT_SECONDS / 4)
        return "another process" if self._has_store else self._launch.store_holder

    def _silent_for(self, seconds: float) -> list[int]:
        now = time.monotonic()
        silent = (now - changed_at > seconds for changed_at in self._changed_at)
        return [rank for rank, is_silent in enumerate(silent) if is_silent]

    def _described(self, ranks: Sequence[int]) -> str:
        names = []
        for rank in ranks:
            names.append(f"rank {rank}")
            with suppress(RuntimeError):
                if self._store.check([f"name/{rank}"]):
                    names[-1] += f" ({self._store.get(f'name/{rank}').decode()})"
        return ", ".join(names)

    def _beat(self) -> None:
        while not self._is_over.wait(BEAT_SECONDS):
            try:
                self._store.add(self._keys[self._launch.rank], 1)
                counts = [int(count) for count in self._store.multi_get(self._keys)]
            except RuntimeError:
                self._has_store = False
                # The main thread gets an error of its own where it needs the others; it may also have ended.
                if not self._is_over.wait(SILENT_SECONDS):
                    _end(self._launch.store_holder)
                return
            self._note(counts)
            if lost := self._silent_for(LOST_SECONDS):
                _end(self._described(lost))

    def _note(self, counts: Sequence[int]) -> None:
        now = time.monotonic()
        # If this process was suspended, it does not know whether the others were; so their silence starts anew.
        was_suspended = now - self._beat_at > SILENT_SECONDS
        self._beat_at = now
        for rank, count in enumerate(counts):
            if was_suspended or count != self._last_counts[rank]:
                self._last_counts[rank], self._changed_at[rank] = count, now


def _end(lost: str) -> None:
    """End the process at once: its main thread may wait for a process that is gone, and no exception reaches it."""
    error = TryAgainError(
        f"{lost} does not answer any more, so all processes end",
        hint="the same command goes on from the last checkpoint",
    )
    with suppress(OSError):  # standard error may be closed
        os.write(2, f"tfm: {error}\n".encode())
    os._exit(error.exit_code)
