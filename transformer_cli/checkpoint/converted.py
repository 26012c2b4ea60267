"""Converted models: a model in the format of another library, stored beside its checkpoint for further use."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from transformer_cli.checkpoint.run_folder import CONVERTED, RunFolder
from transformer_cli.checkpoint.stored import OPTIMIZER_FILE, STATE_FILE, Checkpoint
from transformer_cli.process.errors import DataError, StorageError, TfmError
from transformer_cli.storage import Content, Manifest, open_sealed, remove, write_folder
from transformer_cli.storage.manifest import ListedFile, encode_json

logger = logging.getLogger(__name__)

ORIGIN_FILE = "converted-from.json"
"""Names the files of the checkpoint from which the model was made, with their SHA-256."""

Files = Mapping[str, bytes]
"""File names and contents."""


def converted_files(
    checkpoint: Checkpoint, library: str, layout: str, convert: Callable[[], Files]
) -> Files:
    """The files of a converted model: those on disk if they were made from this model, else newly made ones.

    The folder lies in the run folder; for a checkpoint that was copied elsewhere, beside it. If it cannot be
    written, the model is converted again each time, with a warning.

    Args:
        checkpoint: the model.
        library: the name of the other library, as part of the folder's name.
        layout: names what `convert` makes; a model of another layout is made again.
        convert: makes the files.

    Raises:
        DamagedError: the weights have changed since they were saved.
    """
    folder = _folder(checkpoint, library)
    origin = _origin(checkpoint, layout)
    stored = _stored(folder, origin)
    if stored is not None:
        return stored
    files = dict(convert())
    try:
        _store(folder, checkpoint.manifest, {**files, ORIGIN_FILE: origin})
    except TfmError as error:
        logger.warning("the converted model was not kept: %s", error.message)
    else:
        logger.info("%s: the converted model is stored here for further use", folder)
    return files


def _folder(checkpoint: Checkpoint, library: str) -> Path:
    run = RunFolder.of_checkpoint(checkpoint.folder)
    if run is not None:
        return run.converted_folder(library)
    folder = checkpoint.folder.absolute()
    return folder.with_name(f"{folder.name}.{CONVERTED}{library}")


def _origin(checkpoint: Checkpoint, layout: str) -> bytes:
    """What the converted model depends on: the layout, and the checksums of weights, config and tokenizers."""
    digests = {
        file.name: file.sha256
        for file in sorted(checkpoint.manifest.files, key=lambda file: file.name)
        if file.name not in (OPTIMIZER_FILE, STATE_FILE)
    }
    return encode_json({"layout": layout, "files": digests})


def _stored(folder: Path, origin: bytes) -> Files | None:
    """The files in a folder, after their checksums were compared; None if they must be made."""
    try:
        with open_sealed(folder) as sealed:
            if sealed.read(ORIGIN_FILE, max_bytes=len(origin)) != origin:
                return None
            listed = [file for file in sealed.manifest.files if file.name != ORIGIN_FILE]
            return {file.name: sealed.read(file.name, max_bytes=file.size) for file in listed}
    except (DataError, StorageError):
        return None


def _store(folder: Path, of_checkpoint: Manifest, files: Files) -> None:
    """Write the folder, in place of an older one."""

    def seal(listed: tuple[ListedFile, ...]) -> bytes:
        return of_checkpoint.model_copy(update={"files": listed}).encode()

    if folder.exists():
        remove([folder])
    contents = {name: Content.of(data) for name, data in files.items()}
    write_folder(folder, contents, seal, is_marked=True)
