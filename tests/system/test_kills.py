"""After `kill -9` at any point, the same command continues and loses no acknowledged save (A1, A2, A14, A18, B4)."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..experiments import essence, newest_checkpoint, write_tiny
from ..launcher import Finished, Launcher, Process, Tfm

pytestmark = pytest.mark.kills

ROOT = Path(__file__).parents[2]
TRAIN = ("train", "--config", "tiny.yaml")
NUM_OPERATIONS = 260
"""On the disk, in the tiny experiment, at least."""


@pytest.fixture(scope="module")
def uninterrupted(launcher: Launcher, memory_folder: Path) -> dict[str, Any]:
    folder = memory_folder / "uninterrupted"
    folder.mkdir()
    write_tiny(folder)
    counted = ("each", "disk", "note", str(folder / "operations"), "one")
    assert Tfm(launcher, folder)(*TRAIN, faults=[counted]).exit_code == 0
    assert len((folder / "operations").read_text().splitlines()) >= NUM_OPERATIONS
    return essence(folder / "runs/tiny")


def leftovers(tfm: Tfm) -> list[Path]:
    return [path for path in (tfm.folder / "runs").rglob(".*") if path.name != ".lock"]


def train_until(tfm: Tfm, *fault: object) -> tuple[Finished, int]:
    """Train the tiny experiment with a fault; returns the process and the last acknowledged step."""
    write_tiny(tfm.folder)
    record = tfm.folder / "acknowledged"
    finished = tfm(*TRAIN, faults=[("note_saves", str(record)), fault])
    return finished, int(record.read_text().split()[-1]) if record.exists() else 0


def assert_goes_on(tfm: Tfm, acknowledged: int, uninterrupted: dict[str, Any]) -> None:
    """The same command again: from no earlier step, to the same end, with nothing left over."""
    again = tfm(*TRAIN)
    assert again.exit_code == 0, again.talk
    if acknowledged:
        resumed_at = again.talk.partition("resuming runs/tiny at step ")[2].partition(";")[0]
        assert int(resumed_at) >= acknowledged
    assert essence(tfm.folder / "runs/tiny") == uninterrupted
    assert leftovers(tfm) == []


POINTS = [
    ("config", 1),
    ("encoding", 1),
    ("step", 6),
    ("validation", 2),
    ("save", 2),  # all files of the second checkpoint are written, its manifest is not
    ("write", 20),
    ("rename", 12),
    ("flush_path", 16),
    ("rotation", 3),
    ("remove_file", 3),  # the first file of a checkpoint that is superfluous
]
MORE_POINTS = [("data", 1), ("report", 3), ("flush", 20), ("verification", 3), ("link", 3)]


@pytest.mark.parametrize(
    ("point", "number"),
    [*POINTS, *(pytest.param(*point, marks=pytest.mark.slow) for point in MORE_POINTS)],
)
def test_a_kill_at_any_point_costs_no_acknowledged_save(
    tfm: Tfm, uninterrupted: dict[str, Any], point: str, number: int
) -> None:
    killed, acknowledged = train_until(tfm, "at", point, number, "signal", "SIGKILL")
    assert killed.exit_code == -9
    assert_goes_on(tfm, acknowledged, uninterrupted)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, NUM_OPERATIONS, 3))
def test_a_kill_before_any_operation_on_the_disk_costs_no_acknowledged_save(
    tfm: Tfm, uninterrupted: dict[str, Any], number: int
) -> None:
    killed, acknowledged = train_until(tfm, "at", "disk", number, "signal", "SIGKILL")
    assert killed.exit_code == -9
    assert_goes_on(tfm, acknowledged, uninterrupted)


def paused_in_a_save(tfm: Tfm, *faults: tuple[object, ...]) -> tuple[Process, Path]:
    """A training that waits, until the file is removed, while it writes the checkpoint of step 6."""
    place = tfm.folder / "paused"
    pause = ("at", "save", 2, "pause", str(place))
    process = tfm.start("train", "--config", write_tiny(tfm.folder), faults=[*faults, pause])
    process.wait_until(lambda: place.exists() or not process.is_running())
    assert process.is_running(), process.talk.read_text()
    return process, place


SIGTERM_AT_6 = ("at", "step", 6, "signal", "SIGTERM")


def test_a_kill_after_a_sigterm_whose_save_takes_too_long_keeps_the_previous_checkpoint(
    tfm: Tfm, uninterrupted: dict[str, Any]
) -> None:
    """B4: the disk is so slow that the kill comes in the middle of the save."""
    process, place = paused_in_a_save(tfm, SIGTERM_AT_6)
    process.send(signal.SIGKILL)
    assert process.wait().exit_code == -9
    place.unlink()
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000004"
    assert [path.name.split("-")[1] for path in leftovers(tfm)] == ["step"], "half a checkpoint"
    assert tfm("translate", "1 2 3").talk.startswith("runs/tiny/checkpoints/step-00000004, ")
    assert_goes_on(tfm, 4, uninterrupted)


@pytest.mark.slow
def test_a_slow_save_after_a_sigterm_is_waited_for(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """B4, the opposite case: the time between the signals is long enough for the save."""
    process, place = paused_in_a_save(tfm, SIGTERM_AT_6)
    place.unlink()
    finished = process.wait()
    assert finished.exit_code == 143
    assert "stopped and saved at step 6" in finished.talk
    assert_goes_on(tfm, 6, uninterrupted)


def test_what_a_living_process_is_writing_is_not_swept(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """A18: other processes that start in the meantime are refused, or only read."""
    process, place = paused_in_a_save(tfm)
    half = leftovers(tfm)
    assert [path.name.startswith(".tmp-step-") for path in half] == [True]
    files = sorted(half[0].iterdir())
    assert len(files) >= 5
    for command, code in ((TRAIN, 75), ((*TRAIN, "--from-scratch"), 75), (("translate", "1"), 0)):
        assert tfm(*command).exit_code == code
        assert sorted(half[0].iterdir()) == files
    place.unlink()
    assert process.wait().exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted
    assert leftovers(tfm) == []


@pytest.mark.slow
def test_random_kills_flipped_bits_and_full_disks_cost_no_more_than_promised() -> None:
    """A2, A4, A10: the command that prints the figures, with fewer repeats."""
    counts = ["--kills", "12", "--bits", "40", "--fills", "2", "--seed", "7"]
    finished = subprocess.run(
        [sys.executable, "tests/reliability.py", *counts],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "12 of 12 kills" in finished.stdout
    assert "40 of 40 flipped bits" in finished.stdout
