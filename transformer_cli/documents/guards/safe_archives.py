"""Zip files whose parts are read within limits: no zip bomb is unpacked, and no name leads out of the archive."""

import lzma
import zipfile
import zlib
from io import BytesIO
from pathlib import PurePosixPath

from transformer_cli.documents.guards.reading_limits import LIMITS, MEBIBYTE, ReadingLimits
from transformer_cli.errors import DataError
from transformer_cli.escaping import on_one_line

_ENCRYPTED = 0x1
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)  # fmt: skip
_OTHER_FILE = "open it in the program that made it, and save it again"


def opened_archive(data: bytes, limits: ReadingLimits = LIMITS) -> zipfile.ZipFile:
    """The zip file in some bytes, after its table of contents was checked; nothing is unpacked yet.

    Raises:
        DataError: it is no zip file, or is encrypted; it has two parts of one name, or a name that leads out of it; or
            its parts are more, larger or packed better than the limits allow.
    """
    limits.check_size(data)
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except _BROKEN as error:
        raise DataError(f"the document is no whole zip file: {error}", hint=_OTHER_FILE) from error
    parts = archive.infolist()
    if len(parts) > limits.max_parts:
        raise DataError(f"the document has {len(parts)} parts; at most {limits.max_parts} are read")
    unpacked = sum(part.file_size for part in parts)
    if unpacked > limits.max_unpacked_bytes or unpacked > limits.max_ratio * max(len(data), 1024):
        raise DataError(
            f"the document has {len(data)} bytes and would take {unpacked / MEBIBYTE:.0f} MiB unpacked: this looks like a zip bomb",
            hint="do not open it, unless you know where it comes from",
        )
    names = set()
    for part in parts:
        name = on_one_line(part.filename, 100)
        if part.flag_bits & _ENCRYPTED:
            raise DataError(f"{name}: this part of the document is encrypted", hint="remove the password first")  # fmt: skip
        path = PurePosixPath(part.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise DataError(f"{name}: the name of this part leads out of the document")
        if part.filename in names:
            raise DataError(f"{name}: the document has two parts of this name", hint=_OTHER_FILE)
        names.add(part.filename)
    return archive


def read_part(archive: zipfile.ZipFile, name: str, limits: ReadingLimits = LIMITS) -> bytes:
    """A part of a zip file, unpacked; never more than the limits allow, whatever its header says.

    Raises:
        DataError: there is no such part, or it is damaged, or too large.
    """
    try:
        with archive.open(name) as file:
            data = file.read(limits.max_part_bytes + 1)
    except KeyError as error:
        raise DataError(f"the document has no part {name}", hint=_OTHER_FILE) from error
    except _BROKEN as error:
        raise DataError(f"{name}: this part of the document is damaged: {error}", hint=_OTHER_FILE) from error  # fmt: skip
    if len(data) > limits.max_part_bytes:
        raise DataError(
            f"{name}: this part takes more than {limits.max_part_bytes / MEBIBYTE:.0f} MiB unpacked",
            hint="divide the document",
        )
    return data
