"""All operations that change the disk, and the messages for their errors."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformer_cli.process.errors import CannotCreateError, StorageError, TryAgainError
from transformer_cli.storage import system_calls

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NOT_CREATABLE = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT,
    errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG,
})  # fmt: skip


class FileSystem:
    """The real file system. Tests replace it, to record the operations or to let one of them fail."""

    def make_folder(self, path: Path) -> None:
        os.mkdir(path)

    def create_file(self, path: Path) -> int:
        return system_calls.open_file(path, system_calls.NEW)

    def open_to_append(self, path: Path) -> int:
        return system_calls.open_file(path, system_calls.OWN | os.O_APPEND)

    def write(self, file: int, data: memoryview) -> int:
        return os.write(file, data)

    def flush(self, file: int) -> None:
        system_calls.flush(file)

    def flush_path(self, path: Path) -> None:
        """Flush a file, which makes its content durable, or a folder, which makes its names durable."""
        system_calls.flush_path(path)

    def close(self, file: int) -> None:
        os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def link(self, target: str, path: Path) -> None:
        os.symlink(target, path)

    def remove_file(self, path: Path) -> None:
        os.unlink(path)

    def remove_folder(self, path: Path) -> None:
        os.rmdir(path)

    def free_bytes(self, path: Path) -> int:
        """Free space on the disk of `path`, which need not exist; no limit if the file system has no size."""
        while not path.exists() and path != path.parent:
            path = path.parent
        return system_calls.free_bytes(path)


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
        reason = error.strerror or str(error)
        if error.errno in NO_SPACE:
            raise TryAgainError(
                f"{path}: {reason}: {_bytes(needed_bytes)} needed, {_free(path, fs)} free",
                hint="free some space (a quota or ulimit -f may be the limit), then run the same command again",
            ) from error
        if only_full_disk:
            raise
        if creating and error.errno in NOT_CREATABLE:
            raise CannotCreateError(
                f"{path}: cannot be created: {reason}",
                hint="choose a folder in which you have permission to write",
            ) from error
        raise StorageError(
            f"{path}: {reason}",
            hint="all earlier files are intact; check the disk, then run the same command again",
        ) from error


def _free(path: Path, fs: FileSystem) -> str:
    try:
        return _bytes(fs.free_bytes(path))
    except OSError:
        return _bytes(None)


def _bytes(count: int | None) -> str:
    return "an unknown number of bytes" if count is None else f"{count:,} bytes"
