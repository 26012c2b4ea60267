"""All operations that change the disk, on each operating system, and the messages for their errors; folders with a manifest, and the tensors in them."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import lzma
import math
import os
import re
import shutil
import stat
import sys
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from transformer_cli.process.errors import CannotCreateError, DataError, StorageError, TryAgainError

if TYPE_CHECKING:
    from torch import Tensor

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NOT_CREATABLE = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.ENOENT,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
    }
)


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a large file before it is written; in chunks, so that they are not copied."""

    num_bytes: int
    chunks: Iterable[bytes | memoryview]
    """They may be made one after the other while they are written, so they can be taken once."""


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


WRITABLE = "choose a folder in which you have permission to write"


@contextmanager
def errors_explained(
    path: Path, *, fs: FileSystem, creating: bool = False, needed_bytes: int | None = None, only_full_disk: bool = False
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
            raise CannotCreateError(f"{place}: cannot be created: {reason}", hint=WRITABLE) from error
        raise StorageError(
            f"{place}: {reason}", hint="all earlier files are intact; check the disk, then run the same command again"
        ) from error


def is_read_only_disk(path: Path) -> bool:
    """Whether nothing can be written on the disk of this file or folder, whoever asks."""
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


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


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


# A folder with a manifest: its fields, the checksums that detect any flipped bit before a file is used, and its tensors as safetensors files.


MANIFEST_NAME = "MANIFEST.json"
SIGNATURE_NAME = "model.sig"
"""A signature of OpenSSF Model Signing over a folder may lie in it under this name; no manifest lists it."""
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
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


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
# anything is read. The SHA-256 of a file is computed on the same descriptor from which it is read later. It is not computed a
# second time for a caller who remembers the stamp of the file, as long as its device, inode, size and times are the same.


Stamp = tuple[int, ...]
"""What tells that a file is the one whose checksum was compared, and that nobody has written to it since."""
_SETTLED_NANOSECONDS = 2 * 10**9
"""A file system may count times in steps as long as this: what was changed later than that before the stamp proves nothing."""


@dataclass(frozen=True, slots=True)
class SealedFolder:
    """An open folder with a valid manifest, whose files have the names and sizes that the manifest lists."""

    path: Path
    descriptor: int | None
    """Of the folder; None on Windows."""
    manifest: Manifest
    compared: dict[str, Stamp]
    """Name of a file -> its stamp when its checksum was compared; what is compared here is added."""

    @contextmanager
    def open(self, name: str) -> Iterator[FileIO]:
        """Open a file of the folder for reading, after its checksum was compared."""
        listed = next((file for file in self.manifest.files if file.name == name), None)
        if listed is None:
            raise DamagedError(f"{self.path}: has no {name}")
        with _open_regular(self.descriptor, self.path, name, size=listed.size) as file:
            status = os.fstat(file.fileno())  # before it is read: a change meanwhile gives it another stamp
            times = status.st_mtime_ns, status.st_ctime_ns
            stamp: Stamp = (status.st_dev, status.st_ino, status.st_size, *times)
            is_settled = time.time_ns() - max(times) >= _SETTLED_NANOSECONDS
            if not is_settled or self.compared.get(name) != stamp:
                if hashlib.file_digest(file, "sha256").hexdigest() != listed.sha256:
                    raise DamagedError(
                        f"{self.path / name}: its content has changed since it was saved (SHA-256 differs)"
                    )
                if is_settled:
                    self.compared[name] = stamp
                file.seek(0)
            yield file

    def read(self, name: str, *, max_bytes: int) -> bytes:
        """All bytes of a file of at most `max_bytes`."""
        for listed in self.manifest.files:
            if listed.name == name and listed.size > max_bytes:
                raise DataError(f"{self.path / name}: {listed.size:,} bytes, more than the {max_bytes:,} allowed")
        with self.open(name) as file:
            return file.read(max_bytes + 1)


@contextmanager
def open_sealed(
    path: Path, *, known: tuple[Manifest, dict[str, Stamp]] | None = None, problems: list[str] | None = None
) -> Iterator[SealedFolder]:
    """Open a folder; check its manifest, and the names and sizes of its files.

    Args:
        known: the manifest that the folder had before, and `compared` of that `SealedFolder`, which counts if the manifest
            is still the same; None: no file was compared before.
        problems: gets a message for each missing or further file, and sizes are not compared; None: such a file is an error.

    Raises:
        DamagedError: a file is missing, added or damaged.
        StorageError: the folder cannot be read; a block that reads its files gets this error, too.
    """
    try:
        folder = open_folder(path)
        try:
            with _open_regular(folder, path, MANIFEST_NAME) as file:
                data = file.read(MAX_MANIFEST_BYTES + 1)
            if len(data) > MAX_MANIFEST_BYTES:
                raise DamagedError(f"{path / MANIFEST_NAME}: more than {MAX_MANIFEST_BYTES:,} bytes")
            manifest = parse_manifest(data, str(path / MANIFEST_NAME))
            # Hidden files do not count: file managers make them.
            names = (name for name in os.listdir(path if folder is None else folder) if not name.startswith("."))
            found, expected = {*names} - {SIGNATURE_NAME}, {MANIFEST_NAME, *(file.name for file in manifest.files)}
            wrong = [f"{path / name}: missing" for name in sorted(expected - found)]
            wrong += [f"{path}: holds {name!r}, which its manifest does not list" for name in sorted(found - expected)]
            if problems is not None:
                problems += wrong
            elif wrong:
                raise DamagedError(wrong[0])
            else:
                for listed in manifest.files:
                    with _open_regular(folder, path, listed.name, size=listed.size):
                        pass
            yield SealedFolder(path, folder, manifest, known[1] if known and known[0] == manifest else {})
        finally:
            if folder is not None:
                os.close(folder)
    except NotADirectoryError as error:
        raise DamagedError(f"{path}: not a folder") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error


def damage_of(path: Path) -> list[str]:
    """Everything that is wrong with a folder that has a manifest; every file is read. Empty: nothing is wrong.

    Raises:
        StorageError: the folder cannot be read.
    """
    problems: list[str] = []
    try:
        with open_sealed(path, problems=problems) as sealed:
            for listed in sealed.manifest.files:
                try:
                    with sealed.open(listed.name):
                        pass
                except DamagedError as error:
                    problems.append(error.message)
    except DamagedError as error:
        return [error.message]
    return [*dict.fromkeys(problems)]  # a missing file would be named twice


@contextmanager
def _open_regular(folder: int | None, path: Path, name: str, *, size: int | None = None) -> Iterator[FileIO]:
    """Open a file of a folder for reading, if it is a regular one, and of this size if it is listed with one."""
    try:
        place = path / name if folder is None else name
        descriptor = open_file(place, READ, folder=folder)
    except FileNotFoundError as error:
        raise DamagedError(f"{path / name}: missing") from error
    except OSError as error:
        if os.path.islink(path / name):
            raise DamagedError(f"{path / name}: a symbolic link; only regular files are read") from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise DamagedError(f"{path / name}: not a regular file")
    with open(descriptor, "rb", buffering=0) as file:
        if size is not None and status.st_size != size:
            raise DamagedError(f"{path / name}: {status.st_size:,} bytes instead of {size:,}")
        yield file


# Named tensors to safetensors files and back; the header is checked before memory is allocated.
#
# The format (https://github.com/huggingface/safetensors): 8 bytes with the header's length, the header as
# JSON, and the bytes of the tensors without gaps.
#
# The safetensors library is not used, for three reasons. It writes to a path or to one string of bytes, so
# a file cannot be hashed while it is written, and tensors on a GPU would all be copied first. It reads from
# a path or from bytes, not from the open file whose checksum was compared. It allocates memory before it
# can compare names, types and shapes with those of the model. The tests compare with the library.


MAX_HEADER_BYTES = 16 << 20
DTYPES = {  # names of dtypes of PyTorch
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
_DTYPE_NAMES = {f"torch.{name}": short for short, name in DTYPES.items()}

assert sys.byteorder == "little", "safetensors is little-endian, and the bytes of memory are written unchanged"


def tensors_content(tensors: Mapping[str, Tensor]) -> Content:
    """The content of a safetensors file; tensors on a GPU are copied to the CPU one at a time."""
    import torch

    used = sorted((str(one.device), one.data_ptr(), one.nbytes, name) for name, one in tensors.items() if one.nbytes)
    for first, second in itertools.pairwise(used):
        # Two names for one tensor would be loaded as two tensors, so a tied tensor has one name.
        is_shared = first[0] == second[0] and first[1] + first[2] > second[1]
        assert not is_shared, f"{first[3]} and {second[3]} share memory: save a tied tensor under one name"
    # Wide types first, as the safetensors library writes them: then every tensor is aligned in the file.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {}
    end = 0
    for name in names:
        begin, end = end, end + tensors[name].nbytes
        header[name] = {
            "dtype": _DTYPE_NAMES[str(tensors[name].dtype)],
            "shape": list(tensors[name].shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    def chunks() -> Iterator[bytes | memoryview]:
        yield len(text).to_bytes(8, "little") + text
        for name in names:
            yield tensors[name].detach().cpu().reshape(-1).view(torch.uint8).numpy().data

    return Content(8 + len(text) + end, chunks())


def read_tensors(file: FileIO, expected: Mapping[str, Tensor], origin: str) -> dict[str, Tensor]:
    """Read the tensors of a model from a safetensors file; the whole header is checked first.

    Args:
        file: at its beginning.
        expected: tensors with the names, types and shapes that the file must have, on any device. Where float32 is expected, the file
            may have bfloat16, which needs half of the space; it becomes float32.
        origin: what messages call the file.

    Raises:
        DataError: the file is not safetensors, or its tensors are not the expected ones, or have
            gaps, overlaps or bytes after them.
        DamagedError: the file became shorter while it was read.
    """
    import torch

    header, num_bytes = _read_header(file, origin)
    for name in sorted(expected.keys() - header.keys()):
        raise DataError(f"{origin}: {name} is missing")
    for name in sorted(header.keys() - expected.keys()):
        raise DataError(f"{origin}: {name[:200]!r} is not a tensor of this model")
    names = sorted(header, key=lambda name: header[name].data_offsets)
    end, stored = 0, dict[str, torch.dtype]()
    for name in names:
        entry, wanted = header[name], expected[name]
        found = DTYPES.get(entry.dtype, entry.dtype), entry.shape
        needed = str(wanted.dtype).removeprefix("torch."), list(wanted.shape)
        is_narrow = found == ("bfloat16", needed[1]) and wanted.dtype == torch.float32
        if found != needed and not is_narrow:
            raise DataError(f"{origin}: {name} is {found[1]} {found[0]} instead of {needed[1]} {needed[0]}")
        stored[name] = torch.bfloat16 if is_narrow else wanted.dtype
        size = wanted.numel() * stored[name].itemsize
        place = [end, end + size]
        if entry.data_offsets != place:
            raise DataError(f"{origin}: {name}: the header places it at {entry.data_offsets}, not at {place}")
        end += size
    if end != num_bytes:
        raise DataError(f"{origin}: {num_bytes:,} bytes of data, but the header lists {end:,}")

    tensors = {}
    for name in names:
        tensor = torch.empty(expected[name].shape, dtype=stored[name])
        rest = tensor.reshape(-1).view(torch.uint8).numpy().data
        while rest:
            count = file.readinto(rest)
            if not count:
                raise DamagedError(f"{origin}: ends inside {name}")
            rest = rest[count:]
        tensors[name] = tensor.to(expected[name].dtype)
    return tensors


def read_all_tensors(file: FileIO, origin: str) -> dict[str, Tensor]:
    """Read all tensors of a safetensors file, whatever their names and shapes; the whole header is checked first.

    Args:
        file: at its beginning.
        origin: what messages call the file.

    Raises:
        DataError: the file is not safetensors, or has tensors of unknown types, gaps, overlaps or bytes after them.
        DamagedError: the file became shorter while it was read.
    """
    import torch

    header, num_bytes = _read_header(file, origin)
    expected = {}
    for name, entry in header.items():
        if entry.dtype not in DTYPES:
            raise DataError(f"{origin}: {name[:200]!r} is of the type {entry.dtype}, which is not supported")
        dtype = getattr(torch, DTYPES[entry.dtype])
        if math.prod(entry.shape) * dtype.itemsize > num_bytes:
            raise DataError(f"{origin}: {name[:200]!r} is larger than the file")
        expected[name] = torch.empty(entry.shape, dtype=dtype, device="meta")
    file.seek(0)
    return read_tensors(file, expected, origin)


def require_finite(tensors: Mapping[str, Tensor], origin: str) -> None:
    """Raise DataError if a value is NaN or infinite."""
    import torch

    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise DataError(
                f"{origin}: {name} has values that are NaN or infinite",
                hint="the training has diverged, or the file was changed; use another checkpoint",
            )


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    dtype: Annotated[str, Field(max_length=8)]
    shape: Annotated[list[Annotated[int, Field(ge=0, le=2**40)]], Field(max_length=8)]
    data_offsets: Annotated[list[Annotated[int, Field(ge=0, le=2**50)]], Field(max_length=2)]


_HEADER = TypeAdapter(dict[str, _Entry], config=ConfigDict(defer_build=True))


def _read_header(file: FileIO, origin: str) -> tuple[dict[str, _Entry], int]:
    """The entries of the header, and the number of bytes after it."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
        raise DataError(f"{origin}: not a safetensors file: a header of {length:,} bytes in a file of {size:,}")
    try:
        header = parse_json(file.read(length), origin)
        if isinstance(header, dict):
            header.pop("__metadata__", None)
        return _HEADER.validate_python(header), size - 8 - length
    except DamagedError as error:
        raise DataError(f"{origin}: not a safetensors file: its header is not JSON") from error
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise DataError(f"{origin}: {where[:200]}: {problem['msg']}") from error
