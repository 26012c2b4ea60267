"""Members of zip and tar archives, found by patterns and unpacked one by one under names of our own."""

import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO

from transformer_cli.process.errors import DataError
from transformer_cli.storage.zip_damage import ZIP_DAMAGE

_COPIED_BYTES = 1 << 20
_MAX_RATIO = 1000
_NUM_NAMED = 8
_LICENCES = ("LICENSE", "LICENCE", "LICENSE.TXT", "LICENCE.TXT", "LICENSE.MD", "COPYING")
_Opener = Callable[[], IO[bytes] | None]


def is_archive(path: Path) -> bool:
    """Whether a file is a zip or tar archive, by its content."""
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


def extract(
    path: Path, patterns: Sequence[str], folder: Path
) -> tuple[list[list[Path]], str | None]:
    """Unpack the members that match, for each pattern in order; and the text of the licence, if there is one.

    Raises:
        DataError: the archive is damaged, unpacks beyond all measure, or no member matches a pattern.
    """
    found: list[dict[str, Path]] = [{} for _ in patterns]
    licence, names = None, []
    try:
        for name, open_member in _members(path):
            names.append(name)
            for number, pattern in enumerate(patterns):
                if fnmatch(name, pattern) or fnmatch(name.removeprefix("./"), pattern):
                    output = folder / f"member-{number}-{len(found[number])}"
                    _copy(open_member, output, path)
                    found[number][name] = output
            if licence is None and PurePosixPath(name).name.upper() in _LICENCES:
                licence = _beginning(open_member)
    except (*ZIP_DAMAGE, tarfile.TarError, OSError) as error:
        raise DataError(f"{path}: the archive is damaged: {error}") from error
    for pattern, members in zip(patterns, found, strict=True):
        if not members:
            shown = ", ".join(names[:_NUM_NAMED]) + (" ..." if len(names) > _NUM_NAMED else "")
            raise DataError(
                f"{path}: no member {pattern} in this archive; it holds {shown or 'nothing'}",
                hint="the archive has changed since the catalogue was made; unpack it, and use tfm data import",
            )
    return [[members[name] for name in sorted(members)] for members in found], licence


def _members(path: Path) -> Iterator[tuple[str, _Opener]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    yield member.filename, lambda member=member: archive.open(member)  # type: ignore[misc]
        return
    with tarfile.open(path, "r:*") as tape:
        for part in tape:
            if part.isreg():
                yield part.name, lambda part=part: tape.extractfile(part)  # type: ignore[misc]


def _copy(open_member: _Opener, output: Path, path: Path) -> None:
    most = _MAX_RATIO * max(1 << 20, path.stat().st_size)
    member = open_member()
    assert member is not None
    with member, output.open("wb") as file:
        while chunk := member.read(_COPIED_BYTES):
            file.write(chunk)
            if file.tell() > most:
                raise DataError(f"{path}: unpacks to more than {most:,} bytes, which no text does")


def _beginning(open_member: _Opener) -> str:
    member = open_member()
    assert member is not None
    with member:
        return member.read(100_000).decode("utf-8", errors="replace")
