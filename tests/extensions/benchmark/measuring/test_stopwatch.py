import time

import pytest
import torch

from transformer_cli.extensions.benchmark.measuring.phases import phases_of
from transformer_cli.extensions.benchmark.measuring.spread import Spread
from transformer_cli.extensions.benchmark.measuring.stopwatch import Stopwatch

CPU = torch.device("cpu")


def test_the_phases_of_a_lap_fill_it_and_a_phase_may_come_twice() -> None:
    stopwatch = Stopwatch(CPU)
    started_at = time.perf_counter()
    for phase in ("first", "second", "first"):
        time.sleep(0.002)
        stopwatch.mark(phase)
    stopwatch.end_lap("rest")
    whole = time.perf_counter() - started_at
    [lap] = stopwatch.laps()
    assert sum(lap.values()) == pytest.approx(whole, abs=0.002)
    assert lap["first"] >= 0.004
    assert lap["second"] >= 0.002


def test_a_lap_begins_where_the_last_one_ended() -> None:
    stopwatch = Stopwatch(CPU)
    stopwatch.end_lap("work")
    time.sleep(0.003)
    stopwatch.end_lap("work")
    assert [list(lap) for lap in stopwatch.laps()] == [["work"], ["work"]]
    assert stopwatch.laps()[1]["work"] >= 0.003


def test_the_shares_of_all_phases_sum_up_to_one() -> None:
    laps = [{"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 2.0}]
    found = phases_of(laps, ("a", "b", "c"))
    assert sum(phase.share for phase in found.values()) == pytest.approx(1.0)
    assert found["a"].share == pytest.approx(3 / 8)
    assert found["c"].share == 0.0
    assert found["a"].milliseconds.median == pytest.approx(1500.0)


def test_a_tenth_lies_below_and_a_tenth_above() -> None:
    assert Spread.of(range(101)) == pytest.approx((50.0, 10.0, 90.0))
    assert Spread.of([3.0]) == (3.0, 3.0, 3.0)
