"""What is measured of training and translating alike: time with its phases, memory, matrix products, and the spread of each."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from transformer_cli.extensions.benchmark.flop import Work
from transformer_cli.process.device import Machine, free_bytes, return_freed_memory

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


class Observed:
    """An object of which some methods are replaced, by functions that measure them; everything else is its own."""

    def __init__(self, own: Any, **methods: Callable[..., Any]) -> None:
        self._own = own
        self.__dict__.update(methods)

    def __next__(self) -> Any:
        return self.__dict__["next_one"]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def mark_nothing(phase: str) -> None:
    """Instead of `Stopwatch.mark`, where phases are not measured."""


def seconds_between(start: Instant, end: Instant) -> float:
    """The seconds between two instants of `Stopwatch.now`; for events, the device must have reached both."""
    return end - start if isinstance(start, float) else start.elapsed_time(end) / 1000.0


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done all its work; a CPU has none left."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


@dataclass(frozen=True, slots=True)
class Spread:
    """A tenth of the measurements lies below `low`, a tenth above `high`."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """The spread of one or more values."""
        low, median, high = np.quantile(list(values), [0.1, 0.5, 0.9]).tolist()
        return cls(median, low, high)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of the work."""

    milliseconds: Spread
    share: float
    """Of the time of all updates (0 to 1); the shares of all phases sum up to 1."""


def phases_of(laps: Sequence[dict[str, float]], names: Sequence[str]) -> dict[str, Phase]:
    """The phases of several laps, in the given order."""
    all_seconds = sum(lap.get(name, 0.0) for lap in laps for name in names)
    found = {name: [lap.get(name, 0.0) for lap in laps] for name in names}
    return {
        name: Phase(Spread.of(1000.0 * one for one in seconds), sum(seconds) / all_seconds)
        for name, seconds in found.items()
    }


@dataclass(slots=True)
class Timed:
    """A piece of work and its time."""

    work: Work = field(default_factory=Work)
    """What was computed, without padding."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds of each phase, in their order; they sum up to `seconds`."""

    def spent(self, unit: str) -> float:
        """The time as seconds or as CPU-seconds."""
        return self.cpu_seconds if unit == "CPU-second" else self.seconds


def flop_per_second(flops: Iterable[float], timed: Iterable[Timed], device: torch.device) -> Spread:
    """On a CPU per CPU-second, so that other programs disturb less; on a GPU per second."""
    unit = "CPU-second" if device.type == "cpu" else "second"
    pairs = zip(flops, timed, strict=True)
    return Spread.of(flop / one.spent(unit) for flop, one in pairs)


PROCESS = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """Bytes; None where the system does not report them."""

    resident: int | None
    """The largest memory of the machine that the process had, libraries included."""
    usable: int | None
    """The memory that this process could have: what it has, and what is free."""
    device: int | None = None
    """On a CUDA device: the largest memory of its tensors."""
    device_usable: int | None = None

    @property
    def used_and_usable(self) -> tuple[int | None, int | None]:
        """Of the memory that decides how large a batch may be."""
        if self.device is None:
            return self.resident, self.usable
        return self.device, self.device_usable

    @property
    def used_share(self) -> float | None:
        """Share (0 to 1) of this memory."""
        used, usable = self.used_and_usable
        return used / usable if used is not None and usable else None


def start_measuring(device: torch.device) -> None:
    """Reset earlier peaks, such as that of preparing the data; only Linux can reset the peak of resident memory."""
    return_freed_memory()
    with suppress(OSError):
        (PROCESS / "clear_refs").write_text("5", encoding="ascii")
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device, *, has_graphs: bool = False) -> PeakMemory:
    """The peak since `start_measuring`.

    Args:
        device: of the model.
        has_graphs: whether CUDA graphs are replayed. Their memory was allocated when they were recorded, so all memory
            counts that PyTorch has reserved.
    """
    free = free_bytes(torch.device("cpu"))
    now = _resident("VmRSS")
    usable = None if now is None or free is None else now + free
    if device.type != "cuda":
        return PeakMemory(_largest_resident(), usable)
    own = torch.cuda.memory_allocated(device)
    of_device = (free_bytes(device) or 0) + own
    peak_of = torch.cuda.max_memory_reserved if has_graphs else torch.cuda.max_memory_allocated
    return PeakMemory(_largest_resident(), usable, peak_of(device), of_device)


