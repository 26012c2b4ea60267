"""A stopwatch that divides each lap, such as an update, into named phases."""

import time
from itertools import pairwise
from typing import Any

import torch

Instant = Any
"""Seconds, or an event of a CUDA stream."""


class Stopwatch:
    """The seconds of each phase of each lap. The phases of a lap sum up to its length.

    On a CUDA device an instant is an event in the stream of the device. So the phases are those of the
    device, and the CPU does not wait for them. On an Apple GPU the CPU waits for the device at each mark.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._laps: list[list[tuple[str, Instant]]] = []
        self._marks: list[tuple[str, Instant]] = [("", self.now())]

    def now(self) -> Instant:
        """This instant."""
        if self._device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event
        wait_for(self._device)
        return time.perf_counter()

    def mark(self, phase: str) -> None:
        """The time since the last mark belongs to this phase."""
        self._marks.append((phase, self.now()))

    def end_lap(self, phase: str) -> None:
        """As `mark`; then the next lap begins."""
        self.mark(phase)
        self._laps.append(self._marks)
        self._marks = [self._marks[-1]]

    def laps(self) -> list[dict[str, float]]:
        """The seconds of each phase, for each lap that has ended."""
        wait_for(self._device)
        return [self._seconds_of_phases(marks) for marks in self._laps]

    def _seconds_of_phases(self, marks: list[tuple[str, Instant]]) -> dict[str, float]:
        found: dict[str, float] = {}
        for (_, start), (phase, end) in pairwise(marks):
            found[phase] = found.get(phase, 0.0) + seconds_between(start, end)
        return found


def seconds_between(start: Instant, end: Instant) -> float:
    """The seconds between two instants of `Stopwatch.now`; for events, the device must have reached both."""
    return end - start if isinstance(start, float) else start.elapsed_time(end) / 1000.0


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done all its work; a CPU has none left."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
