"""Atomic writes: a file or folder appears complete or not at all, also after a crash; one writer of a run folder at a time; JSON Lines.

A file is written under a temporary name, flushed to disk (fsync) and renamed; then its folder is flushed.
Before files are deleted they get a hidden name, so no reader sees half of a folder. Names that begin with
`.tmp-` or `.trash-` were left by a killed process; the next holder of the run's lock deletes them. Elsewhere, a mark
beside a folder (see `MARK`) lets the next command delete it.
"""

import errno
import functools
import hashlib
import itertools
import json
import logging
import math
import os
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from transformer_cli.process.errors import CannotCreateError, DataError, TryAgainError
from transformer_cli.process.messages import escaped_in_json, on_one_line
from transformer_cli.process.signals import cleaned_up
from transformer_cli.storage import filesystem
from transformer_cli.storage.filesystem import (
    MANIFEST_NAME,
    REAL,
    TEMPORARY,
    WRITABLE,
    Content,
    DamagedError,
    FileSystem,
    ListedFile,
    Manifest,
    as_named,
    checksum,
    errors_explained,
    parse_json,
    try_lock,
)

logger = logging.getLogger(__name__)

TRASH = ".trash-"
WRITE_BYTES = 4 << 20
SPARE_BYTES = 64 << 10  # for folders, the manifest and the metadata of the file system
_numbers = itertools.count()


def require_name(path: Path) -> None:
    """Refuse a path without a name of its own, such as `.`, `..` or `/`: nothing new can be written there.

    Raises:
        CannotCreateError: the path ends in no name.
    """
    if path.name in ("", ".", ".."):
        raise CannotCreateError(
            f"{path}: this folder exists already, and a new name is expected",
            hint=f"give a name in it, such as {path / 'new'}",
        )


def require_name_in_utf8(path: Path | str) -> None:
    """Refuse a path whose bytes are not UTF-8, where it becomes text: in a config, or in a file for other programs.

    Raises:
        DataError: the path is not UTF-8.
    """
    if any("\ud800" <= character <= "\udfff" for character in str(path)):  # Python shows such bytes so
        raise DataError(
            f"{path}: the name of this file or folder, or of one above it, is not UTF-8",
            hint="give it another name, in plain letters",
        )


def make_folders(path: Path, *, fs: FileSystem = REAL) -> None:
    """Make a folder and the missing folders above it; each new name is flushed to disk."""
    missing = list(itertools.takewhile(lambda folder: not folder.is_dir(), (path, *path.parents)))
    with errors_explained(path, fs=fs, creating=True):
        for folder in reversed(missing):
            try:
                fs.make_folder(folder)
            except FileExistsError:  # another process made it, or a file has this name
                if not folder.is_dir():
                    raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder") from None
            fs.flush_path(folder.parent)


def require_space(folder: Path, num_bytes: int, *, fs: FileSystem = REAL) -> None:
    """Raise TryAgainError if fewer bytes are free where a file or folder is, or will be."""
    with errors_explained(folder, fs=fs):
        free = fs.free_bytes(folder)
    if free < num_bytes:
        raise TryAgainError(
            f"{as_named(folder)}: not enough space: {num_bytes:,} bytes needed, {free:,} bytes free",
            hint="free some space, then run the same command again; of a training, training.keep_last and training.keep_best set how many checkpoints are kept",
        )


def write_folder(
    final: Path,
    files: Mapping[str, Content | bytes],
    manifest: Manifest,
    *,
    aside: Path | None = None,
    is_marked: bool = False,
    fs: FileSystem = REAL,
) -> None:
    """Write a folder of files with a manifest; the folder appears complete or not at all.

    Args:
        final: the name of the folder; its parent exists.
        files: file names and contents.
        manifest: what it says of the folder; it gets the list of the files.
        aside: an older folder named `final` is renamed to this name.
        is_marked: whether a later command in this place deletes what a kill leaves; in the folder of a run, the holder of
            its lock does.
    """
    sizes = {name: len(some) if isinstance(some, bytes) else some.num_bytes for name, some in files.items()}
    num_bytes = sum(sizes.values()) + SPARE_BYTES
    require_space(final, num_bytes, fs=fs)
    with _temporary(final, fs, is_marked=is_marked) as partial:
        with errors_explained(partial, fs=fs, creating=True, needed_bytes=num_bytes):
            fs.make_folder(partial)
        with errors_explained(final, fs=fs, needed_bytes=num_bytes):
            written = []
            for name, content in files.items():
                chunks = (content,) if isinstance(content, bytes) else content.chunks
                digest = _write_new(partial / name, chunks, sizes[name], fs)
                written.append(ListedFile(name=name, size=sizes[name], sha256=digest))
            whole = manifest.model_copy(update={"files": tuple(written)})
            encoded = whole.encode()
            _write_new(partial / MANIFEST_NAME, (encoded,), len(encoded), fs)
            fs.flush_path(partial)
            _place(partial, final, aside, fs)


