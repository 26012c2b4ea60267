"""With the watchdog, a training that hangs ends itself and can continue from its last checkpoint (B8)."""

from typing import Any

import pytest

from ..experiments import essence, write_tiny
from ..launcher import Tfm

pytestmark = pytest.mark.kills

TRAIN = ("train", "--config", "tiny.yaml", "--set", "runtime.stuck_after_seconds=1")


@pytest.mark.parametrize(("point", "number", "saved"), [("step", 6, 4), ("save", 2, 4)])
def test_a_training_that_stands_still_says_where_and_can_be_gone_on_with(
    tfm: Tfm, uninterrupted: dict[str, Any], point: str, number: int, saved: int
) -> None:
    write_tiny(tfm.folder)
    gate = tfm.folder / "gate"
    stuck = tfm(*TRAIN, faults=[("at", point, number, "pause", str(gate))])
    assert gate.exists()
    gate.unlink()
    assert stuck.exit_code == 75
    assert "nothing has happened for more than 1 s (runtime.stuck_after_seconds)" in stuck.talk
    assert "_pause" in stuck.talk  # the function in which the thread hung
    assert stuck.talk.count("hint:") == 1
    assert [path.name for path in (tfm.folder / "runs/tiny/checkpoints").glob("step-*")] == [f"step-{saved:08d}"]
    resumed = tfm(*TRAIN)
    assert resumed.exit_code == 0
    found = essence(tfm.folder / "runs/tiny")
    names = {"config.yaml"}  # which has the limit
    assert {k: v for k, v in found.items() if k not in names} == {
        k: v for k, v in uninterrupted.items() if k not in names
    }


def test_a_training_that_goes_on_is_left_alone(tfm: Tfm) -> None:
    write_tiny(tfm.folder)
    slowly = [("each", "step", "sleep", 0.2)]
    assert tfm(*TRAIN, faults=slowly).exit_code == 0


def test_without_a_limit_a_training_may_take_its_time(tfm: Tfm) -> None:
    write_tiny(tfm.folder)
    finished = tfm(*TRAIN[:3], faults=[("at", "step", 6, "sleep", 1.5)])
    assert finished.exit_code == 0
