"""Documents that are zip files: parts are read within limits, and all parts without text stay byte for byte."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import PurePosixPath

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import LIMITS, MEBIBYTE, ReadingLimits
from transformer_cli.extensions.documents.segments import (
    Document,
    Segment,
    TranslatedSegment,
)
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import on_one_line
from transformer_cli.storage.filesystem import ZIP_DAMAGE

_ENCRYPTED = 0x1
_BROKEN = (*ZIP_DAMAGE, OSError)
_READ_BYTES = 1 << 20
_OTHER_FILE = "open it in the program that made it, and save it again"


def opened_archive(data: bytes, limits: ReadingLimits = LIMITS) -> zipfile.ZipFile:
    """The zip file in some bytes, after its table of contents was checked, and then each of its parts.

    Parts without text are checked too: they are needed when the translated document is written, and a long
    translation must not be lost then.

    Raises:
        DataError: it is no zip file, or is encrypted; it has two parts of one name, or a name that leads out of it; its
            parts are more, larger or packed better than the limits allow; or one of them is damaged.
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
    if unpacked > min(limits.max_unpacked_bytes, max(limits.max_ratio * len(data), limits.max_bytes_of_any_ratio)):
        raise DataError(
            f"the document has {len(data)} bytes and would take {unpacked / MEBIBYTE:.0f} MiB unpacked: this looks like a zip bomb",
            hint="do not open it, unless you know where it comes from",
        )
    names = set()
    for part in parts:
        name = on_one_line(part.filename, 100)
        if part.flag_bits & _ENCRYPTED:
            raise DataError(f"{name}: this part of the document is encrypted", hint="remove the password first")
        path = PurePosixPath(part.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise DataError(f"{name}: the name of this part leads out of the document")
        if part.filename in names:
            raise DataError(f"{name}: the document has two parts of this name", hint=_OTHER_FILE)
        names.add(part.filename)
    for part in parts:
        _check_part(archive, part)
    return archive


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Unpack a part, which compares its checksum; never more than the size that was checked, and a little at a time."""
    try:
        with archive.open(part) as file:
            while file.read(_READ_BYTES):
                pass
    except _BROKEN as error:
        raise _damage(part.filename, error) from error


def _damage(name: str, error: Exception) -> DataError:
    return DataError(f"{on_one_line(name, 100)}: this part of the document is damaged: {error}", hint=_OTHER_FILE)


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
        raise _damage(name, error) from error
    if len(data) > limits.max_part_bytes:
        raise DataError(
            f"{name}: this part takes more than {limits.max_part_bytes / MEBIBYTE:.0f} MiB unpacked",
            hint="divide the document",
        )
    return data


@dataclass(frozen=True, slots=True)
class ZipDocument:
    """A `Document` in several parts of a zip file."""

    data: bytes
    parts: Mapping[str, Document]
    """The parts with text, by their names in the zip file, in the order of reading."""

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`; each place names its part."""
        return [
            replace(segment, place=f"{name}, {segment.place}")
            for name, part in self.parts.items()
            for segment in part.segments
        ]

    def write(self, translations: Sequence[TranslatedSegment], languages: Direction) -> bytes:
        """See `Document.write`; if no part changes, the file stays as it is."""
        changed = {}
        place = 0
        for name, part in self.parts.items():
            end = place + len(part.segments)
            changed[name] = part.write(translations[place:end], languages)
            place = end
        with zipfile.ZipFile(BytesIO(self.data)) as archive:
            if all(archive.read(name) == content for name, content in changed.items()):
                return self.data
            return _with_parts(archive, changed)


def _with_parts(archive: zipfile.ZipFile, changed: Mapping[str, bytes]) -> bytes:
    """The zip file with other contents of some parts; order, dates and kinds of compression stay."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        written.comment = archive.comment
        for info in archive.infolist():
            content = changed.get(info.filename)
            written.writestr(info, archive.read(info) if content is None else content)
    return buffer.getvalue()