def replace_file(path: Path, data: bytes, *, fs: FileSystem = REAL) -> None:
    """Replace the content of a file: a reader sees the old content or the new, never a part."""
    with _temporary(path, fs) as partial:
        with errors_explained(path, fs=fs, creating=True, needed_bytes=len(data)):
            _write_new(partial, (data,), len(data), fs)
        with errors_explained(path, fs=fs):
            _place(partial, path, None, fs)


@contextmanager
def staged_file(path: Path, *, is_swept: bool = False, fs: FileSystem = REAL) -> Iterator[Path]:
    """An empty temporary file for any library to write to; at the end of the block it becomes `path`.

    Args:
        is_swept: whether the work takes long, so that what an earlier, killed command left here is deleted first.
    """
    with _temporary(path, fs, is_marked=is_swept) as partial:
        with errors_explained(path, fs=fs, creating=True):
            fs.close(fs.create_file(partial))
        with errors_explained(path, fs=fs, only_full_disk=True):
            yield partial
        with errors_explained(path, fs=fs):
            fs.flush_path(partial)
            _place(partial, path, None, fs)


@contextmanager
def staged_folder(path: Path, *, fs: FileSystem = REAL) -> Iterator[Path]:
    """A temporary folder for any library to fill; at the end of the block it replaces `path`.

    What an earlier, killed command left here is deleted first.
    """
    with _temporary(path, fs, is_marked=True) as partial:
        with errors_explained(path, fs=fs, creating=True):
            fs.make_folder(partial)
        with errors_explained(path, fs=fs, only_full_disk=True):
            yield partial
        with errors_explained(path, fs=fs):
            for folder, _, names in os.walk(partial, topdown=False):
                for name in (*names, ""):
                    fs.flush_path(Path(folder, name))
            old = _hidden(TRASH, path) if os.path.lexists(path) else None
            _place(partial, path, old, fs)
            if old is not None:
                _remove_tree(old, fs)


def remove(paths: Iterable[Path], *, fs: FileSystem = REAL) -> None:
    """Delete files and folders that have the same parent; no reader sees a folder with missing files."""
    trash = []
    for path in paths:
        with errors_explained(path, fs=fs):
            trash.append(_hidden(TRASH, path))
            fs.rename(path, trash[-1])
    if trash:
        with errors_explained(trash[0].parent, fs=fs):
            fs.flush_path(trash[0].parent)
            for path in trash:
                _remove_tree(path, fs)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder for files that nobody needs after the block; it is also deleted if a signal ends the process."""
    # Windows deletes no file that is mapped into memory.
    folder = TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    with folder as name, cleaned_up(folder.cleanup):
        yield Path(name)


def sweep(folder: Path, *, fs: FileSystem = REAL) -> list[str]:
    """Delete what killed processes left in a folder; the caller holds the run's lock."""
    if not folder.is_dir():
        return []
    with errors_explained(folder, fs=fs):
        left = [name for name in sorted(os.listdir(folder)) if name.startswith((TEMPORARY, TRASH, MARK))]
        for name in left:
            _remove_tree(folder / name, fs)
    if left:
        logger.info("%s: removed what an interrupted run left: %s", folder, ", ".join(left))
    return left


def point_link(path: Path, target: str, *, fs: FileSystem = REAL) -> None:
    """Make or replace a relative symbolic link; nothing depends on it, so a failure is only logged."""
    if path.is_symlink() and os.readlink(path) == target:
        return
    partial = _hidden(TEMPORARY, path)
    try:
        fs.link(target, partial)
        fs.rename(partial, path)
    except OSError as error:
        _warn_of_links(path.parent, str(error.strerror))
        _remove_leftover(partial, fs)


