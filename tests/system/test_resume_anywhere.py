"""The slow part of group C: a stop at every step, and runs with one and two threads."""

import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..experiments import essence, metrics_of, write_tiny
from ..launcher import Tfm

pytestmark = pytest.mark.slow
EXIT_CODES = {"SIGTERM": 143, "SIGINT": 130, "SIGKILL": -9}


@pytest.mark.parametrize("step", range(1, 14))
def test_a_run_that_stops_at_any_step_ends_alike(tfm: Tfm, uninterrupted: dict[str, Any], step: int) -> None:
    """C2: a signal at the last step of all is no interruption."""
    config = write_tiny(tfm.folder)
    stopped = tfm("train", "--config", config, faults=[("at", "step", step, "signal", "SIGTERM")])
    assert stopped.exit_code in (0, 143), stopped.talk
    assert tfm("train", "--config", config).exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(sorted(EXIT_CODES))), min_size=2, max_size=5))
def test_any_chain_of_stops_and_kills_ends_alike(
    tfm: Tfm, uninterrupted: dict[str, Any], stops: list[tuple[int, str]]
) -> None:
    """C2: each step is counted from where its process began."""
    shutil.rmtree(tfm.folder / "runs", ignore_errors=True)
    config = write_tiny(tfm.folder)
    for step, name in stops:
        fault = ("at", "step", step, "signal", name)
        stopped = tfm("train", "--config", config, faults=[fault])
        assert stopped.exit_code in (0, EXIT_CODES[name]), stopped.talk
    assert tfm("train", "--config", config).exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


def test_one_thread_and_two_agree_to_a_tolerance(tfm: Tfm) -> None:
    """C12: the order of sums differs, so results may differ by the rounding errors of thirteen steps."""
    config = write_tiny(tfm.folder)
    losses = {}
    for name, threads in (("one", 1), ("two", 2), ("two-again", 2)):
        options = ["--set", f"name={name}", "--set", f"runtime.threads={threads}"]
        assert tfm("train", "--config", config, *options).exit_code == 0
        losses[name] = [line["loss"] for line in metrics_of(tfm.folder / "runs" / name) if "loss" in line]
    assert losses["two"] == pytest.approx(losses["one"], rel=1e-4)
    assert losses["two"] == losses["two-again"], "with equal threads bit for bit"
