"""All operations that change the disk, on each operating system, and the messages for their errors."""

import errno
import lzma
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from transformer_cli.process.errors import CannotCreateError, DataError, StorageError, TryAgainError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NOT_CREATABLE = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT,
    errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG,
})  # fmt: skip


# Calls of the operating system that Windows or macOS lacks, or does differently.
#
# Windows opens no folders, has no `pread` and no `O_NOFOLLOW`, and flushes only files that are open for writing.
# On macOS, `fsync` leaves the data in the cache of the disk; `F_FULLFSYNC` writes it to the disk.


# Without O_BINARY, Windows would write a carriage return before each line feed.
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_FOLDER = getattr(os, "O_DIRECTORY", None)

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _ALWAYS
"""Create a file that does not exist; a symbolic link of this name is an error."""
OWN = os.O_RDWR | os.O_CREAT | _NO_LINK | _NO_WAIT | _ALWAYS
"""Open or create a file of a run for reading and writing."""
READ = os.O_RDONLY | _NO_LINK | _NO_WAIT | _ALWAYS
"""Open a file for reading, without waiting for the other end of a pipe."""

TEMPORARY = ".tmp-"
"""So begins the name of a file or folder that is being written; the process and a number end it."""
_TEMPORARY_NAME = re.compile(rf"{re.escape(TEMPORARY)}(.+)-\d+-\d+")
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL})


def open_file(path: Path | str, flags: int, *, folder: int | None = None) -> int:
    """Open a file with flags of this module; a symbolic link is an error (ELOOP) on every system.

    Args:
        path: the file; its name only, where `folder` is given.
        flags: NEW, OWN or READ, perhaps with more flags.
        folder: the descriptor of the folder, from `open_folder`.
    """
    if not _NO_LINK and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags, 0o666, dir_fd=folder)


def open_folder(path: Path) -> int | None:
    """A descriptor of a folder, for `open_file`; None on a system that opens no folders."""
    if _FOLDER is not None and os.open in os.supports_dir_fd:
        return os.open(path, os.O_RDONLY | _FOLDER | _ALWAYS)
    os.scandir(path).close()  # raises an error if the folder is missing or is a file
    return None


