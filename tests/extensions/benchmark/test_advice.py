"""A change is advised only if it was faster when it was tried."""

from collections.abc import Callable

import pytest

from transformer_cli.extensions.benchmark.advice import (
    Suggestion,
    Trial,
    conclusion,
    other_precision,
    other_threads,
    tried,
    worth_trying,
)
from transformer_cli.process.errors import TryAgainError

from .small_benchmarks import machine

SUGGESTION = Suggestion("2 threads are slower than one thread", "set runtime.threads=1", ("runtime.threads=1",), 1.5)  # fmt: skip


def speeds(*values: float) -> Callable[[], float]:
    remaining = iter(values)
    return lambda: next(remaining)


def test_a_trial_takes_turns_after_a_warm_up() -> None:
    calls: list[str] = []

    def note(name: str, speed: float) -> float:
        calls.append(name)
        return speed

    found = tried(
        SUGGESTION, lambda: note("before", 2.0), lambda: note("after", 3.0), num_turns=2, unit="second"
    )  # fmt: skip
    assert calls == ["before", "after"] * 3
    assert (found.ratio, found.low, found.high, found.unit) == (1.5, 1.5, 1.5, "second")
    assert found.has_helped


def test_a_hopeless_trial_ends_after_one_turn() -> None:
    found = tried(SUGGESTION, speeds(9, 10), speeds(9, 1), num_turns=5, unit="second")
    assert found.ratio == pytest.approx(0.1)
    assert not found.has_helped


def test_a_trial_that_does_not_fit_into_memory_has_failed() -> None:
    def fails() -> float:
        raise TryAgainError("out of memory")

    found = tried(SUGGESTION, speeds(1, 1), fails, num_turns=1, unit="second")
    assert (found.ratio, found.failure) == (None, "out of memory")
    assert "runtime.threads=1 (failed)" in conclusion("X limits", [found])


@pytest.mark.parametrize(
    ("ratio", "low", "helped"), [(1.3, 1.1, True), (1.02, 1.01, False), (1.3, 0.9, False)]
)
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
    assert [one.expected for one in worth_trying([*found, None])] == [2.0, 1.1]


@pytest.mark.parametrize(
    ("num_threads", "num_cores", "advice"),
    [
        (2, 2, ("2 threads are slower than one thread", "set runtime.threads=1")),
        (1, 4, ("one thread is slower than 4 threads", "set runtime.threads=4")),
        (1, 1, None),
    ],
)
def test_the_other_number_of_threads_is_tried(
    num_threads: int, num_cores: int, advice: tuple[str, str] | None
) -> None:
    found = other_threads(machine(num_threads=num_threads, num_cores=num_cores))
    assert (None if found is None else (found.because, found.what)) == advice


def test_threads_matter_on_a_cpu_only() -> None:
    assert other_threads(machine(device="cuda", num_threads=8, num_cores=8)) is None


def test_bfloat16_is_tried_where_it_is_fast_and_not_in_use() -> None:
    found = other_precision(machine(could_use_bfloat16=True))
    assert found is not None
    assert found.overrides == ("runtime.precision=bfloat16",)
    assert other_precision(machine()) is None


def test_a_trial_with_as_many_threads_counts_cpu_seconds() -> None:
    assert machine().unit(changes_threads=False) == "CPU-second"
    assert machine().unit(changes_threads=True) == "second"
    assert machine(device="cuda").unit(changes_threads=False) == "second"
