"""Archives of corpora: the members that hold the pairs, unpacked one by one under names of our own."""

import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO

from transformer_cli.data.sources.local_files import corpus_format, without_compression
from transformer_cli.process.errors import DataError
from transformer_cli.storage import REAL, errors_explained
from transformer_cli.storage.filesystem import ZIP_DAMAGE, zip_damage_explained
from transformer_cli.text.languages import best_match, is_known_language

_COPIED_BYTES = 1 << 20
_MAX_RATIO = 1000
_NUM_NAMED = 8
_LICENCES = ("LICENSE", "LICENCE", "LICENSE.TXT", "LICENCE.TXT", "LICENSE.MD", "COPYING")
_Opener = Callable[[], IO[bytes] | None]


class UnusableFileError(DataError):
    """A file that cannot be read with any option, such as a damaged archive."""


def is_archive(path: Path) -> bool:
    """Whether a file is a zip or tar archive, perhaps a damaged one, by its content."""
    try:
        return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)
    except ZIP_DAMAGE:  # it is compressed, and ends too early
        return True


def extract(path: Path, patterns: Sequence[str], folder: Path) -> tuple[list[list[Path]], str | None]:
    """Unpack the members that match, for each pattern in order; and the text of the licence, if there is one.

    Raises:
        UnusableFileError: the archive is damaged.
        DataError: it unpacks beyond all measure, or no member matches a pattern.
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
        raise UnusableFileError(f"{path}: the archive is damaged: {error}") from error
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
                if not (member.is_dir() or _is_of_a_mac(member.filename)):
                    yield member.filename, lambda member=member: archive.open(member)  # type: ignore[misc]
        return
    with tarfile.open(path, "r:*") as tape:
        for part in tape:
            if part.isreg() and not _is_of_a_mac(part.name):
                yield part.name, lambda part=part: tape.extractfile(part)  # type: ignore[misc]


def _is_of_a_mac(name: str) -> bool:
    """Whether a member has the attributes that macOS packs beside each file, under nearly the same name."""
    return PurePosixPath(name).name.startswith("._")


def _copy(open_member: _Opener, output: Path, path: Path) -> None:
    most = _MAX_RATIO * max(1 << 20, path.stat().st_size)
    member = open_member()
    assert member is not None
    full_disk = errors_explained(output, fs=REAL, only_full_disk=True)
    with member, full_disk, output.open("wb") as file:
        while chunk := member.read(_COPIED_BYTES):
            file.write(chunk)
            if file.tell() > most:
                raise DataError(f"{path}: unpacks to more than {most:,} bytes, which no text does")


def _beginning(open_member: _Opener) -> str:
    member = open_member()
    assert member is not None
    with member:
        return member.read(100_000).decode("utf-8", errors="replace")


_XML = (".tmx", ".xlf", ".xliff")
_MAX_NAME = 50  # characters of a file name; a system may allow 255 bytes


def unpacked_corpus(path: Path, folder: Path, languages: tuple[str | None, str | None]) -> list[Path]:
    """The two text files, or the one table or translation memory, of an archive; unpacked into a folder.

    Args:
        languages: which text files, by the ends of their names; None: any, if there are only two.

    Raises:
        DataError: the file is no zip archive, is encrypted, or has several corpora or none.
    """
    with (
        zip_damage_explained(f"{path}: cannot be read as a zip archive"),
        zipfile.ZipFile(path) as archive,
    ):
        members = [one for one in archive.infolist() if not (one.is_dir() or _is_of_a_mac(one.filename))]
        chosen = _chosen([one.filename for one in members], languages, path)
        by_name = {one.filename: one for one in members}
        return [_unpack(archive, by_name[name], folder, path) for name in chosen]


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, path: Path) -> Path:
    if member.file_size > _MAX_RATIO * max(1 << 20, member.compress_size):
        raise DataError(
            f"{path}: {member.filename} unpacks from {member.compress_size:,} to {member.file_size:,} bytes, "
            "which no text does"
        )
    # Only the last part of the name is used, so a name such as ../../x stays in the folder.
    name = re.sub(r"[^\w.-]", "_", PurePosixPath(member.filename).name)[-_MAX_NAME:]
    output = folder / (name if name.strip(".") else "_")
    full_disk = errors_explained(output, fs=REAL, only_full_disk=True)
    with archive.open(member) as packed, full_disk, output.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return output


def _chosen(names: Sequence[str], languages: tuple[str | None, str | None], path: Path) -> Sequence[str]:
    tables = [name for name in names if _is_whole_corpus(name)]
    endings: dict[str, dict[str, str]] = {}
    for name in (name for name in names if name not in tables):
        stem, _, ending = str(without_compression(Path(name))).rpartition(".")
        if stem and re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*", ending):
            endings.setdefault(stem, {})[ending] = name
    groups = [*endings.values()]
    if None in languages:
        known = [{ending: name for ending, name in one.items() if is_known_language(ending)} for one in groups]
        if tables or any(len(one) > 1 for one in known):
            groups = known
    pairs = [sides for found in groups if len(sides := _sides(found, languages)) == 2]
    if len(pairs) + len(tables) == 1:
        return [*pairs, tables][0]
    shown = ", ".join(names[:_NUM_NAMED]) + (" ..." if len(names) > _NUM_NAMED else "")
    wanted = " and ".join(filter(None, languages)) or "two languages"
    problem = "several corpora" if len(pairs) + len(tables) else f"no pair of files for {wanted}"
    raise DataError(
        f"{path}: {problem} in this archive; it holds {shown or 'nothing'}",
        hint="give --source-language and --target-language; or unpack it, and import its files",
    )


def _sides(found: dict[str, str], languages: tuple[str | None, str | None]) -> list[str]:
    """The names of both sides among files that differ in their ending."""
    if None in languages:
        return list(found.values()) if len(found) == 2 else []
    endings = list(found)
    places = [best_match(str(language), endings) for language in languages]
    return [found[endings[place]] for place in dict.fromkeys(places) if place is not None]


def _is_whole_corpus(name: str) -> bool:
    suffix = without_compression(Path(name)).suffix.lower()
    return suffix in _XML or corpus_format(Path(name)) is not None
