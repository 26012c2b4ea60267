"""The files of an earlier run are set aside when it starts from scratch, and put back if nothing came of it."""

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

from transformer_cli import storage
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.storage import FileSystem


def set_aside(checkpoints: Path, along: Iterable[str], *, fs: FileSystem) -> Path | None:
    """Rename the folder of the checkpoints; return the new path, if there was one.

    The folder is renamed last: after a kill, `finish_moves` can put back what was moved into it.

    Args:
        checkpoints: the folder `checkpoints/` of a run.
        along: names of other files and folders of the run that move into the folder before.
        fs: where the folder lies.
    """
    if not checkpoints.exists():
        return None
    number = 1
    while (target := checkpoints.with_name(f"{checkpoints.name}-old-{number}")).exists():
        number += 1
    for path in (checkpoints.with_name(name) for name in along):
        if path.exists():
            _move(path, unused_path(checkpoints / path.name), fs)
    _move(checkpoints, target, fs)
    return target


def put_back(place: Path, checkpoints: Path, *, fs: FileSystem) -> None:
    """Undo a `set_aside`, after which no checkpoint was saved.

    Files that a new run has begun to write, such as its data, give way to those that were moved.
    """
    _move(place, checkpoints, fs)
    for path in RunFolder(checkpoints.parent).records():
        if (checkpoints / path.name).exists() and os.path.lexists(path):
            storage.remove([path], fs=fs)
    finish_moves(checkpoints, fs=fs)


def finish_moves(checkpoints: Path, *, fs: FileSystem) -> None:
    """Move the files of a run back from the folder of its checkpoints, into which a `set_aside` moved them before a kill."""
    for path in RunFolder(checkpoints.parent).records():
        moved = checkpoints / path.name
        if moved.exists() and not os.path.lexists(path):
            _move(moved, path, fs)


def unused_path(path: Path) -> Path:
    """The path if nothing has this name, else the path with the first free number at its end, such as NAME-2."""
    paths = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(found for found in itertools.chain([path], paths) if not os.path.lexists(found))


def _move(path: Path, new: Path, fs: FileSystem) -> None:
    with storage.errors_explained(path, fs=fs):
        fs.rename(path, new)
        fs.flush_path(new.parent)
        if path.parent != new.parent:
            fs.flush_path(path.parent)
