"""The effects of other processes: signals, locks, closed pipes (group B, A16)."""

import signal
from pathlib import Path
from typing import Any

import pytest

from ..experiments import essence, newest_checkpoint, write_tiny
from ..launcher import Process, Tfm

pytestmark = pytest.mark.kills


def end_of(tfm: Tfm) -> dict[str, Any]:
    finished = tfm("train", "--config", "tiny.yaml")
    assert finished.exit_code == 0, finished.talk
    return essence(tfm.folder / "runs/tiny")


def leftovers(tfm: Tfm) -> list[Path]:
    return [path for path in (tfm.folder / "runs").rglob(".t*-*") if path.name != ".lock"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize(("point", "step"), [("step", 6), ("validation", 4), ("save", 4)])
def test_a_signal_lets_the_step_finish_and_saves(
    tfm: Tfm, uninterrupted: dict[str, Any], point: str, step: int, name: str
) -> None:
    """B1, B3."""
    number = 6 if point == "step" else 1
    fault = ("at", point, number, "signal", name)
    finished = tfm("train", "--config", write_tiny(tfm.folder), faults=[fault])
    assert finished.exit_code == 128 + signal.Signals[name]
    assert finished.out == b""
    assert "Traceback" not in finished.talk
    assert f"{name}: finishing the step and saving" in finished.talk
    assert f"tfm: stopped and saved at step {step}\n  hint: the same command" in finished.talk
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == f"step-{step:08d}"
    assert end_of(tfm) == uninterrupted


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.parametrize("point", ["config", "data"])
def test_a_signal_before_training_ends_at_once(
    tfm: Tfm, uninterrupted: dict[str, Any], point: str, name: str, code: int
) -> None:
    """B1: there is nothing to save yet."""
    fault = ("at", point, 1, "signal", name)
    finished = tfm("train", "--config", write_tiny(tfm.folder), faults=[fault])
    assert finished.exit_code == code
    assert finished.out == b""
    assert finished.talk.startswith(f"tfm: ended by {name}")
    assert "Traceback" not in finished.talk
    assert leftovers(tfm) == []
    assert end_of(tfm) == uninterrupted


def test_a_signal_while_data_is_written_leaves_nothing_half(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    fault = ("at", "encoding", 1, "signal", "SIGTERM")
    assert tfm("train", "--config", write_tiny(tfm.folder), faults=[fault]).exit_code == 143
    assert leftovers(tfm) == []
    assert not (tfm.folder / "runs/tiny/data").exists()
    fault = ("at", "encoding", 1, "signal", "SIGKILL")
    assert tfm("train", "--config", "tiny.yaml", faults=[fault]).exit_code == -9
    assert end_of(tfm) == uninterrupted
    assert leftovers(tfm) == []


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.parametrize("point", ["step", "save"])
def test_a_second_signal_ends_at_once(
    tfm: Tfm, uninterrupted: dict[str, Any], point: str, name: str, code: int
) -> None:
    """B3: without saving, and without harm."""
    fault = ("at", point, 1, "signal", name, 2)
    finished = tfm("train", "--config", write_tiny(tfm.folder), faults=[fault])
    assert finished.exit_code == code
    assert "Traceback" not in finished.talk
    assert not list((tfm.folder / "runs/tiny/checkpoints").glob("step-*"))
    assert end_of(tfm) == uninterrupted
    assert leftovers(tfm) == [], "swept by the next start"


def test_a_signal_to_the_whole_group_saves_too(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """B2: `tfm` has no process besides the main one. The signal comes ten times in one run."""
    for step in range(1, 11):
        fault = ("at", "step", 1, "signal_group", "SIGTERM")
        finished = tfm("train", "--config", write_tiny(tfm.folder), faults=[fault])
        assert finished.exit_code == 143
        assert f"stopped and saved at step {step}\n" in finished.talk
    assert end_of(tfm) == uninterrupted


def test_a_validation_that_is_due_does_not_delay_the_stop(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """The resumed run does the validation, also after the last step."""
    for step, number in ((4, 4), (13, 9)):
        fault = ("at", "step", number, "signal", "SIGTERM")
        finished = tfm("train", "--config", write_tiny(tfm.folder), faults=[fault])
        assert finished.exit_code == 143
        assert f"stopped and saved at step {step}" in finished.talk
        assert f"step {step}  validation" not in finished.talk
    assert end_of(tfm) == uninterrupted


def test_a_signal_after_the_last_validation_is_no_interruption(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    fault = ("at", "save", 8, "signal", "SIGTERM")  # each of the four validations is a new best
    finished = tfm("train", "--config", write_tiny(tfm.folder), faults=[fault])
    assert finished.exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


def paused(tfm: Tfm, point: str, number: int) -> tuple[Process, Path]:
    """A training that waits at a point until the file is removed."""
    place = tfm.folder / "paused"
    fault = ("at", point, number, "pause", str(place))
    process = tfm.start("train", "--config", write_tiny(tfm.folder), faults=[fault])
    process.wait_until(lambda: place.exists() or not process.is_running())
    assert process.is_running()
    return process, place


def test_a_second_process_on_the_same_run_names_the_first(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """A16."""
    first, place = paused(tfm, "step", 6)
    second = tfm("train", "--config", "tiny.yaml")
    assert second.exit_code == 75
    assert f"runs/tiny: in use by process {first.pid} on" in second.talk
    assert "or stop it; or give another name: --set name=..." in second.talk
    place.unlink()
    assert first.wait().exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


def test_a_killed_process_holds_no_lock(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """A16."""
    first, place = paused(tfm, "step", 6)
    first.send(signal.SIGKILL)
    assert first.wait().exit_code == -9
    place.unlink()
    assert end_of(tfm) == uninterrupted


def test_a_run_may_be_read_while_it_trains(tfm: Tfm) -> None:
    first, place = paused(tfm, "step", 6)
    for command in (("translate", "1 2 3"), ("info",), ("validate", "--json")):
        finished = tfm(*command)
        assert finished.exit_code == 0, finished.talk
    place.unlink()
    assert first.wait().exit_code == 0


def test_a_signal_ends_a_translation_with_one_message_and_a_way_to_go_on(tfm_with_run: Tfm) -> None:
    output = tfm_with_run.folder / "out.txt"
    for name, code in (("SIGTERM", 143), ("SIGINT", 130)):
        fault = ("at", "translation", 1, "signal", name)
        finished = tfm_with_run("translate", "1 2", "--output", "out.txt", faults=[fault])
        assert finished.exit_code == code
        assert f"\ntfm: ended by {name}\ntfm: nothing was written to out.txt; " in finished.talk
        assert finished.talk.count("\n") == 3, finished.talk
        assert "Traceback" not in finished.talk
        assert not output.exists()
    assert [path.name for path in tfm_with_run.folder.iterdir() if path.name.startswith(".tmp")] == []
