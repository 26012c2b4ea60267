"""`tfm import` as a function: a folder of another program becomes a run."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from transformer_cli.checkpoint.run_folder import CHECKPOINTS, RUNS
from transformer_cli.extensions.exchange.porting.exporting.argos_format import ArgosFormat
from transformer_cli.extensions.exchange.porting.exporting.export_run import RECORD
from transformer_cli.extensions.exchange.porting.importing.exported_folder import (
    import_exported,
    is_exported,
)
from transformer_cli.extensions.exchange.porting.importing.exported_package import unpack_own_files
from transformer_cli.extensions.exchange.porting.importing.hugging_face_import import (
    import_hugging_face,
)
from transformer_cli.extensions.exchange.porting.importing.imported_model import (
    ImportedModel,
    Wishes,
)
from transformer_cli.extensions.exchange.porting.importing.imported_run import (
    ImportedRun,
    require_new,
    write_run,
)
from transformer_cli.extensions.exchange.porting.importing.model_folder import ModelFolder
from transformer_cli.extensions.exchange.porting.importing.tutorial_import import (
    import_tutorial,
    is_of_tutorial,
)
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.storage.manifest import MANIFEST_NAME

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def import_folder(
    path: Path, name: str, wishes: Wishes, *, runs_folder: Path = RUNS
) -> tuple[ImportedModel, ImportedRun]:
    """Make a run of the model in a folder.

    Args:
        path: the folder.
        name: of the run.
        wishes: what the user says about the model.

    Raises:
        UsageError: the name cannot be that of a run, or nothing says which languages the model translates.
        CannotCreateError: there is a run of this name.
        MissingInputError: there is no such folder, or a file is missing.
        DataError: the model has no counterpart here.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r} cannot be the name of a run",
            hint="letters, digits, '.', '_' and '-', of which a letter or a digit is the first; at most 100",
        )
    require_new(name, runs_folder)
    with _opened(path) as folder:
        imported = _read(folder, name, wishes, path)
        return imported, write_run(imported, runs_folder)


@contextmanager
def _opened(path: Path) -> Iterator[ModelFolder]:
    """The folder; a package of Argos Translate is unpacked, without its weights."""
    if path.suffix != ArgosFormat().suffix or not path.is_file():
        yield ModelFolder(path)
        return
    with TemporaryDirectory(prefix="tfm-") as name:
        unpack_own_files(path, Path(name))
        yield ModelFolder(Path(name))


def _read(folder: ModelFolder, name: str, wishes: Wishes, path: Path) -> ImportedModel:
    if is_exported(folder):
        return import_exported(folder, name, wishes, origin=path)
    if folder.has(RECORD):
        record = folder.json(RECORD)
        kind = str(record.get("format"))[:50]
        is_rounded = record.get("quantization") is not None
        reason = "its weights are rounded to int8" if is_rounded else "an earlier version made it"
        raise DataError(
            f"{path}: an export of tfm in the format {kind} that cannot be read back: {reason}",
            hint="export the run again without --quantize and import that, or copy the run itself: its folder under runs/ works anywhere",
        )
    if folder.has("config.json"):
        return import_hugging_face(folder, name, wishes)
    if is_of_tutorial(folder):
        return import_tutorial(folder, name, wishes)
    if folder.has(MANIFEST_NAME) or (folder.path / CHECKPOINTS).is_dir():
        raise DataError(
            f"{path}: this is a run of tfm, which needs no import",
            hint=f"use it as it is: tfm translate --run {path}",
        )
    raise DataError(
        f"{path}: not a model folder that can be imported: there is no config.json and no tmodel_XX.pt",
        hint="docs/importing.md lists what can be imported",
    )