def bytes_in_use(device: torch.device) -> int:
    """The memory that the process has now: of a CUDA device, else of the machine; 0 if the system does not tell."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else _resident("VmRSS") or 0


def _largest_resident() -> int | None:
    peak = _resident("VmHWM")
    if peak is not None or sys.platform == "win32":
        return peak
    import resource  # not on Windows

    in_bytes = sys.platform == "darwin"
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if in_bytes else 1024)


def _resident(name: str) -> int | None:
    with suppress(OSError):
        found = re.search(rf"{name}:\s+(\d+) kB", (PROCESS / "status").read_text(encoding="ascii"))
        return None if found is None else 1024 * int(found[1])
    return None


PEAKS_OF_DATA_SHEETS = {
    "B200": 2250e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "RTX 4090": 165e12,
    "RTX 3090": 71e12,
    "L4": 121e12,
    "V100": 125e12,
    "T4": 65e12,
}
"""A part of the name of an NVIDIA card -> FLOP a second of dense products in bfloat16 or float16, added up in float32.

Source: the data sheets and architecture papers of NVIDIA; those of H100 and H200 are of SXM cards unless the name says otherwise.
"""


def peak_of_data_sheet(name: str, precision: torch.dtype) -> float | None:
    """The FLOP a second that the data sheet of a card promises; None for another precision or a card that is not in the table."""
    if precision not in (torch.bfloat16, torch.float16) or "Laptop" in name:
        return None
    words = f" {name} ".replace("-", " ")
    return next((peak for part, peak in PEAKS_OF_DATA_SHEETS.items() if f" {part} " in words), None)


def busy_seconds(device: torch.device, work: Callable[[], None]) -> float | None:
    """The seconds that a GPU spends in kernels while it does some work; None if the device is no CUDA device.

    The work itself takes longer than usual, because PyTorch's profiler writes down each kernel.
    """
    if device.type != "cuda":
        return None
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        wait_for(device)
    return kernel_seconds(profiler.key_averages())


def kernel_seconds(events: Iterable[Any]) -> float:
    """The sum over the kernels and copies of a profile; what the CPU did is left out."""
    of_device = (one for one in events if str(one.device_type).endswith("CUDA"))
    return sum(one.self_device_time_total for one in of_device) / 1e6


# (m, k, n) of square products: on a CPU 1.5 MB of bfloat16 and 24 MB, on a GPU 6 MB and 400 MB.
SIDES = {"cpu": (512, 2048), "cuda": (1024, 8192), "mps": (1024, 4096)}
SECONDS_PER_SHAPE = 0.5
NUM_WARM_UPS, MIN_PRODUCTS = 3, 5


@dataclass(frozen=True, slots=True)
class ProductSpeed:
    """The speed of one shape of matrix product."""

    what: str
    shape: tuple[int, int, int]
    """m, k, n: (m, k) times (k, n)."""
    flop_per_second: Spread
    """On a CPU per CPU-second, so that other programs disturb less; on a GPU per second."""


def peak_of(products: Iterable[ProductSpeed]) -> ProductSpeed:
    """The fastest one."""
    return max(products, key=lambda product: product.flop_per_second.median)


def measure_products(
    machine: Machine, own_shape: tuple[int, int, int], *, seconds: float = SECONDS_PER_SHAPE
) -> list[ProductSpeed]:
    """The speeds of a product that fits into caches, a large one, and one of the model's own shape.

    Args:
        machine: the device and the precision.
        own_shape: m, k, n of the largest product of the model.
        seconds: time for each shape.
    """
    small, large = SIDES[machine.device.type]
    shapes = {
        "fits into caches": (small, small, small),
        "large": (large, large, large),
        "of this model": own_shape,
    }
    return [
        ProductSpeed(what, shape, _flop_per_second(machine, shape, seconds))
        for what, shape in shapes.items()
    ]


def _flop_per_second(machine: Machine, shape: tuple[int, int, int], seconds: float) -> Spread:
    m, k, n = shape
    device, dtype = machine.device, machine.precision
    rows = torch.randn(m, k, device=device, dtype=dtype)
    weights = torch.randn(n, k, device=device, dtype=dtype)
    on_cpu, stopwatch = device.type == "cpu", Stopwatch(device)
    at_once = 1 if on_cpu else 10  # so that a GPU does not wait for the CPU
    found: list[float] = []
    with torch.inference_mode():
        for _ in range(NUM_WARM_UPS):
            F.linear(rows, weights)
        wait_for(device)
        started_at = time.perf_counter()
        while len(found) < MIN_PRODUCTS or time.perf_counter() - started_at < seconds:
            start, cpu_started_at = stopwatch.now(), time.process_time()
            for _ in range(at_once):
                F.linear(rows, weights)
            cpu_seconds, end = time.process_time() - cpu_started_at, stopwatch.now()
            wait_for(device)
            taken = cpu_seconds if on_cpu else seconds_between(start, end)
            found.append(taken / at_once)
    return Spread.of(2 * m * k * n / one for one in found)
