"""What is measured of training and translating alike: time with its phases, memory, FLOP, and the speed of matrix products.

All figures are plain numbers and dictionaries, as `tfm benchmark --json` prints them.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.benchmark import Timer

from transformer_cli.acceleration.flop import FlopOf, Work
from transformer_cli.process.device import Machine, wait_for

logger = logging.getLogger(__name__)

Figures = dict[str, Any]
Laps = Sequence[Mapping[str, float]]  # the seconds of each phase of updates or batches


@dataclass(frozen=True, slots=True)
class Pacing:
    """How long is measured."""

    # Of training, which is measured twice: for the speed, then for the phases.
    num_updates: int | None = None  # instead of seconds
    warm_up_seconds: float = 3.0
    speed_seconds: float = 10.0
    phases_seconds: float = 5.0
    turn_seconds: float = 1.5  # in a trial: how long each of the two configs trains per turn
    # Of both:
    product_seconds: float = 0.5  # for each shape of matrix product
    num_turns: int = 3
    num_trials: int = 2
    # Of translating:
    round_seconds: float = 1.0  # so many lines that greedy search takes about this time for them
    num_rounds: int = 4


class Stopwatch:
    """The seconds of each phase of each lap, and its CPU-seconds. Without `phases`, a lap is one phase and `mark` does nothing.

    On a CUDA device an instant is an event in its stream, so the phases are those of the device, and the CPU does not wait for
    them. On an Apple GPU the CPU waits at each mark.
    """

    def __init__(self, device: torch.device, *, phases: bool = True) -> None:
        self._device, self._has_phases = device, phases
        self._laps, self._cpu_seconds = [[("", self._now())]], [time.process_time()]

    def _now(self) -> Any:
        if self._device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event
        wait_for(self._device)
        return time.perf_counter()

    def mark(self, phase: str) -> None:
        """The time since the last mark belongs to this phase."""
        if self._has_phases:
            self._laps[-1].append((phase, self._now()))

    def around(self, work: Callable[..., Any], before: str, phase: str) -> Callable[..., Any]:
        """The same work, which gives the time before it to one phase and its own to another."""

        def call(*inputs: Any, **options: Any) -> Any:
            self.mark(before)
            result = work(*inputs, **options)
            self.mark(phase)
            return result

        return call

    def end_lap(self, phase: str) -> None:
        """As `mark`; then the next lap begins."""
        self._laps[-1].append((phase, self._now()))
        self._laps.append(self._laps[-1][-1:])
        self._cpu_seconds.append(time.process_time())

    def give_times(self, timed: "Sequence[Timed]", phases: Iterable[str]) -> None:
        """Give each piece of work the times of its lap; phases without time are 0."""
        wait_for(self._device)
        for one, marks, (before, after) in zip(timed, self._laps[:-1], pairwise(self._cpu_seconds), strict=True):
            one.phases, one.cpu_seconds = dict.fromkeys(phases, 0.0), after - before
            for (_, start), (phase, end) in pairwise(marks):
                taken = end - start if isinstance(start, float) else start.elapsed_time(end) / 1000.0
                one.phases[phase] = one.phases.get(phase, 0.0) + taken
            one.seconds = sum(one.phases.values())

    def give_time(self, timed: "Timed", phases: Iterable[str], last: str) -> None:
        """End the only lap, when the device has done its work, and give its times to a piece of work."""
        wait_for(self._device)
        self.end_lap(last)
        self.give_times([timed], phases)


class Observed:
    """An object of which some methods are replaced, by functions that measure them; everything else is its own."""

    def __init__(self, own: Any, **methods: Callable[..., Any]) -> None:
        self._own = own
        self.__dict__.update(methods)

    def __next__(self) -> Any:
        return self.__dict__["next_one"]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


@dataclass(slots=True)
class Timed:
    """A piece of work and its time: an update, or a round in which all lines are translated."""

    work: Work = field(default_factory=lambda: np.zeros(5, np.int64))
    """Without padding. The target tokens of translating are here the rows of all decoder steps, several per sentence in a beam."""
    target_tokens: int = 0  # of translating: of the best hypotheses, [EOS] included
    num_tokens: int = 0  # of the sources; of training: of both sides
    num_cells: int = 0  # the same with padding
    num_batches: int = 0
    num_halvings: int = 0  # of batches that did not fit into memory
    num_steps: int = 0  # of the decoder
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)  # seconds, which sum up to `seconds`

    def spent(self, unit: str) -> float:
        """The time as seconds or as CPU-seconds."""
        return self.cpu_seconds if unit == "CPU-second" else self.seconds


UNITS = "second", "CPU-second"


def unit_of_speed(device: str) -> str:
    """On a CPU, other programs disturb CPU-seconds less; a GPU works while the CPU waits."""
    return "CPU-second" if device == "cpu" else "second"


def key_of_speed(side: str, unit: str) -> str:
    """The key of a figure in the JSON: tokens of a side (source, target) in a second, or in a CPU-second."""
    return f"{side}_tokens_per_{unit.lower().replace('-', '_')}"


def speed_of(timed: Sequence[Timed], unit: str) -> float:
    """Target tokens per second, or per CPU-second, of several pieces of work together."""
    return sum(one.target_tokens for one in timed) / sum(one.spent(unit) for one in timed)


def spread(values: Iterable[float]) -> dict[str, float]:
    """The median; a tenth of the values lies below `low`, a tenth above `high`."""
    median, low, high = np.quantile(list(values), [0.5, 0.1, 0.9]).tolist()
    return {"median": median, "low": low, "high": high}


def rates(timed: Sequence[Timed], side: str = "target") -> Figures:
    """How many tokens of a side (source, target) in a second, and in a CPU-second."""
    name = "target_tokens" if side == "target" else "num_tokens"
    return {key_of_speed(side, unit): spread(getattr(one, name) / one.spent(unit) for one in timed) for unit in UNITS}


def phases_of(laps: Laps) -> dict[str, Figures]:
    """The spread of each phase, in milliseconds, and its share (0 to 1) of the time of all."""
    seconds = {name: [lap[name] for lap in laps] for name in laps[0]}
    in_all = sum(map(sum, seconds.values()))
    return {
        name: {"milliseconds": spread(1000.0 * one for one in some), "share": sum(some) / in_all}
        for name, some in seconds.items()
    }


def longest_of(phases: Mapping[str, Figures]) -> str:
    """The name of the longest phase."""
    return max(phases, key=lambda name: phases[name]["share"])


def figures_of(what: str, timed: Sequence[Timed], laps: Laps, flop_of: FlopOf, peak: Figures, unit: str) -> Figures:
    """The figures of updates, or of translated batches, which `what` names. A spread of a speed is over the pieces of `timed`."""
    flops = [flop_of(one.work) for one in timed]
    speed = spread(flop / one.spent(unit) for flop, one in zip(flops, timed, strict=True))
    return {
        **rates(timed),
        "padding_share": 1.0 - sum(one.num_tokens for one in timed) / sum(one.num_cells for one in timed),
        f"{what}_milliseconds": spread(1000.0 * sum(lap.values()) for lap in laps),
        "phases": phases_of(laps),
        "flop_per_target_token": sum(flops) / max(sum(one.target_tokens for one in timed), 1),
        "flop_per_second": speed,
        "share_of_peak": speed["median"] / peak["flop_per_second"]["median"],
    }


def used_and_usable(memory: dict[str, int | None]) -> tuple[int | None, int | None]:
    """Of the memory that decides how large a batch may be: that of the device, if it has its own."""
    names = ("resident", "usable") if memory["device"] is None else ("device", "device_usable")
    return memory[names[0]], memory[names[1]]


def kernel_seconds(events: Iterable[Any]) -> float:
    """The sum over the kernels and copies of a profile; what the CPU did is left out."""
    return sum(one.self_device_time_total for one in events if str(one.device_type).endswith("CUDA")) / 1e6


# (m, k, n) of square products: on a CPU 1.5 MB of bfloat16 and 24 MB, on a GPU 6 MB and 400 MB.
SIDES = {"cpu": (512, 2048), "cuda": (1024, 8192), "mps": (1024, 4096)}


def measure_products(machine: Machine, own_shape: Sequence[int], *, seconds: float) -> tuple[list[Figures], Figures]:
    """The speeds of a product that fits into caches, a large one, and the largest of the model; and the fastest of them."""
    logger.info("measuring the speed of matrix products")
    small, large = SIDES[machine.device.type]
    shapes = {"fits into caches": 3 * (small,), "large": 3 * (large,), "of this model": own_shape}

    def now() -> float:
        wait_for(machine.device)
        return time.process_time() if machine.device.type == "cpu" else time.perf_counter()

    found = list[Figures]()
    for what, (m, k, n) in shapes.items():
        rows, weights = (torch.randn(size, k, device=machine.device, dtype=machine.precision) for size in (m, n))
        given = {"linear": torch.inference_mode()(F.linear), "rows": rows, "weights": weights}
        timer = Timer("linear(rows, weights)", timer=now, globals=given, num_threads=torch.get_num_threads())
        times = timer.blocked_autorange(min_run_time=seconds).times
        speed = spread(2 * m * k * n / one for one in times)
        found.append({"what": what, "shape": (m, k, n), "flop_per_second": speed})
    return found, max(found, key=lambda one: one["flop_per_second"]["median"])
