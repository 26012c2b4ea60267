"""Reading a folder that has a manifest: no file is used before its checksum is checked.

The folder is opened once, and its files are opened through that descriptor. So two versions do not mix if
another process renames or deletes the folder. (Windows opens no folders; there the checksums show a mixture.)
Symbolic links are refused. Sizes are compared before
anything is read. The SHA-256 of a file is computed on the same descriptor from which it is read later.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from transformer_cli.process.errors import DataError, StorageError
from transformer_cli.storage import system_calls
from transformer_cli.storage.manifest import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    DamagedError,
    ListedFile,
    Manifest,
    parse_manifest,
)


class SealedFolder:
    """An open folder with a valid manifest, whose files have the names and sizes that the manifest lists."""

    def __init__(self, path: Path, folder: int | None, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._folder = folder
        self._files = {file.name: file for file in manifest.files}

    def verify(self) -> None:
        """Read every file.

        Raises:
            DamagedError: the SHA-256 of a file differs from the manifest.
        """
        for name in self._files:
            with self.open(name):
                pass

    @contextmanager
    def open(self, name: str) -> Iterator[FileIO]:
        """Open a file of the folder for reading, after its checksum was compared."""
        if name not in self._files:
            raise DamagedError(f"{self.path}: has no {name}")
        listed = self._files[name]
        with _open_regular(self._folder, self.path, name) as file:
            _check_size(file, self.path, listed)
            if hashlib.file_digest(file, "sha256").hexdigest() != listed.sha256:
                raise DamagedError(
                    f"{self.path / name}: its content has changed since it was saved (SHA-256 differs)"
                )
            file.seek(0)
            yield file

    def read(self, name: str, *, max_bytes: int) -> bytes:
        """All bytes of a file of at most `max_bytes`."""
        if name in self._files and self._files[name].size > max_bytes:
            raise DataError(
                f"{self.path / name}: {self._files[name].size:,} bytes, more than the {max_bytes:,} allowed"
            )
        with self.open(name) as file:
            return file.read(max_bytes + 1)


@contextmanager
def open_sealed(path: Path) -> Iterator[SealedFolder]:
    """Open a folder; check its manifest, and the names and sizes of its files.

    Raises:
        DamagedError: a file is missing, added or damaged.
        StorageError: the folder cannot be read.
    """
    try:
        folder = system_calls.open_folder(path)
        try:
            manifest = _read_manifest(folder, path)
            _check_names(folder, path, manifest)
            for listed in manifest.files:
                with _open_regular(folder, path, listed.name) as file:
                    _check_size(file, path, listed)
            yield SealedFolder(path, folder, manifest)
        finally:
            if folder is not None:
                os.close(folder)
    except NotADirectoryError as error:
        raise DamagedError(f"{path}: not a folder") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error


def _read_manifest(folder: int | None, path: Path) -> Manifest:
    with _open_regular(folder, path, MANIFEST_NAME) as file:
        data = file.read(MAX_MANIFEST_BYTES + 1)
    if len(data) > MAX_MANIFEST_BYTES:
        raise DamagedError(f"{path / MANIFEST_NAME}: more than {MAX_MANIFEST_BYTES:,} bytes")
    return parse_manifest(data, str(path / MANIFEST_NAME))


def _check_names(folder: int | None, path: Path, manifest: Manifest) -> None:
    """Compare names with the manifest; ignore hidden files, which file managers make."""
    found = {
        name for name in os.listdir(path if folder is None else folder) if not name.startswith(".")
    }
    expected = {MANIFEST_NAME, *(file.name for file in manifest.files)}
    for name in sorted(expected - found):
        raise DamagedError(f"{path / name}: missing")
    for name in sorted(found - expected):
        raise DamagedError(f"{path}: holds {name!r}, which its manifest does not list")


@contextmanager
def _open_regular(folder: int | None, path: Path, name: str) -> Iterator[FileIO]:
    try:
        place = path / name if folder is None else name
        descriptor = system_calls.open_file(place, system_calls.READ, folder=folder)
    except FileNotFoundError as error:
        raise DamagedError(f"{path / name}: missing") from error
    except OSError as error:
        if os.path.islink(path / name):
            raise DamagedError(
                f"{path / name}: a symbolic link; only regular files are read"
            ) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedError(f"{path / name}: not a regular file")
    with open(descriptor, "rb", buffering=0) as file:
        yield file


def _check_size(file: FileIO, path: Path, listed: ListedFile) -> None:
    size = os.fstat(file.fileno()).st_size
    if size != listed.size:
        raise DamagedError(f"{path / listed.name}: {size:,} bytes instead of {listed.size:,}")
