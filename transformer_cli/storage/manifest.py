"""A folder with a manifest: its fields, and checksums that detect any flipped bit before a file is used."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transformer_cli.process.errors import DataError, StorageError
from transformer_cli.storage import filesystem

MANIFEST_NAME = "MANIFEST.json"
FORMAT_VERSION = 2
MAX_MANIFEST_BYTES = 1 << 20
MAX_FILES = 64
LATEST_SAVED_AT = 2**52
"""The latest accepted `saved_at`, in milliseconds since 1970; later checkpoints still get numbers below 2^53."""
_CHECKSUM = "manifest_sha256"
_BARE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class DamagedError(DataError):
    """The files of a folder differ from its manifest, or the manifest is missing."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ListedFile(_Strict):
    """One file of the folder."""

    name: Annotated[str, Field(pattern=_BARE_NAME)]
    size: Annotated[int, Field(ge=0, le=2**50)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Manifest(_Strict):
    """The facts about a checkpoint, and the list of its files."""

    format_version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)]
    run_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """A random name, drawn when the run starts from scratch."""
    step: Annotated[int, Field(ge=0, lt=10**12)]
    data_fingerprint: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
    """SHA-256 over the fingerprint of the training data."""
    metric: Annotated[str, Field(pattern=r"^[a-z_+]{1,20}$")]
    """The name of the metric of `score`."""
    score: Annotated[float, Field(allow_inf_nan=False)] | None
    """Score of this checkpoint on the validation split; None if it was not measured."""
    saved_at: Annotated[int, Field(ge=0, lt=2**53)]
    """Milliseconds since 1970, and always more than in earlier checkpoints: it gives their order."""
    files: Annotated[tuple[ListedFile, ...], Field(max_length=MAX_FILES)]

    def encode(self) -> bytes:
        """The manifest as JSON, with a checksum over its own text."""
        return _with_checksum(self.model_dump(mode="json"))


def parse_manifest(data: bytes, origin: str) -> Manifest:
    """Parse a manifest.

    Raises:
        DamagedError: the text is no manifest, has a wrong checksum, or has a newer format.
    """
    fields = parse_json(data, origin)
    if not isinstance(fields, dict):
        raise DamagedError(f"{origin}: not a manifest")
    version = fields.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise DamagedError(
            f"{origin}: format version {version} is newer than tfm knows ({FORMAT_VERSION}): upgrade tfm",
            hint="pip install --upgrade transformer-cli",
        )
    fields.pop(_CHECKSUM, None)
    if _with_checksum(fields) != data:
        raise DamagedError(f"{origin}: does not match its own checksum")
    try:
        manifest = Manifest.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise DamagedError(f"{origin}: {where}: {problem['msg']}") from error
    names = [file.name for file in manifest.files]
    if len({*names, MANIFEST_NAME}) != len(names) + 1:
        raise DamagedError(f"{origin}: names a file twice, or itself")
    return manifest


def parse_json(data: bytes, origin: str) -> Any:
    """Parse JSON strictly.

    Raises:
        DamagedError: the text is not JSON, or a key occurs twice.
    """
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{origin}: not JSON: {error}") from error


def encode_json(values: Mapping[str, Any]) -> bytes:
    """Values as JSON; Python prints a float so that reading it returns the same bits."""
    return (json.dumps(values, indent=1) + "\n").encode("ascii")


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The mapping of these keys; raises ValueError if a key occurs twice (for `object_pairs_hook`)."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key occurs twice")
    return mapping


def is_bare_name(name: str) -> bool:
    """Whether a manifest may list a file of this name: no path, not hidden, at most 100 characters."""
    return re.fullmatch(_BARE_NAME, name) is not None


def _with_checksum(fields: dict[str, Any]) -> bytes:
    """The text of a manifest: its fields, and the checksum of their compact form."""
    compact = json.dumps(fields, separators=(",", ":"), sort_keys=True).encode("ascii")
    sealed = fields | {_CHECKSUM: hashlib.sha256(compact).hexdigest()}
    return (json.dumps(sealed, indent=1, sort_keys=True) + "\n").encode("ascii")


# Reading a folder that has a manifest: no file is used before its checksum is checked.
#
# The folder is opened once, and its files are opened through that descriptor. So two versions do not mix if
# another process renames or deletes the folder. (Windows opens no folders; there the checksums show a mixture.)
# Symbolic links are refused. Sizes are compared before
# anything is read. The SHA-256 of a file is computed on the same descriptor from which it is read later.


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
        with _open_regular(self._folder, self.path, name, size=listed.size) as file:
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
        folder = filesystem.open_folder(path)
        try:
            with _open_regular(folder, path, MANIFEST_NAME) as file:
                data = file.read(MAX_MANIFEST_BYTES + 1)
            if len(data) > MAX_MANIFEST_BYTES:
                raise DamagedError(
                    f"{path / MANIFEST_NAME}: more than {MAX_MANIFEST_BYTES:,} bytes"
                )
            manifest = parse_manifest(data, str(path / MANIFEST_NAME))
            # Hidden files do not count: file managers make them.
            names = os.listdir(path if folder is None else folder)
            found = {name for name in names if not name.startswith(".")}
            expected = {MANIFEST_NAME, *(file.name for file in manifest.files)}
            for name in sorted(expected - found):
                raise DamagedError(f"{path / name}: missing")
            for name in sorted(found - expected):
                raise DamagedError(f"{path}: holds {name!r}, which its manifest does not list")
            for listed in manifest.files:
                with _open_regular(folder, path, listed.name, size=listed.size):
                    pass
            yield SealedFolder(path, folder, manifest)
        finally:
            if folder is not None:
                os.close(folder)
    except NotADirectoryError as error:
        raise DamagedError(f"{path}: not a folder") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error


@contextmanager
def _open_regular(
    folder: int | None, path: Path, name: str, *, size: int | None = None
) -> Iterator[FileIO]:
    """Open a file of a folder for reading, if it is a regular one, and of this size if it is listed with one."""
    try:
        place = path / name if folder is None else name
        descriptor = filesystem.open_file(place, filesystem.READ, folder=folder)
    except FileNotFoundError as error:
        raise DamagedError(f"{path / name}: missing") from error
    except OSError as error:
        if os.path.islink(path / name):
            raise DamagedError(
                f"{path / name}: a symbolic link; only regular files are read"
            ) from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise DamagedError(f"{path / name}: not a regular file")
    with open(descriptor, "rb", buffering=0) as file:
        if size is not None and status.st_size != size:
            raise DamagedError(f"{path / name}: {status.st_size:,} bytes instead of {size:,}")
        yield file
