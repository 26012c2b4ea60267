"""The files of tfm in an `.argosmodel` file that `tfm export` has made."""

import zipfile
from pathlib import Path

from transformer_cli.extensions.exchange.porting.exporting.export_run import RECORD
from transformer_cli.extensions.exchange.porting.exporting.own_folder import OWN_FOLDER
from transformer_cli.extensions.exchange.porting.importing.model_folder import MAX_TOKENIZER_BYTES
from transformer_cli.process.errors import DataError
from transformer_cli.storage.manifest import is_bare_name
from transformer_cli.storage.zip_damage import zip_damage_explained

_MAX_FILES = 20


def unpack_own_files(path: Path, folder: Path) -> None:
    """Copy the record of the export and its folder `tfm/` into a folder; the weights stay in the package.

    Args:
        path: of the package.
        folder: an empty one.

    Raises:
        DataError: it is no package of tfm, or it is damaged.
    """
    with (
        zip_damage_explained(f"{path}: not a whole package", "copy the file again"),
        zipfile.ZipFile(path) as package,
    ):
        for member in _own_members(package, path):
            name = member.filename.split("/", 1)[1]
            (folder / name).parent.mkdir(exist_ok=True)
            with package.open(member) as file:  # the size that the package states may be wrong
                content = file.read(MAX_TOKENIZER_BYTES + 1)
            if len(content) > MAX_TOKENIZER_BYTES:
                raise DataError(f"{path}: {member.filename} has more than {MAX_TOKENIZER_BYTES:,} bytes")  # fmt: skip
            (folder / name).write_bytes(content)


def _own_members(package: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    found = []
    for member in package.infolist():
        _, *parts = member.filename.split("/")
        is_own = len(parts) == 2 and parts[0] == OWN_FOLDER and is_bare_name(parts[1])
        if is_own or parts == [RECORD]:
            found.append(member)
    if not found or len(found) > _MAX_FILES:
        raise DataError(
            f"{path}: not a package that tfm export has made",
            hint="import the model from which the package was made; docs/importing.md lists what can be imported",
        )
    return found
