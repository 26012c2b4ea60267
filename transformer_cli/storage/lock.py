"""One writer of a run folder at a time, also after the folder was renamed or replaced."""

import json
import logging
import os
import socket
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from transformer_cli.process.errors import TryAgainError
from transformer_cli.storage import filesystem
from transformer_cli.storage.filesystem import REAL, errors_explained, try_lock
from transformer_cli.storage.writing import make_folders

logger = logging.getLogger(__name__)

# The holder of a lock changes the file's time every four seconds; a loaded machine may be late.
_SILENCE_SECONDS = 20.0


class RunLock:
    """Holds the lock of a run folder from `__enter__` to `__exit__`, or until the process ends or is killed.

    The lock is the operating system's lock (`flock`; on Windows `LockFileEx`) on the file `.lock` in the run
    folder; a missing folder is made. Some network file systems accept `flock` and lock nothing.
    Therefore the holder also writes its
    process id and its machine into the file, and changes the file's time every few seconds (the heartbeat).
    If the last holder ran on another machine, a new process first watches for a heartbeat.

    filelock does the locking itself. Its class FileLock has neither the record of the holder nor the
    heartbeat, so only its `lock_descriptor` is used, on a file that this class opens.
    """

    def __init__(
        self, run_folder: Path, *, instead: str | None = None, heartbeat_seconds: float = 4.0
    ) -> None:
        self.path = run_folder / ".lock"
        self._instead = instead  # what else a command can do if the folder is in use
        self._heartbeat_seconds = heartbeat_seconds
        self._released = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="run lock heartbeat", daemon=True)

    def __enter__(self) -> Self:
        make_folders(self.path.parent)
        with errors_explained(self.path, fs=REAL, creating=True, needed_bytes=200):
            self._file = filesystem.open_file(self.path, filesystem.OWN)
            try:
                self._take()
            except BaseException:
                os.close(self._file)
                raise
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._heart.join()
        try:
            os.ftruncate(self._file, 0)
        except OSError as failure:
            logger.warning("%s: could not be emptied: %s", self.path, failure.strerror)
        finally:
            os.close(self._file)

    def _take(self) -> None:
        is_locked = try_lock(self._file)
        holder = _read_record(self._file)
        if is_locked is False:
            raise self._refusal(holder)
        if holder and (holder.get("host") != socket.gethostname() or is_locked is None):
            self._watch(holder)
        os.ftruncate(self._file, 0)
        record = json.dumps(_own_record()).encode()
        filesystem.write_at(self._file, b" " + record + b"\n", 0)

    def _watch(self, holder: dict[str, Any]) -> None:
        """Raise TryAgainError if the holder changes the file's time: then its process is alive."""
        watch_seconds = 2.5 * self._heartbeat_seconds
        logger.info(
            "%s: watching for %.0f s whether %s is alive", self.path, watch_seconds, _name(holder)
        )
        first, stop_at = self.path.stat().st_mtime_ns, time.monotonic() + watch_seconds
        while time.monotonic() < stop_at:
            time.sleep(self._heartbeat_seconds / 10)
            if self.path.stat().st_mtime_ns != first:
                raise self._refusal(holder)

    def _refusal(self, holder: dict[str, Any]) -> TryAgainError:
        return TryAgainError(
            f"{self.path.parent}: in use by {_name(holder)}",
            hint="wait until that process has ended, or stop it"
            + (f"; or {self._instead}" if self._instead else ""),
        )

    def _beat(self) -> None:
        while not self._released.wait(self._heartbeat_seconds):
            try:
                filesystem.touch(self._file, self.path)
            except OSError as error:
                logger.warning("%s: heartbeat failed: %s", self.path, error.strerror)


def is_locked_here(run_folder: Path) -> bool:
    """Whether the lock file of a run folder names this process as its holder."""
    return read_holder(run_folder) == _own_record()


def read_holder(run_folder: Path) -> dict[str, Any]:
    """The process (`pid`, `host`) that the lock file of a run folder names; empty if it names none."""
    try:
        file = filesystem.open_file(run_folder / ".lock", filesystem.READ)
    except OSError:
        return {}
    try:
        return _read_record(file)
    except OSError:
        return {}
    finally:
        os.close(file)


def is_running(run_folder: Path) -> bool:
    """Whether another process or this one holds the lock of a run, by its record and its heartbeat; takes no lock."""
    try:
        file = filesystem.open_file(run_folder / ".lock", filesystem.READ)
    except OSError:
        return False
    try:
        holder, beat_at = _read_record(file), os.fstat(file).st_mtime
    except OSError:
        return False
    finally:
        os.close(file)
    if not holder or abs(time.time() - beat_at) > _SILENCE_SECONDS:
        return False
    return holder.get("host") != socket.gethostname() or _is_alive(holder.get("pid"))


def _is_alive(process_id: Any) -> bool:
    if type(process_id) is not int or process_id <= 0:
        return False
    if os.name == "nt":  # on Windows os.kill would end the process, so only the heartbeat decides
        return True
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # a process of another user
        return True
    return True


def _own_record() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": socket.gethostname()}


def _read_record(file: int) -> dict[str, Any]:
    try:
        try:
            text = filesystem.read_at(file, 1000, 0)
        except PermissionError:  # on Windows, the first byte of a locked file cannot be read
            text = filesystem.read_at(file, 1000, 1)
        record = json.loads(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _name(holder: dict[str, Any]) -> str:
    if not holder:
        return "another process"
    return f"process {holder.get('pid')} on {str(holder.get('host'))[:100]!r}"


# Recognises the folder of a run after it was renamed, removed, or replaced by another of its name.


class KnownFolder:
    """Recognises a folder by its device and inode, or by the lock that this process holds in it.

    It keeps the folder open if the system can do this, so that no new folder gets the same inode.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = _identity(path)
        with suppress(OSError):
            descriptor = filesystem.open_folder(path)
            if descriptor is not None:
                weakref.finalize(self, os.close, descriptor)

    def is_in_place(self) -> bool:
        """Whether the folder still has its name.

        Some network file systems give a folder a new inode, but not a new lock file.
        """
        now = _identity(self.path)
        return now is not None and (now == self._identity or is_locked_here(self.path))

    def find_nearby(self) -> Path | None:
        """The folder under another name in the same parent folder, if it is there."""
        try:
            siblings = sorted(self.path.absolute().parent.iterdir())
        except OSError:
            return None
        found = [path for path in siblings if _identity(path) == self._identity]
        return self.path.with_name(found[0].name) if found and self._identity else None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
