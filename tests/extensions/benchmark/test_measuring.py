import time
from typing import NamedTuple

import pytest
import torch

from transformer_cli.extensions.benchmark import measuring
from transformer_cli.extensions.benchmark.measuring import (
    Stopwatch,
    Timed,
    kernel_seconds,
    measure_products,
    phases_of,
    spread,
    used_and_usable,
)
from transformer_cli.process.device import Machine

from .small_benchmarks import exactly, memory_of

CPU = torch.device("cpu")


def test_the_phases_of_a_lap_fill_it_and_a_phase_may_come_twice() -> None:
    before = time.perf_counter()
    stopwatch = Stopwatch(CPU)
    begun = time.perf_counter()
    for phase in ("first", "second", "first"):
        time.sleep(0.002)
        stopwatch.mark(phase)
    least = time.perf_counter() - begun
    stopwatch.end_lap("rest")
    most, timed = time.perf_counter() - before, Timed()
    stopwatch.give_times([timed], ("first", "never"))
    lap = timed.phases
    assert list(lap) == ["first", "never", "second", "rest"]
    assert timed.seconds == sum(lap.values())
    assert least <= sum(lap.values()) <= most
    assert lap["first"] >= 0.004
    assert lap["second"] >= 0.002


def test_a_lap_begins_where_the_last_one_ended() -> None:
    stopwatch = Stopwatch(CPU)
    stopwatch.end_lap("work")
    time.sleep(0.003)
    stopwatch.end_lap("work")
    first, second = Timed(), Timed()
    stopwatch.give_times([first, second], ())
    assert [list(one.phases) for one in (first, second)] == [["work"], ["work"]]
    assert second.phases["work"] >= 0.003
    assert second.cpu_seconds < second.seconds, "the processor slept"


def test_the_shares_of_all_phases_sum_up_to_one() -> None:
    laps = [{"a": 1.0, "b": 3.0, "c": 0.0}, {"a": 2.0, "b": 2.0, "c": 0.0}]
    found = phases_of(laps)
    assert sum(phase["share"] for phase in found.values()) == pytest.approx(1.0)
    assert found["a"]["share"] == pytest.approx(3 / 8)
    assert found["c"]["share"] == 0.0
    assert found["a"]["milliseconds"]["median"] == pytest.approx(1500.0)


def test_a_tenth_lies_below_and_a_tenth_above() -> None:
    assert spread(range(101)) == pytest.approx({"median": 50.0, "low": 10.0, "high": 90.0})
    assert spread([3.0]) == exactly(3.0)


CPU = torch.device("cpu")


def test_the_memory_of_the_device_decides_how_large_a_batch_may_be() -> None:
    assert used_and_usable(memory_of(10, 100)) == (10, 100)
    assert used_and_usable(memory_of(10, 100, 50, 60)) == (50, 60)
    assert used_and_usable(memory_of(None, None)) == (None, None)


def test_three_shapes_are_measured_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SIDES", {"cpu": (32, 64)})
    machine = Machine(torch.device("cpu"), torch.float32)
    found, peak = measure_products(machine, (8, 16, 24), seconds=0.0)
    assert peak in found
    assert [(one["what"], one["shape"]) for one in found] == [
        ("fits into caches", (32, 32, 32)),
        ("large", (64, 64, 64)),
        ("of this model", (8, 16, 24)),
    ]
    speeds = [one["flop_per_second"] for one in found]
    assert all(0.0 < one["low"] <= one["high"] for one in speeds)


class Event(NamedTuple):
    """An event of a profile."""

    device_type: str
    self_device_time_total: float  # microseconds


def test_the_time_in_kernels_is_that_of_the_device_alone() -> None:
    events = [Event("DeviceType.CUDA", 3e6), Event("DeviceType.CPU", 9e6), Event("DeviceType.CUDA", 1e6)]
    assert kernel_seconds(events) == 4.0
