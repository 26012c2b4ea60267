"""Disks that are full, slow, read-only or somewhere else, under a whole `tfm train` (A4-A8, A15, A19)."""

import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..disks import mounted
from ..experiments import TINY, essence, metrics_of, newest_checkpoint, write_tiny
from ..launcher import Finished, Tfm

pytestmark = pytest.mark.kills

TRAIN = ("train", "--config", "tiny.yaml")
FULL = "(No space left on device|File too large)"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A separate file system of 2 MB; the test is skipped if mounting is not permitted."""
    with (
        tempfile.TemporaryDirectory(prefix="tfm-disk-") as place,
        mounted(Path(place), "size=2m") as is_mounted,
    ):
        if not is_mounted:
            pytest.skip("mounting a file system needs root")
        yield Path(place)


@contextmanager
def bound(disk: Path, run: Path, names: tuple[str, ...]) -> Iterator[None]:
    """Let files and folders of the run lie on another disk; links in a run folder are refused."""
    with ExitStack() as mounts:
        for name in names:
            subprocess.run(["mount", "--bind", str(disk / name), str(run / name)], check=True)
            mounts.callback(subprocess.run, ["umount", str(run / name)], check=True)
        yield


def put_runs_on(disk: Path, tfm: Tfm) -> None:
    write_tiny(tfm.folder)
    (disk / "runs").mkdir()
    (tfm.folder / "runs").symlink_to(disk / "runs")


def assert_is_one_message(finished: Finished, exit_code: int) -> None:
    assert finished.exit_code == exit_code, finished.talk
    assert finished.out == b""
    assert "Traceback" not in finished.talk
    assert finished.talk.count("\ntfm: ") + finished.talk.startswith("tfm: ") == 1
    assert finished.talk.count("\n  hint: ") == 1


def test_a_disk_that_fills_up_costs_the_steps_since_the_last_save_and_no_more(
    tfm: Tfm, disk: Path, uninterrupted: dict[str, Any]
) -> None:
    """A4, on a file system that is really full."""
    put_runs_on(disk, tfm)
    full = tfm(*TRAIN, faults=[("at", "step", 6, "fill_folder", str(disk))])
    assert_is_one_message(full, 75)
    assert re.search(r"runs/tiny/checkpoints\S*: .* [\d,]+ bytes needed, \d+ bytes free", full.talk)
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000004"
    assert not list((tfm.folder / "runs").rglob(".tmp-*"))
    still_full = tfm(*TRAIN)
    assert_is_one_message(still_full, 75)
    (disk / "filler").unlink()
    again = tfm(*TRAIN)
    assert again.exit_code == 0
    assert "resuming runs/tiny at step 4" in again.talk
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


def test_too_little_space_is_told_before_the_first_step(tfm: Tfm) -> None:
    """A5."""
    write_tiny(tfm.folder)
    refused = tfm(*TRAIN, faults=[("pretend_free", 50_000)])
    assert_is_one_message(refused, 75)
    assert re.search(r"not enough space: [\d,]+ bytes needed, 50,000 bytes free", refused.talk)
    assert "step 3/13" not in refused.talk
    assert not list((tfm.folder / "runs/tiny/checkpoints").glob("*"))
    assert tfm(*TRAIN).exit_code == 0


@pytest.mark.parametrize("point", ["config", pytest.param("step", marks=pytest.mark.slow)])
def test_a_disk_that_is_full_for_the_logs_alone_costs_one_warning_each(
    tfm: Tfm, disk: Path, uninterrupted: dict[str, Any], point: str
) -> None:
    """A6: train.log, metrics.jsonl and TensorBoard's folder lie on a full disk, checkpoints do not."""
    write_tiny(tfm.folder, TINY.replace("log_every: 3", "log_every: 1"))
    run = tfm.folder / "runs/tiny"
    run.mkdir(parents=True)
    note = '{"kind": "note", "step": 0}\n'
    for name in ("train.log", "metrics.jsonl"):
        (disk / name).write_text(note * (4000 // len(note)))  # the rest of a page of memory may still be free
        (run / name).touch()
    for place in (disk, run):
        (place / "tensorboard").mkdir()
    with bound(disk, run, ("train.log", "metrics.jsonl", "tensorboard")):
        finished = tfm(*TRAIN, faults=[("at", point, 1, "fill_folder", str(disk))])
        recorded = [line["step"] for line in metrics_of(run) if line["kind"] == "train"]
        found = essence(run)
    assert finished.exit_code == 0, finished.talk
    assert finished.talk.count("metrics cannot be written any more") == 1
    if point == "config":
        assert finished.talk.count("train.log cannot be written any more") == 1
    assert "Traceback" not in finished.talk
    assert "hint: " not in finished.talk, "there is nothing that must be done"
    assert_same_weights(found, uninterrupted)
    assert recorded == [*range(1, len(recorded) + 1)], "whole lines, up to the full disk"
    assert len(recorded) < 13
    assert max(file.stat().st_size for file in disk.glob("tensorboard/*/*")) <= 4096


def test_logs_that_have_reached_a_limit_on_file_sizes_cost_one_warning_each(
    tfm: Tfm, uninterrupted: dict[str, Any]
) -> None:
    """A6 without root: long files cannot grow because of a limit, new files can."""
    write_tiny(tfm.folder)
    run = tfm.folder / "runs/tiny"
    run.mkdir(parents=True)
    most = 200_000
    note = '{"kind": "note", "step": 0}\n'
    for name in ("train.log", "metrics.jsonl"):
        (run / name).write_text(note * (most // len(note)))
    finished = tfm(*TRAIN, faults=[("limit", "RLIMIT_FSIZE", most)])
    assert finished.exit_code == 0, finished.talk
    assert finished.talk.count("metrics cannot be written any more") == 1
    assert finished.talk.count("train.log cannot be written any more") == 1
    assert_same_weights(essence(run), uninterrupted)


def assert_same_weights(found: dict[str, Any], expected: dict[str, Any]) -> None:
    names = ("model.safetensors", "optimizer.safetensors")
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}


def test_a_step_that_could_not_be_taken_back_is_not_recorded_twice(tfm: Tfm) -> None:
    """After a kill, on a disk that is full for a moment, metrics.jsonl has fewer lines, but no line twice."""
    write_tiny(tfm.folder, TINY.replace("log_every: 3", "log_every: 1"))
    killed = tfm(*TRAIN, faults=[("at", "step", 8, "signal", "SIGKILL")])
    assert killed.exit_code == -9
    # The third file that is replaced by a start; config.yaml and environment.json come before.
    finished = tfm(*TRAIN, faults=[("at", "rename", 3, "fail", "ENOSPC")])
    assert finished.exit_code == 0, finished.talk
    assert finished.talk.count("metrics cannot be written any more") == 1
    steps = [line["step"] for line in metrics_of(tfm.folder / "runs/tiny") if line["kind"] == "train"]
    assert steps == [1, 2, 3, 4, 5, 6, 7]


def test_a_disk_that_is_read_only_is_told_before_training(tfm: Tfm, disk: Path) -> None:
    """A7."""
    put_runs_on(disk, tfm)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    refused = tfm(*TRAIN)
    assert_is_one_message(refused, 73)
    assert "runs/tiny: cannot be created: Read-only file system" in refused.talk


@pytest.mark.parametrize(("operation", "name"), [("flush", "EIO"), ("rename", "EACCES")])
def test_a_save_that_fails_is_never_called_saved(
    tfm: Tfm, uninterrupted: dict[str, Any], operation: str, name: str
) -> None:
    """A8, and A15 as far as it applies: saving is synchronous, so its failure ends the run at once."""
    write_tiny(tfm.folder)
    record = tfm.folder / "acknowledged"
    at_save = ("at", "save", 2, "fail_from_now_on", operation, name)
    failed = tfm(*TRAIN, faults=[("note_saves", str(record)), at_save])
    assert_is_one_message(failed, 74)
    assert os.strerror(getattr(errno, name)) in failed.talk
    assert record.read_text() == "4\n"
    again = tfm(*TRAIN)
    assert "resuming runs/tiny at step 4" in again.talk
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


@pytest.mark.slow
def test_saves_that_take_longer_than_the_steps_between_them_do_not_overlap(tfm: Tfm) -> None:
    """A15: training waits for the disk; a save at every step gives the same run as fast."""
    write_tiny(tfm.folder, TINY.replace("save_every: 4", "save_every: 1"))
    ends = []
    for name, faults in (("fast", []), ("slow", [("each", "flush", "sleep", 0.01)])):
        record = tfm.folder / name
        finished = tfm(*TRAIN, faults=[("note_saves", str(record)), *faults])
        assert finished.exit_code == 0
        # After a validation, a checkpoint with its result replaces the one of the same step.
        saved = list(dict.fromkeys(record.read_text().split()))
        assert saved == [str(step) for step in range(1, 14)]
        ends.append(essence(tfm.folder / "runs/tiny"))
        shutil.rmtree(tfm.folder / "runs")
    assert ends[0] == ends[1]


@pytest.mark.parametrize("mask", [pytest.param(0o022, marks=pytest.mark.slow), 0o077])
def test_every_file_of_a_run_has_the_mode_that_the_umask_leaves(tfm: Tfm, mask: int) -> None:
    """A19."""
    write_tiny(tfm.folder)
    assert tfm(*TRAIN, "--set", "training.max_steps=1", faults=[("umask", mask)]).exit_code == 0
    modes: dict[bool, set[int]] = {True: set(), False: set()}
    for path in (tfm.folder / "runs").rglob("*"):
        if not path.is_symlink():
            modes[path.is_dir()].add(path.stat().st_mode & 0o777)
    assert modes == {True: {0o777 & ~mask}, False: {0o666 & ~mask}}


@pytest.mark.slow
def test_a_run_may_lie_on_another_disk(tfm: Tfm, disk: Path, uninterrupted: dict[str, Any]) -> None:
    """A19: files are renamed only within the disk on which they were written."""
    assert disk.stat().st_dev != tfm.folder.stat().st_dev
    put_runs_on(disk, tfm)
    stopped = tfm(*TRAIN, faults=[("at", "step", 6, "signal", "SIGTERM")])
    assert stopped.exit_code == 143, stopped.talk
    assert tfm(*TRAIN).exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted
    (tfm.folder / "in.txt").write_text("1 2 3\n")
    for output in (tfm.folder / "here.txt", disk / "there.txt"):
        finished = tfm("translate", "--input", "in.txt", "--output", str(output))
        assert finished.exit_code == 0, finished.talk
        assert output.read_bytes().count(b"\n") == 1
    assert tfm(*TRAIN, "--from-scratch").exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


def test_each_command_says_which_checkpoints_are_damaged_and_how(tfm: Tfm) -> None:
    """A12: a run whose checkpoints are all damaged is not reported as a missing run."""
    write_tiny(tfm.folder)
    assert tfm(*TRAIN, "--set", "training.max_steps=1").exit_code == 0
    (newest_checkpoint(tfm.folder / "runs/tiny") / "MANIFEST.json").unlink()
    for command in (("translate", "1"), ("info",), ("validate",), ("next", "1"), TRAIN):
        refused = tfm(*command)
        assert_is_one_message(refused, 74)
        assert ": no checkpoint is valid:\n    runs/tiny/checkpoints/step-00000001/" in refused.talk
        assert "MANIFEST.json: missing" in refused.talk
    for command in (("translate", "--run", "nope", "1"), ("info", "--run", "nope")):
        refused = tfm(*command)
        assert_is_one_message(refused, 66)
        assert refused.talk.endswith("\n  hint: existing runs: tiny\n")
