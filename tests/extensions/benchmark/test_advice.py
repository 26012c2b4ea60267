"""A change is advised only if it was faster when it was tried."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from transformer_cli.extensions.benchmark.advice import (
    Suggestion,
    Trial,
    conclusion,
    tried,
    worth_trying,
)
from transformer_cli.process.errors import TryAgainError

from .small_benchmarks import machine_facts

SUGGESTION = Suggestion("2 threads are slower than one thread", "set runtime.threads=1", ("runtime.threads=1",), 1.5)


class Model:
    """Something that is measured; its speeds are given one by one."""

    def __init__(self, *speeds: float, device: str = "cpu", num_threads: int = 1) -> None:
        self.machine = SimpleNamespace(device=torch.device(device))
        self.num_threads = num_threads
        self.speeds = iter(speeds)
        self.units: list[str] = []
        self.other = self

    @contextmanager
    def changed(self, overrides: tuple[str, ...]) -> "Iterator[Model]":
        assert overrides == SUGGESTION.overrides
        yield self.other


def trial_of(before: Model, after: Model, *, num_turns: int) -> Trial:
    calls.clear()

    def speed(one: Model, unit: str) -> float:
        calls.append("before" if one is before else "after")
        one.units.append(unit)
        if (found := next(one.speeds, None)) is None:
            raise TryAgainError("out of memory")
        return found

    before.other = after
    return tried(SUGGESTION, before, speed, num_turns=num_turns)


calls: list[str] = []


def test_a_trial_takes_turns_after_a_warm_up() -> None:
    found = trial_of(Model(2, 2, 2), Model(3, 3, 3, num_threads=2), num_turns=2)
    assert calls == ["before", "after"] * 3
    assert (found.ratio, found.low, found.high, found.unit) == (1.5, 1.5, 1.5, "second")
    assert found.has_helped


def test_a_hopeless_trial_ends_after_one_turn() -> None:
    found = trial_of(Model(9, 10), Model(9, 1), num_turns=5)
    assert found.ratio == pytest.approx(0.1)
    assert not found.has_helped


def test_a_trial_that_does_not_fit_into_memory_has_failed() -> None:
    found = trial_of(Model(1, 1), Model(), num_turns=1)
    assert (found.ratio, found.failure) == (None, "out of memory")
    assert "runtime.threads=1 (failed)" in conclusion("X limits", [found])


@pytest.mark.parametrize(
    ("device", "num_threads", "unit"),
    [("cpu", 1, "CPU-second"), ("cpu", 2, "second"), ("cuda", 1, "second")],
)
def test_a_trial_with_as_many_threads_counts_cpu_seconds(device: str, num_threads: int, unit: str) -> None:
    before, after = Model(1, 1, device=device), Model(1, 1, num_threads=num_threads)
    assert trial_of(before, after, num_turns=1).unit == unit
    assert {*before.units, *after.units} == {unit}


@pytest.mark.parametrize(("ratio", "low", "helped"), [(1.3, 1.1, True), (1.02, 1.01, False), (1.3, 0.9, False)])
def test_only_a_gain_above_the_noise_counts(ratio: float, low: float, helped: bool) -> None:
    trial = Trial(SUGGESTION, ratio, low, 1.4)
    assert trial.has_helped is helped
    assert ("set runtime.threads=1. A trial" in conclusion("X limits", [trial])) is helped
    assert ("Tried, and not faster" in conclusion("X limits", [trial])) is not helped


def test_the_best_of_several_trials_is_advised_with_its_gain() -> None:
    other = Suggestion("it is float32", "set runtime.precision=bfloat16", ("x",), 2.0)
    trials = [Trial(SUGGESTION, 1.2, 1.1, 1.3), Trial(other, 1.9, 1.8, 2.0, "CPU-second")]
    assert conclusion("Backward takes 60%", trials) == (
        "Backward takes 60%. It is float32: set runtime.precision=bfloat16. A trial of this gave 1.90 times as many "
        "target tokens per CPU-second (1.80 to 2.00)."
    )


def test_the_largest_expected_gain_is_tried_first_and_none_below_the_noise() -> None:
    found = [Suggestion("", "", (), gain) for gain in (1.1, 1.01, 2.0)]
    assert [one.expected for one in worth_trying(found)] == [2.0, 1.1]


@pytest.mark.parametrize(
    ("num_threads", "num_cores", "advice"),
    [
        (2, 2, ("2 threads are slower than one thread", "set runtime.threads=1")),
        (1, 4, ("one thread is slower than 4 threads", "set runtime.threads=4")),
        (1, 1, None),
    ],
)
def test_the_other_number_of_threads_is_tried(num_threads: int, num_cores: int, advice: tuple[str, str] | None) -> None:
    found = [*machine_facts(num_threads=num_threads, num_cores=num_cores).suggestions()]
    assert [(one.because, one.what) for one in found] == ([] if advice is None else [advice])


def test_threads_matter_on_a_cpu_only() -> None:
    assert not [*machine_facts(device="cuda", num_threads=8, num_cores=8).suggestions()]


def test_bfloat16_is_tried_where_it_is_fast_and_not_in_use() -> None:
    [found] = machine_facts(could_use_bfloat16=True).suggestions()
    assert found.overrides == ("runtime.precision=bfloat16",)
    assert not [*machine_facts().suggestions()]
