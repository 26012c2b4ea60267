"""Replacements for the real file system: they fail, kill the process, or record operations."""

import errno
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.storage import REAL, FileSystem

WRITING = (
    "make_folder",
    "create_file",
    "open_to_append",
    "write",
    "flush",
    "flush_path",
    "rename",
    "link",
    "remove_file",
    "remove_folder",
)


class WatchedFileSystem(FileSystem):
    """Calls `before(operation, number)` before each operation that changes the disk; both count from 1."""

    def __init__(self, before: Callable[[str, int], None]) -> None:
        self.before = before
        self.counts: dict[str, int] = {}

    def announce(self, operation: str) -> None:
        self.counts[operation] = self.counts.get(operation, 0) + 1
        self.counts["any"] = self.counts.get("any", 0) + 1
        self.before(operation, self.counts[operation])


def _announced(operation: str) -> Callable[..., Any]:
    def method(self: WatchedFileSystem, *arguments: Any) -> Any:
        self.announce(operation)
        return getattr(REAL, operation)(*arguments)

    return method


for _operation in WRITING:
    setattr(WatchedFileSystem, _operation, _announced(_operation))


class FailingFileSystem(WatchedFileSystem):
    """The `number`-th call of an operation ("any" counts all) fails, and with `lasting` all later ones."""

    def __init__(self, operation: str, number: int, code: int, *, lasting: bool = False) -> None:
        super().__init__(self._fail)
        self.operation, self.number, self.code, self.lasting = operation, number, code, lasting
        self.has_failed = False

    def _fail(self, operation: str, number: int) -> None:
        if self.operation not in ("any", operation):
            return
        number = self.counts[self.operation]
        # Removing works on a full disk.
        is_removal = self.code == errno.ENOSPC and operation.startswith("remove")
        if number == self.number or (self.lasting and number > self.number and not is_removal):
            self.has_failed = True
            raise OSError(self.code, os.strerror(self.code))

    def write(self, file: int, data: memoryview) -> int:
        try:
            self.announce("write")
        except OSError:
            os.write(file, data[: len(data) // 2])  # a full disk takes what still fits
            raise
        return os.write(file, data)


def killing_file_system(operation: str, number: int) -> WatchedFileSystem:
    """The process dies, as in a power failure, before the `number`-th call of an operation ("any" counts all)."""

    def kill(_: str, __: int) -> None:
        if file_system.counts.get(operation) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    file_system = WatchedFileSystem(kill)
    return file_system


class Operation(NamedTuple):
    """One recorded call; paths are relative to the recorder's root."""

    kind: str
    path: str
    other: str = ""
    data: bytes = b""


class RecordingFileSystem(FileSystem):
    """Performs every operation and records it in a list."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.operations: list[Operation] = []
        self._paths: dict[int, str] = {}

    def _record(self, kind: str, path: Path, other: str = "", data: bytes = b"") -> None:
        self.operations.append(Operation(kind, str(path.relative_to(self.root)), other, data))

    def make_folder(self, path: Path) -> None:
        super().make_folder(path)
        self._record("make_folder", path)

    def create_file(self, path: Path) -> int:
        file = super().create_file(path)
        self._paths[file] = str(path.relative_to(self.root))
        self._record("create_file", path)
        return file

    def write(self, file: int, data: memoryview) -> int:
        count = super().write(file, data)
        self.operations.append(Operation("write", self._paths[file], data=bytes(data[:count])))
        return count

    def flush(self, file: int) -> None:
        super().flush(file)
        self.operations.append(Operation("flush", self._paths[file]))

    def flush_path(self, path: Path) -> None:
        super().flush_path(path)
        self._record("flush", path)

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self._record("rename", old, str(new.relative_to(self.root)))

    def link(self, target: str, path: Path) -> None:
        super().link(target, path)
        self._record("link", path, target)

    def remove_file(self, path: Path) -> None:
        super().remove_file(path)
        self._record("remove", path)

    def remove_folder(self, path: Path) -> None:
        super().remove_folder(path)
        self._record("remove", path)


def run_in_child(work: Callable[[], int | None]) -> int:
    """Run `work` in a forked process; its exit status, negative where a signal ended it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads that do nothing
        child = os.fork()
    if child == 0:
        status = 99
        try:
            status = work() or 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
