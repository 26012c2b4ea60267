"""The checksums of the files of an export, which `tfm export` records and `tfm verify` compares."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.extensions.exchange.model_folder import ModelFolder
from transformer_cli.extensions.exchange.own_folder import (
    OWN_FOLDER,
    RECORD,
    own_config,
    own_tokenizers,
)
from transformer_cli.process.errors import ConfigError, DataError, MissingInputError, StorageError
from transformer_cli.storage import SIGNATURE_NAME, DamagedError, checksum
from transformer_cli.storage.filesystem import parse_json

CARD = "README.md"
"""People complete it by hand."""
UNLISTED = (CARD, SIGNATURE_NAME)
"""Files of an export that its record does not list: they may change."""
_MAX_RECORD_BYTES = 16 << 20


class ExportDamage(NamedTuple):
    """What `tfm verify` found in an export."""

    num_files: int
    num_bytes: int
    problems: list[str]


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file below a folder, by its path with slashes; without the record, the model card and hidden files."""
    found = {}
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if name not in (RECORD, *UNLISTED):
            found[name] = checksum(path)
    return found


def is_export(folder: Path) -> bool:
    """Whether `tfm export` has written this folder."""
    return (folder / RECORD).is_file()


def check_export(folder: Path) -> ExportDamage:
    """Compare an export with its record, and read the config and the tokenizers in it.

    Raises:
        DataError: the record is damaged, or has no checksums, because an earlier version made it.
        StorageError: a file cannot be read.
    """
    recorded = _recorded(folder)
    try:
        found = checksums(folder)
        num_bytes = sum((folder / name).stat().st_size for name in found)
    except OSError as error:
        raise StorageError(f"{error.filename or folder}: cannot be read: {error.strerror}") from error
    problems = [f"{folder / name}: missing" for name in sorted(recorded.keys() - found.keys())]
    problems += [
        f"{folder}: holds {name!r}, which {RECORD} does not list" for name in sorted(found.keys() - recorded.keys())
    ]
    problems += [
        f"{folder / name}: its content has changed since it was exported (SHA-256 differs)"
        for name in sorted(recorded.keys() & found.keys())
        if recorded[name] != found[name]
    ]
    if not problems and (folder / OWN_FOLDER).is_dir():
        own = ModelFolder(folder / OWN_FOLDER)
        try:
            own_config(own)
            own_tokenizers(own)
        except (ConfigError, DataError, MissingInputError) as error:
            problems.append(error.message)
    return ExportDamage(len(found), num_bytes, problems)


def _recorded(folder: Path) -> Mapping[str, str]:
    origin = str(folder / RECORD)
    try:
        with (folder / RECORD).open("rb") as file:
            facts: Any = parse_json(file.read(_MAX_RECORD_BYTES), origin)
    except OSError as error:
        raise StorageError(f"{origin}: cannot be read: {error.strerror}") from error
    files = facts.get("files") if isinstance(facts, dict) else None
    if files is None and isinstance(facts, dict):
        raise DataError(
            f"{origin}: has no checksums, so nothing can be compared",
            hint="an earlier version of tfm wrote this folder; export the run again",
        )
    if not isinstance(files, dict) or not all(isinstance(one, str) for one in files.values()):
        raise DamagedError(f"{origin}: not the record of an export")
    return files


def _files(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith(".")]
        found += [Path(place, name) for name in names if not name.startswith(".")]
    return found