@functools.cache
def _warn_of_links(folder: Path, reason: str) -> None:
    logger.warning("%s: a symbolic link could not be made: %s; tfm works without it", folder, reason)


def _hidden(prefix: str, path: Path) -> Path:
    require_name(path)
    return path.with_name(f"{prefix}{path.name}-{os.getpid()}-{next(_numbers)}")


@contextmanager
def _temporary(path: Path, fs: FileSystem, *, is_marked: bool = False) -> Iterator[Path]:
    """A temporary name for `path`; if the block fails or a signal ends it, this file or folder is deleted.

    Args:
        is_marked: whether the next command in this place deletes what a kill leaves, as this one does with what an earlier one
            left. Where no mark can be made, the block runs without one: after a kill, a person must delete it.
    """
    partial = _hidden(TEMPORARY, path)
    mark, file, is_held = partial.with_name(partial.name.replace(TEMPORARY, MARK, 1)), None, False
    if is_marked:
        sweep_unfinished(partial.parent, functools.partial(_remove_tree, fs=fs))
        with suppress(OSError):  # the folder cannot be made either, which its own error will say; or the disk is full
            file = filesystem.open_file(mark, filesystem.NEW)
            # The text comes after the lock: a file without it is never taken for a mark.
            if try_lock(file):
                filesystem.write_at(file, _TEXT, 0)
                is_held = True
        if file is not None and not is_held:
            os.close(file)
            mark.unlink(missing_ok=True)
    try:
        with cleaned_up(lambda: _remove_leftover(partial, fs)):
            yield partial
    except BaseException:
        _remove_leftover(partial, fs)
        raise
    finally:
        if file is not None and is_held:
            os.close(file)
            if not os.path.lexists(partial):  # it is whole and has its name, or it was deleted
                with suppress(OSError):
                    mark.unlink()


def _remove_leftover(partial: Path, fs: FileSystem) -> None:
    """Errors here are only logged: the error that ended the work matters more. `sweep` removes the rest."""
    try:
        if os.path.lexists(partial):
            _remove_tree(partial, fs)
        with suppress(OSError):
            partial.with_name(partial.name.replace(TEMPORARY, MARK, 1)).unlink()
    except OSError as error:
        logger.warning("%s: could not be removed: %s", partial, error.strerror)


def _write_new(path: Path, chunks: Iterable[bytes | memoryview], num_bytes: int, fs: FileSystem) -> str:
    """Write and flush a file of so many bytes; return its SHA-256."""
    digest, size = hashlib.sha256(), 0
    file = fs.create_file(path)
    try:
        for chunk in chunks:
            rest = memoryview(chunk).cast("B")
            size += len(rest)
            while rest:
                part = rest[:WRITE_BYTES]
                part = part[: fs.write(file, part)]
                digest.update(part)
                rest = rest[len(part) :]
        fs.flush(file)
    finally:
        fs.close(file)
    assert size == num_bytes, f"{path}: {size} bytes written, {num_bytes} announced"
    return digest.hexdigest()


def _place(partial: Path, final: Path, aside: Path | None, fs: FileSystem) -> None:
    if aside is not None:
        fs.rename(final, aside)
    try:
        fs.rename(partial, final)
    except OSError:
        if aside is not None:
            fs.rename(aside, final)
        raise
    fs.flush_path(final.parent)


def _remove_tree(path: Path, fs: FileSystem) -> None:
    if path.is_symlink() or not path.is_dir():
        fs.remove_file(path)
        return
    for name in sorted(os.listdir(path)):
        _remove_tree(path / name, fs)
    fs.remove_folder(path)


# Marks beside unfinished folders and files: after a kill, the next command in the same place deletes what was left.
#
# A mark is a file `.unfinished-NAME` beside the folder or file `.tmp-NAME`; the process that fills it holds its lock. The
# system frees the lock when the process ends, also by `kill -9`. So a lock that can be taken, on a file that holds the
# text of a mark, says that nobody works on it any more. Names, ages and process numbers alone say nothing.


MARK = ".unfinished-"
_NAME = re.compile(rf"{re.escape(MARK)}(.+-\d+-\d+)")
# Some network file systems lock nothing for other machines: only the machine that made a mark may judge it.
_TEXT = json.dumps({"kind": "an unfinished folder of tfm", "host": socket.gethostname()}).encode()


