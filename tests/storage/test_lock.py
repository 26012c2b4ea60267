"""One writer of a run at a time (A16)."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transformer_cli.process.errors import CannotCreateError, TryAgainError
from transformer_cli.storage import RunLock
from transformer_cli.storage import writing as lock_module

from ..disks import mounted

HOLDER = """
import sys, time
from pathlib import Path
from transformer_cli.storage import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
BEAT = 0.05


def start_holder(run: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(run)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


@pytest.mark.process
def test_a_second_process_is_told_the_first_ones_pid_and_may_start_once_that_was_killed(
    tmp_path: Path,
) -> None:
    run = tmp_path / "runs" / "a"
    with start_holder(run) as holder:
        try:
            started_at = time.perf_counter()
            with (
                pytest.raises(TryAgainError, match=rf"runs/a: in use by process {holder.pid} on "),
                RunLock(run),
            ):
                pytest.fail("two holders")
            assert time.perf_counter() - started_at < 5
        finally:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
    started_at = time.perf_counter()
    with RunLock(run):
        assert time.perf_counter() - started_at < 5


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(3):
        with RunLock(tmp_path):
            record = json.loads((tmp_path / ".lock").read_text())
            assert record["pid"] == os.getpid()
        assert (tmp_path / ".lock").read_text() == ""


def test_two_locks_of_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(TryAgainError), RunLock(tmp_path):
        pytest.fail("two holders")


def test_a_process_that_locks_the_file_without_filelock_is_a_holder_too(tmp_path: Path) -> None:
    """As earlier versions of tfm did."""
    with (tmp_path / ".lock").open("w") as file:
        file.write('{"pid": 7, "host": "here"}\n')
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(TryAgainError, match="in use by process 7 on 'here'"), RunLock(tmp_path):
            pytest.fail("two holders")


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    (tmp_path / ".lock").symlink_to("other")
    with pytest.raises(CannotCreateError, match="symbolic links"), RunLock(tmp_path):
        pytest.fail("held")
    assert (tmp_path / "other").read_text() == "precious"


def test_two_runs_do_not_exclude_each_other(tmp_path: Path) -> None:
    with RunLock(tmp_path / "a"), RunLock(tmp_path / "b"):
        pass


def test_the_lock_is_released_by_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"), RunLock(tmp_path):
        raise ValueError("x")
    with RunLock(tmp_path):
        pass


def test_a_holder_on_another_machine_is_noticed_by_its_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system whose locks lock nothing."""
    monkeypatch.setattr(lock_module, "try_lock", lambda file: True)
    monkeypatch.setattr(lock_module.socket, "gethostname", lambda: "elsewhere")
    with RunLock(tmp_path, heartbeat_seconds=BEAT):
        monkeypatch.setattr(lock_module.socket, "gethostname", lambda: "here")
        with pytest.raises(TryAgainError, match=f"process {os.getpid()} on 'elsewhere'"):
            RunLock(tmp_path, heartbeat_seconds=40 * BEAT).__enter__()


@pytest.mark.parametrize("answer", [True, None], ids=["locks that lock nothing", "no locks at all"])
def test_a_dead_holder_on_another_machine_is_waited_for_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bool | None
) -> None:
    monkeypatch.setattr(lock_module, "try_lock", lambda file: answer)
    (tmp_path / ".lock").write_text('{"pid": 1, "host": "elsewhere"}\n')
    started_at = time.perf_counter()
    with RunLock(tmp_path, heartbeat_seconds=BEAT):
        assert 2 * BEAT < time.perf_counter() - started_at < 30


@pytest.mark.parametrize("record", ["", "{", "[]", "null", "\x00\xff" * 1000, '{"pid": {}, "host": 3}'])
def test_rubbish_in_the_lock_file_does_no_harm(tmp_path: Path, record: str) -> None:
    (tmp_path / ".lock").write_text(record)
    with RunLock(tmp_path, heartbeat_seconds=BEAT):
        pass


def test_a_place_that_cannot_be_written_to_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with (
        pytest.raises(CannotCreateError, match="runs is not a folder"),
        RunLock(tmp_path / "runs" / "a"),
    ):
        pytest.fail("held")
    (tmp_path / "a" / ".lock").mkdir(parents=True)
    with (
        pytest.raises(CannotCreateError, match="cannot be created: Is a directory"),
        RunLock(tmp_path / "a"),
    ):
        pytest.fail("held")


@pytest.mark.process
def test_a_read_only_disk_cannot_be_locked(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place, "ro,size=64k") as is_mounted:
        if not is_mounted:
            pytest.skip("mounting a file system needs root")
        with (
            pytest.raises(CannotCreateError, match="Read-only file system"),
            RunLock(place / "run"),
        ):
            pytest.fail("held")
