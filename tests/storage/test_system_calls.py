"""Flushing, opening and locking where the system does it in another way."""

import errno
import fcntl
import importlib.util
import json
import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transformer_cli.process.errors import TryAgainError
from transformer_cli.storage import RunLock, filesystem, replace_file
from transformer_cli.storage import writing as lock_module


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that flush, as on macOS."""
    calls: list[str] = []
    fsync = os.fsync

    def full(file: int, command: int) -> None:
        assert command == 51
        calls.append("F_FULLFSYNC")

    monkeypatch.setattr(filesystem, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=full))
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), fsync(file))[1])
    return calls


def test_on_macos_a_flush_reaches_the_disk_itself(tmp_path: Path, flushed: list[str]) -> None:
    replace_file(tmp_path / "a", b"content")
    assert flushed == ["F_FULLFSYNC", "F_FULLFSYNC"], "the file, then the folder"


def test_a_file_system_without_full_flushes_is_flushed_as_far_as_it_can(
    tmp_path: Path, flushed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, command: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(filesystem.fcntl, "fcntl", refuse)
    replace_file(tmp_path / "a", b"content")
    assert flushed == ["fsync", "fsync"]
    assert (tmp_path / "a").read_bytes() == b"content"


def test_elsewhere_a_flush_is_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    for module in (fcntl, None):
        monkeypatch.setattr(filesystem, "fcntl", module)
        filesystem.flush(1)
    assert calls == [1, 1]


@pytest.mark.parametrize("flags", ["NEW", "OWN", "READ"])
def test_a_link_is_refused_also_where_the_system_has_no_flag_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to("precious")
    monkeypatch.delattr(os, "O_NOFOLLOW")
    found = importlib.util.find_spec(filesystem.__name__)
    assert found is not None
    assert found.loader is not None
    elsewhere = importlib.util.module_from_spec(found)
    found.loader.exec_module(elsewhere)
    with pytest.raises(OSError, match="symbolic link") as refusal:
        elsewhere.open_file(tmp_path / "link", getattr(elsewhere, flags) | os.O_TRUNC)
    assert refusal.value.errno == errno.ELOOP
    assert (tmp_path / "precious").read_text() == "precious"


def test_the_holder_is_named_where_the_first_byte_of_a_locked_file_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows, a lock of a byte also keeps other processes from reading it."""
    read_at = filesystem.read_at

    def read(file: int, num_bytes: int, offset: int) -> bytes:
        if offset == 0:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_at(file, num_bytes, offset)

    with RunLock(tmp_path):
        monkeypatch.setattr(filesystem, "read_at", read)
        monkeypatch.setattr(lock_module, "try_lock", lambda file: False)
        with pytest.raises(TryAgainError, match=f"in use by process {os.getpid()} on "):
            RunLock(tmp_path).__enter__()


def test_a_heartbeat_needs_no_time_through_a_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "supports_fd", set())
    with RunLock(tmp_path, heartbeat_seconds=0.001) as lock:
        os.utime(lock.path, (1, 1))
        ends_at = time.monotonic() + 60
        while lock.path.stat().st_mtime == 1:
            assert time.monotonic() < ends_at
            time.sleep(0.001)


def test_the_record_of_the_lock_is_json_of_pid_and_host(tmp_path: Path) -> None:
    """Older versions read it too."""
    with RunLock(tmp_path):
        record: dict[str, Any] = json.loads((tmp_path / ".lock").read_text())
    assert record == {"pid": os.getpid(), "host": socket.gethostname()}


def test_a_file_system_without_a_size_has_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(total=0, used=0, free=0)
    monkeypatch.setattr(filesystem.shutil, "disk_usage", lambda path: usage)
    assert filesystem.REAL.free_bytes(tmp_path) > 2**60
