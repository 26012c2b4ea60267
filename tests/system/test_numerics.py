"""Numbers that are not finite never reach the weights, and too many of them end the run (D1-D3)."""

from pathlib import Path

from ..experiments import TINY, essence, metrics_of, newest_checkpoint, state_of, write_tiny
from ..launcher import Tfm


def test_a_step_that_is_not_finite_is_skipped_and_counted(tfm: Tfm, finished_tiny: Path) -> None:
    """D1: the step counts, and its batch is used up."""
    config = write_tiny(tfm.folder)
    assert tfm("train", "--config", config, faults=[("poison", 5, 6)]).exit_code == 0
    reports = [line for line in metrics_of(tfm.folder / "runs/tiny") if line["kind"] == "train"]
    assert [line["num_skipped"] for line in reports] == [0, 2, 2, 2, 2]
    assert reports[1]["gradient_norm"] is None, "that of step 6"
    assert all(line["loss"] < 10 for line in reports)
    assert state_of(tfm.folder / "runs/tiny")["progress"]["position"] == [2, 6]
    assert state_of(finished_tiny / "runs/tiny")["progress"]["position"] == [2, 6], "as without such steps"


def test_a_resume_after_skipped_steps_is_exact(tfm: Tfm) -> None:
    """D3."""
    config = write_tiny(tfm.folder)
    poison = ("poison", 2, 3)
    assert tfm("train", "--config", config, faults=[poison]).exit_code == 0
    whole = essence(tfm.folder / "runs/tiny")
    (tfm.folder / "runs").rename(tfm.folder / "before")
    stop = ("at", "step", 5, "signal", "SIGTERM")
    assert tfm("train", "--config", config, faults=[poison, stop]).exit_code == 143
    assert tfm("train", "--config", config).exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == whole


def test_too_many_in_a_row_stop_the_run_with_the_last_checkpoint_intact(tfm: Tfm) -> None:
    """D2."""
    config = write_tiny(tfm.folder, TINY.replace("max_steps: 13", "max_steps: 13\n  max_skipped_in_a_row: 3"))
    stopped = tfm("train", "--config", config, faults=[("poison", 6, 99)])
    assert stopped.exit_code == 69
    assert stopped.out == b""
    assert "tfm: step 8: the last 3 updates had a gradient that is not finite" in stopped.talk
    assert "(epoch 1, batches up to 6)" in stopped.talk
    assert "hint: lower training.learning_rate" in stopped.talk
    assert "Traceback" not in stopped.talk
    checkpoint = newest_checkpoint(tfm.folder / "runs/tiny")
    assert checkpoint.name == "step-00000004"
    assert tfm("translate", "1 2 3").exit_code == 0
    assert tfm("train", "--config", config).exit_code == 0, "the cause was in the machine, and is gone"


def test_single_bad_steps_now_and_then_do_not_stop_it(tfm: Tfm) -> None:
    config = write_tiny(tfm.folder, TINY.replace("max_steps: 13", "max_steps: 13\n  max_skipped_in_a_row: 3"))
    faults = [("poison", step, step + 1) for step in (2, 5, 8, 11)]
    assert tfm("train", "--config", config, faults=faults).exit_code == 0
    assert state_of(tfm.folder / "runs/tiny")["meter"]["num_skipped"] == 8


def test_a_run_that_diverges_is_not_called_finished(tfm: Tfm) -> None:
    config = write_tiny(tfm.folder, TINY.replace("5e-3", "100.0"))
    ended = tfm("train", "--config", config)
    assert ended.exit_code == 69
    assert "tfm: diverged: after 13 steps, the" in ended.talk
    assert "hint: lower training.learning_rate, or raise training.warmup_steps" in ended.talk
    assert "finished" not in ended.talk
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000013"
    again = tfm("train", "--config", config)
    assert again.exit_code == 0
    assert "runs/tiny is finished: 13 steps" in again.talk
