"""Processes, threads, and limits on open files and memory (B5-B7, B9, B10, B13)."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from ..experiments import TINY, essence, newest_checkpoint, write_tiny
from ..launcher import Launcher, Process, Tfm

pytestmark = pytest.mark.kills

TRAIN = ("train", "--config", "tiny.yaml")
MEBIBYTE = 1 << 20


def test_training_starts_no_process_and_ends_its_threads(tfm: Tfm) -> None:
    """B5, B6, B10: training has no worker process that could be killed, hang, or need shared memory."""
    write_tiny(tfm.folder)
    record = tfm.folder / "processes"
    for steps in ("5", "13"):
        options = ["--set", f"training.max_steps={steps}"]
        finished = tfm(*TRAIN, *options, faults=[("note_processes", str(record))])
        assert finished.exit_code == 0, finished.talk
    for command in (("translate", "1 2 3"), ("info",)):
        assert tfm(*command, faults=[("note_processes", str(record))]).exit_code == 0
    assert not record.exists(), record.read_text()


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_the_record_notices_a_process_and_a_thread(tfm: Tfm, kind: str) -> None:
    """The negative control."""
    write_tiny(tfm.folder)
    record = tfm.folder / "processes"
    start = ("at", "step", 3, "start", kind)
    assert tfm(*TRAIN, faults=[("note_processes", str(record)), start]).exit_code == 0
    found = record.read_text().splitlines()
    assert set(found) == {"process": {"os.fork", "a child is there"}, "thread": {"thread 'late'"}}[kind]


def tasks_of(process: Process) -> list[str]:
    """The names of the threads of a process; empty after the process has ended."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/comm")
    return [task.read_text().strip() for task in tasks]


def group_of(process: Process) -> list[int]:
    """Every process that is in the session of this one and not a zombie."""
    members = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = status.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == process.pid and state != "Z":
            members.append(int(status.parent.name))
    return members


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc")
def test_a_kill_leaves_no_thread_and_no_process_behind(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """B7: the thread that prepares batches is in the middle of its work."""
    write_tiny(tfm.folder)
    place = tfm.folder / "paused"
    process = tfm.start(*TRAIN, faults=[("at", "step", 6, "pause", str(place))])
    process.wait_until(lambda: place.exists() or not process.is_running())
    assert len(tasks_of(process)) >= 3, "the main one, the batches, the lock's heartbeat"
    assert group_of(process) == [process.pid]
    process.send(signal.SIGKILL)
    assert process.wait().exit_code == -9
    assert group_of(process) == []
    assert tasks_of(process) == []
    assert tfm(*TRAIN).exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


def test_parallel_tokenizers_do_not_hang(tfm: Tfm) -> None:
    """B9: no process is forked after a tokenizer was used, so every value of the variable works."""
    write_tiny(tfm.folder, TINY + "tokenizer: {kind: bpe, vocab_size: 290}\n")
    environment = {"TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": "2"}
    trained = tfm(*TRAIN, environment=environment)
    assert trained.exit_code == 0, trained.talk
    assert "TOKENIZERS_PARALLELISM" not in trained.talk, "no warning of the library either"
    assert len(tfm("translate", "1 2 3", "4 5", environment=environment).lines) == 2


def test_sixty_four_open_files_are_enough(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """B13."""
    write_tiny(tfm.folder)
    few = ("limit", "RLIMIT_NOFILE", 64)
    stopped = tfm(*TRAIN, faults=[few, ("at", "step", 6, "signal", "SIGTERM")])
    assert stopped.exit_code == 143, stopped.talk
    finished = tfm(*TRAIN, faults=[few])
    assert finished.exit_code == 0, finished.talk
    assert essence(tfm.folder / "runs/tiny") == uninterrupted
    assert tfm("translate", "1 2 3", faults=[few]).exit_code == 0


@pytest.mark.parametrize("num_files", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_too_few_open_files_are_told_plainly(tfm: Tfm, num_files: int) -> None:
    """B13: the next save can open no file, or only a few."""
    write_tiny(tfm.folder)
    refused = tfm(*TRAIN, faults=[("at", "step", 6, "limit_files", num_files)])
    assert "Traceback" not in refused.talk
    if num_files == 0 or refused.exit_code != 0:
        assert refused.exit_code == 74, refused.talk
        assert "Too many open files" in refused.talk
        assert refused.talk.count("\n  hint: ") == 1
    assert newest_checkpoint(tfm.folder / "runs/tiny").name >= "step-00000004"
    assert tfm(*TRAIN).exit_code == 0


WIDE = ("--set", "model.d_ff=65536", "--set", "training.batch_sentences=40")
"""An update needs ten times as much memory as the weights, and so more than the process has freed before."""


@pytest.fixture(scope="module")
def wide(launcher: Launcher, memory_folder: Path) -> dict[str, Any]:
    folder = memory_folder / "wide"
    folder.mkdir()
    write_tiny(folder)
    assert Tfm(launcher, folder)(*TRAIN, *WIDE).exit_code == 0
    return essence(folder / "runs/tiny")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("point", ["step", "validation", "save"])
def test_running_out_of_memory_gives_one_message_and_costs_no_checkpoint(
    tfm: Tfm, wide: dict[str, Any], point: str
) -> None:
    """B13: after a resume at step 4 almost no memory is left; with more memory, the same command continues."""
    write_tiny(tfm.folder)
    stop = ("at", "step", 4, "signal", "SIGTERM")
    assert tfm(*TRAIN, *WIDE, faults=[stop]).exit_code == 143
    starved = tfm(*TRAIN, *WIDE, faults=[("at", point, 1, "limit_memory", MEBIBYTE)])
    assert "resuming runs/tiny at step 4" in starved.talk
    assert "Traceback" not in starved.talk
    if point == "step" or starved.exit_code != 0:
        assert starved.exit_code == 75, starved.talk
        assert re.search(r"^tfm: .*out of memory.*\n  hint: \S", starved.talk, re.MULTILINE)
        assert newest_checkpoint(tfm.folder / "runs/tiny").name >= "step-00000004"
    was_cut = newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000008"
    again = tfm(*TRAIN, *WIDE)
    assert again.exit_code == 0, again.talk
    # Some updates may have fitted in halves, which draw other dropout masks.
    assert was_cut or essence(tfm.folder / "runs/tiny") == wide
