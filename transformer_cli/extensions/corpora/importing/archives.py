"""Zip archives of corpora, such as those of OPUS: the files that hold the pairs, unpacked one by one."""

import re
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from transformer_cli.data.sources.local_files import corpus_format, without_compression
from transformer_cli.extensions.corpora.importing.imported_segments import same_language
from transformer_cli.process.errors import DataError
from transformer_cli.storage.zip_damage import zip_damage_explained

_XML = (".tmx", ".xlf", ".xliff")
_MAX_RATIO = 1000
_NUM_NAMED = 8
_MAX_NAME = 50  # characters of a file name; a system may allow 255 bytes


def unpacked(path: Path, folder: Path, languages: tuple[str | None, str | None]) -> list[Path]:
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
        members = [one for one in archive.infolist() if not one.is_dir()]
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
    with archive.open(member) as packed, output.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return output


def _chosen(
    names: Sequence[str], languages: tuple[str | None, str | None], path: Path
) -> Sequence[str]:
    tables = [name for name in names if _is_whole_corpus(name)]
    endings: dict[str, dict[str, str]] = {}
    for name in names:
        stem, _, ending = str(without_compression(Path(name))).rpartition(".")
        if stem and re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*", ending):
            endings.setdefault(stem, {})[ending] = name
    pairs = [sides for found in endings.values() if len(sides := _sides(found, languages)) == 2]
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
    return [
        name
        for language in languages
        for ending, name in found.items()
        if same_language(ending, str(language))
    ]


def _is_whole_corpus(name: str) -> bool:
    suffix = without_compression(Path(name)).suffix.lower()
    return suffix in _XML or corpus_format(Path(name)) is not None