def sweep_unfinished(folder: Path, remove_tree: Callable[[Path], None]) -> list[Path]:
    """Delete the marked folders and files in a folder whose process has ended; errors leave them for the next time.

    Args:
        folder: where they were made, or are about to be made.
        remove_tree: deletes a folder or file.
    """
    try:
        names = sorted(filter(_NAME.fullmatch, os.listdir(folder)))
    except OSError:
        return []
    swept = []
    for name in names:
        with suppress(OSError):
            partial = folder / name.replace(MARK, TEMPORARY, 1)
            if _sweep(folder / name, partial, remove_tree):
                swept.append(partial)
                logger.info("%s: removed what an interrupted command had left", partial)
    return swept


def _sweep(mark: Path, partial: Path, remove_tree: Callable[[Path], None]) -> bool:
    """Delete a folder or file and its mark, if the process that made them has ended; whether there was one."""
    file = filesystem.open_file(mark, filesystem.OWN & ~os.O_CREAT)
    try:
        if not try_lock(file) or filesystem.read_at(file, 1000, 0) != _TEXT:
            return False
        is_left = (partial.is_dir() or partial.is_file()) and not partial.is_symlink()
        if is_left:
            remove_tree(partial)
        mark.unlink()
        return is_left
    finally:
        os.close(file)


def require_folder_of(path: Path) -> None:
    """Refuse an output whose folder is not there.

    Raises:
        CannotCreateError: it is not.
    """
    if not path.absolute().parent.is_dir():
        raise CannotCreateError(f"{path}: there is no folder {path.parent}")


def require_place(path: Path) -> None:
    """Refuse a file or folder that could not be made, before the work whose result it will hold.

    Raises:
        CannotCreateError: its folder is not there, or may not be written.
    """
    require_folder_of(path)
    folder = path.absolute().parent
    if not os.access(folder, os.W_OK | os.X_OK):
        if filesystem.is_read_only_disk(folder):
            raise CannotCreateError(f"{path}: {os.strerror(errno.EROFS)}", hint=WRITABLE)
        raise CannotCreateError(f"{path}: no permission to write into the folder {path.parent}", hint=WRITABLE)


def require_replaceable_folder(
    folder: Path, record: str, kind: str, *, other: str, unlisted: Collection[str] = ()
) -> None:
    """Refuse a folder that cannot be written, or that would replace something else than an earlier one of its kind.

    Args:
        folder: the output; a new or an empty folder is free.
        record: the name of a JSON file that each folder of this kind has; its `files` are the names of the files that
            were written there, with their checksums or, by earlier versions, without.
        kind: for the message: what an earlier folder would be.
        other: for the hint: how to write somewhere else.
        unlisted: names of files that are written there too.

    Raises:
        CannotCreateError: the folder cannot be made, or must not be replaced: it would take a person's files away.
    """
    require_name(folder)
    require_place(folder)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CannotCreateError(f"{folder}: exists, and is not a folder", hint=other)
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        files = parse_json((folder / record).read_bytes(), str(folder / record))["files"]
        written = {record, *unlisted, *files}
    except (OSError, DamagedError, KeyError, TypeError):
        problem = f"{folder}: this folder is not empty, and not {kind}"
        raise CannotCreateError(problem, hint=other) from None
    added = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.name not in _SYSTEM_FILES and (path.is_symlink() or not path.is_dir())
    } - written
    if added:
        raise CannotCreateError(
            f"{folder}: holds {on_one_line(min(added), 100)}, which is no file of {kind} and would be lost",
            hint=f"move it away, or {other}",
        )
    checksums = files if isinstance(files, dict) else {}
    for name, digest in checksums.items():
        if (folder / name).is_file() and checksum(folder / name) != digest:
            problem = f"{folder / name}: was changed after it was written, and would be lost"
            raise CannotCreateError(problem, hint=f"move it away, or {other}")


# A file browser writes it into each folder that it shows.
_SYSTEM_FILES = (".DS_Store",)