def flush(file: int) -> None:
    """Write the content of an open file to the disk."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        # Some file systems refuse F_FULLFSYNC; fsync then raises any real error.
        with suppress(OSError):
            fcntl.fcntl(file, full)
            return
    os.fsync(file)


def flush_path(path: Path) -> None:
    """Write the content of a file, or the names in a folder, to the disk."""
    is_folder = path.is_dir()
    if is_folder and _FOLDER is None:
        return  # Windows keeps a journal of the names itself
    access = os.O_RDONLY if _FOLDER is not None else os.O_RDWR
    file = os.open(path, access | _ALWAYS)
    try:
        flush(file)
    except OSError as error:
        # EINVAL: some network file systems cannot flush a folder.
        if error.errno != errno.EINVAL or not is_folder:
            raise
    finally:
        os.close(file)


def read_at(file: int, num_bytes: int, offset: int) -> bytes:
    """At most `num_bytes` bytes from `offset` on."""
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, num_bytes)


def write_at(file: int, data: bytes, offset: int) -> None:
    """Write a few bytes from `offset` on; the file is not open for appending."""
    os.lseek(file, offset, os.SEEK_SET)
    os.write(file, data)


def touch(file: int, path: Path) -> None:
    """Set the time of an open file to now."""
    os.utime(file if os.utime in os.supports_fd else path)


def try_lock(file: int) -> bool | None:
    """Whether this process holds the lock of an open file now; None where the file system has no locks."""
    from filelock import lock_descriptor  # most commands lock nothing

    try:
        return lock_descriptor(file, blocking=False)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise


# All operations that change the disk, in one place.


class FileSystem:
    """The real file system. Tests replace it, to record the operations or to let one of them fail."""

    make_folder = staticmethod(os.mkdir)
    write = staticmethod(os.write)
    flush = staticmethod(flush)
    flush_path = staticmethod(flush_path)
    """Flush a file, which makes its content durable, or a folder, which makes its names durable."""
    close = staticmethod(os.close)
    rename = staticmethod(os.replace)
    link = staticmethod(os.symlink)
    remove_file = staticmethod(os.unlink)
    remove_folder = staticmethod(os.rmdir)
    create_file = staticmethod(partial(open_file, flags=NEW))
    open_to_append = staticmethod(partial(open_file, flags=OWN | os.O_APPEND))

    def free_bytes(self, path: Path) -> int:
        """Free space on the disk of `path`, which need not exist; no limit if the file system has no size."""
        while not path.exists() and path != path.parent:
            path = path.parent
        usage = shutil.disk_usage(path)
        return usage.free if usage.total else sys.maxsize


REAL = FileSystem()


@contextmanager
def errors_explained(
    path: Path,
    *,
    fs: FileSystem,
    creating: bool = False,
    needed_bytes: int | None = None,
    only_full_disk: bool = False,
) -> Iterator[None]:
    """Turn every OSError in the block into a TfmError with a message, a hint and an exit code.

    Args:
        path: the file or folder that the message names.
        fs: tells how much space is free.
        creating: raise CannotCreateError if a name cannot be created.
        needed_bytes: the size of what is written.
        only_full_disk: explain only a full disk; other errors of the block may be about other files.
    """
    try:
        yield
    except OSError as error:
        reason, place = error.strerror or str(error), as_named(path)
        if error.errno in NO_SPACE:
            raise TryAgainError(
                f"{place}: {reason}: {_bytes(needed_bytes)} needed, {_free(path, fs)} free",
                hint="free some space (a quota or ulimit -f may be the limit), then run the same command again",
            ) from error
        if only_full_disk:
            raise
        if creating and error.errno in NOT_CREATABLE:
            raise CannotCreateError(
                f"{place}: cannot be created: {reason}",
                hint="choose a folder in which you have permission to write",
            ) from error
        raise StorageError(
            f"{place}: {reason}",
            hint="all earlier files are intact; check the disk, then run the same command again",
        ) from error


def _free(path: Path, fs: FileSystem) -> str:
    try:
        return _bytes(fs.free_bytes(path))
    except OSError:
        return _bytes(None)


def _bytes(count: int | None) -> str:
    return "an unknown number of bytes" if count is None else f"{count:,} bytes"


# Sizes of files for people: bytes, kB, MB and GB, each 1000 times the one before.


def size_in_words(num_bytes: int) -> str:
    """A size with three digits, in bytes, kB, MB or GB."""
    if num_bytes < 1000:
        return f"{num_bytes} bytes"
    size, unit = float(num_bytes), "bytes"
    for larger in ("kB", "MB", "GB"):
        if size >= 999.5:
            size, unit = size / 1000, larger
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{size:.{digits}f} {unit}"


# Damage of a zip file, which Python tells by exceptions of many kinds.


ZIP_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # an unknown kind of compression
    RuntimeError,  # an encrypted part
    ValueError,  # a place before the beginning of the data
)


def as_named(path: Path) -> Path:
    """The path as the user knows it: without the temporary name of a folder that is being written."""
    for number, part in enumerate(path.parts):
        if hidden := _TEMPORARY_NAME.fullmatch(part):
            return Path(*path.parts[:number], hidden[1])
    return path


@contextmanager
def zip_damage_explained(message: str, hint: str | None = None) -> Iterator[None]:
    """Turn the errors that a damaged zip file raises in the block into a DataError."""
    try:
        yield
    except ZIP_DAMAGE as error:
        raise DataError(f"{message}: {error}", hint=hint) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the beginning of the file
            raise
        raise DataError(f"{message}: {error.strerror}", hint=hint) from error
