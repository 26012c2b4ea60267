"""Signals: how SIGINT, SIGTERM, SIGHUP and SIGUSR1 end a command, or ask a training to save.

`__main__` imports this module before all others, so it imports as little as possible. Python calls a handler
between any two steps of the main thread, also in the middle of an import. An exception that is raised there
breaks the import, so the handlers raise none: they end the process with `os._exit`, or set a variable.

A signal that its parent ignores stays ignored: SIGHUP under `nohup`, SIGINT in a job in the background. On
Windows SIGHUP and SIGUSR1 do not exist.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module `typing` itself is not needed here
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    Handler = Callable[[int, FrameType | None], None]

# SIGTERM is last: once it has its handler, the other signals have theirs too.
ENDING = tuple(getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM") if hasattr(signal, name))
SIGHUP = getattr(signal, "SIGHUP", None)
SIGUSR1 = getattr(signal, "SIGUSR1", None)

MAX_ENDING_SECONDS = 2.0
"""After this time a process ends, even if the reader of its output or a disk does not answer."""


PASSED_ON_SECONDS = 5.0
"""Under torchrun, a further signal within this time of the first is not a second one: torchrun passes on to each process a signal that the
system has sent to it and to all processes."""


class _Ending:
    """How this process ends after a signal; `_ending` is the only object of this class."""

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.num_blocks = 0
        """Number of nested `ended_after` blocks in which the main thread is."""
        self.cleanups: dict[object, Callable[[], Any]] = {}

    def note(self, signal_number: int, frame: FrameType | None) -> None:
        """Signal handler: end the process now, or after the block that must not be interrupted."""
        if self.signal_number is not None:
            if signal_number != SIGHUP:
                os._exit(128 + signal_number)
            return
        self.signal_number = signal_number
        tell(f"tfm: ended by {signal.Signals(signal_number).name}\n")
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, lambda *_: os._exit(128 + signal_number))
            # Again and again: Python does not see one that comes just before a write that has to wait.
            signal.setitimer(signal.ITIMER_REAL, MAX_ENDING_SECONDS, MAX_ENDING_SECONDS)
        if self.num_blocks == 0:
            self.finish()

    def finish(self) -> None:
        """Write what is in the buffer of standard output, remove temporary files, and end."""
        assert self.signal_number is not None
        for work in (_flush_output, *reversed(self.cleanups.values())):
            try:
                work()
            except Exception:  # the process ends all the same
                continue
        os._exit(128 + self.signal_number)


_ending = _Ending()


def end_by_signals() -> None:
    """Install handlers: SIGINT, SIGTERM and SIGHUP end this process with their exit code; SIGUSR1 does nothing.

    While the process ends, a second signal ends it at once.
    """
    if SIGUSR1 is not None and signal.getsignal(SIGUSR1) is signal.SIG_DFL:
        signal.signal(SIGUSR1, _go_on)
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _ending.note)


class ended_after:  # used as a function, like contextlib.suppress
    """A block of the main thread that no signal interrupts, such as writing a line; the process ends after it."""

    def __enter__(self) -> None:
        _ending.num_blocks += 1

    def __exit__(self, *_: object) -> None:
        _ending.num_blocks -= 1
        if _ending.signal_number is not None and _ending.num_blocks == 0:
            _ending.finish()


class cleaned_up:  # used as a function, like contextlib.suppress
    """A block in which a signal calls a function before it ends the process, to remove a temporary file."""

    def __init__(self, cleanup: Callable[[], Any]) -> None:
        self._cleanup = cleanup

    def __enter__(self) -> None:
        _ending.cleanups[self] = self._cleanup

    def __exit__(self, *_: object) -> None:
        _ending.cleanups.pop(self, None)


class SignalRequests:
    """A block in which the first signal to end is a request to stop, and SIGUSR1 one to save; the training loop reads them between two steps.

    The second signal to end ends the process at once.
    """

    signal_number: int | None = None
    """The first signal that asked to stop."""
    wants_save = False
    """Whether SIGUSR1 has asked for a checkpoint."""
    _stop_asked_at: float | None = None  # by another signal than SIGHUP

    def __enter__(self) -> SignalRequests:
        """Install the handlers of a training one after the other; each signal has a handler at any moment.

        Python handles signals in the main thread only: in another thread nothing changes.
        """
        import threading

        self._passed_on_seconds = PASSED_ON_SECONDS if "TORCHELASTIC_RUN_ID" in os.environ else 0.0
        self._before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return self
        handlers: list[tuple[int, Handler]] = [(number, self._note_stop) for number in ENDING]
        for number, handler in handlers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, handler)
        if SIGUSR1 is not None and signal.getsignal(SIGUSR1) in (signal.SIG_DFL, _go_on):
            self._before[SIGUSR1] = signal.signal(SIGUSR1, self._note_save)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note_stop(self, signal_number: int, frame: FrameType | None) -> None:
        """The first signal is a request; the second ends the process at once, but for one that torchrun passes on.

        SIGHUP never counts as the second: when a terminal closes, it comes two or three times, from the
        shell and from the system, and service managers send it beside SIGTERM.
        """
        if signal_number != SIGHUP:
            now = time.monotonic()
            if self._stop_asked_at is None:
                self._stop_asked_at = now
            elif now - self._stop_asked_at >= self._passed_on_seconds:
                os._exit(128 + signal_number)
        if self.signal_number is None:
            self.signal_number = signal_number
            name = signal.Signals(signal_number).name
            later = f", {self._passed_on_seconds:.0f} seconds later or more," if self._passed_on_seconds else ""
            tell(f"\ntfm: {name}: finishing the step and saving; a second signal{later} ends the run at once\n")

    def _note_save(self, signal_number: int, frame: FrameType | None) -> None:
        self.wants_save = True
        tell("\ntfm: SIGUSR1: saving after this step\n")


def _flush_output() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _go_on(signal_number: int, frame: FrameType | None) -> None:
    """SIGUSR1 asks to save; while nothing is trained there is nothing to save."""


def tell(message: str) -> None:
    """Write to standard error; do nothing if it is closed or its terminal is gone.

    Of the processes that torchrun has started, rank 0 alone writes.
    """
    if os.environ.get("RANK", "0") != "0":
        return
    try:
        os.write(2, message.encode())
    except OSError:
        return