# One writer of a run folder at a time, also after the folder was renamed or replaced.


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

    def __init__(self, run_folder: Path, *, instead: str | None = None, heartbeat_seconds: float = 4.0) -> None:
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
                is_locked, holder = try_lock(self._file), _read_record(self._file)
                if is_locked is False:
                    raise self._refusal(holder)
                if holder and (holder.get("host") != socket.gethostname() or is_locked is None):
                    self._watch(holder)
                os.ftruncate(self._file, 0)
                record = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
                filesystem.write_at(self._file, b" " + record + b"\n", 0)
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

    def _watch(self, holder: dict[str, Any]) -> None:
        """Raise TryAgainError if the holder changes the file's time: then its process is alive."""
        watch_seconds = 2.5 * self._heartbeat_seconds
        logger.info("%s: watching for %.0f s whether %s is alive", self.path, watch_seconds, _name(holder))
        first, stop_at = self.path.stat().st_mtime_ns, time.monotonic() + watch_seconds
        while time.monotonic() < stop_at:
            time.sleep(self._heartbeat_seconds / 10)
            if self.path.stat().st_mtime_ns != first:
                raise self._refusal(holder)

    def _refusal(self, holder: dict[str, Any]) -> TryAgainError:
        return TryAgainError(
            f"{self.path.parent}: in use by {_name(holder)}",
            hint="wait until that process has ended, or stop it" + (f"; or {self._instead}" if self._instead else ""),
        )

    def _beat(self) -> None:
        while not self._released.wait(self._heartbeat_seconds):
            try:
                # Now is the time of the last change; not every system takes it by a descriptor.
                os.utime(self._file if os.utime in os.supports_fd else self.path)
            except OSError as error:
                logger.warning("%s: heartbeat failed: %s", self.path, error.strerror)


def is_locked_here(run_folder: Path) -> bool:
    """Whether the lock file of a run folder names this process as its holder."""
    holder = read_holder(run_folder)
    return holder.get("pid") == os.getpid() and holder.get("host") == socket.gethostname()


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


# JSON Lines: files that grow by one object at a time, and stay readable after a crash at any byte.


MAX_LINE_BYTES = 1 << 20


def append_json_line(path: Path, record: Mapping[str, Any], *, fs: FileSystem = REAL) -> None:
    """Append an object; NaN and infinity become null, because JSON has no such numbers.

    An incomplete last line, left by a crash, is removed first. If writing fails, the new line is removed.
    """
    line = _encoded(_finite(record))
    with errors_explained(path, fs=fs, creating=True, needed_bytes=len(line)):
        file = fs.open_to_append(path)
        try:
            size = end = os.fstat(file).st_size
            while end and filesystem.read_at(file, 1, end - 1) != b"\n":
                end -= 1
            if end < size:
                os.ftruncate(file, end)
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[fs.write(file, rest) :]
            except OSError:
                os.ftruncate(file, end)
                raise
        finally:
            fs.close(file)


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects, oldest first, without lines that are incomplete, longer than 1 MiB, or no JSON object."""
    if not path.exists():
        return
    with errors_explained(path, fs=REAL), path.open("rb") as file:
        is_begun = False
        while piece := file.readline(MAX_LINE_BYTES):
            record = None if is_begun else _parse(piece)
            is_begun = not piece.endswith(b"\n")
            if record is not None:
                yield record


def broken_json_lines(path: Path) -> Iterator[int]:
    """The numbers, from 1 on, of the lines that `read_json_lines` leaves out."""
    with errors_explained(path, fs=REAL), path.open("rb") as file:
        number, is_begun = 1, False
        while piece := file.readline(MAX_LINE_BYTES):
            if not is_begun and _parse(piece) is None:
                yield number
            is_begun = not piece.endswith(b"\n")
            number += not is_begun


def cut_json_lines(path: Path, *, after_step: int) -> int:
    """Remove the objects of later steps, which a resumed run writes again; return their number."""
    return keep_json_lines(path, lambda record: _step(record) <= after_step)


def keep_json_lines(path: Path, is_kept: Callable[[Mapping[str, Any]], bool]) -> int:
    """Remove all other objects from the file; return their number."""
    records = list(read_json_lines(path))
    kept = list(filter(is_kept, records))
    if len(kept) < len(records):
        replace_file(path, b"".join(map(_encoded, kept)))
    return len(records) - len(kept)


def _encoded(record: Any) -> bytes:
    """One line; control characters and lone surrogates are written as codes of JSON."""
    text = escaped_in_json(json.dumps(record, ensure_ascii=False))
    return text.encode(errors="backslashreplace") + b"\n"


def _step(record: Mapping[str, Any]) -> float:
    step = record.get("step")
    return step if isinstance(step, int | float) else -math.inf


def _parse(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
