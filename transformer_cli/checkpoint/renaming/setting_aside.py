"""The files of an earlier run are set aside when it starts from scratch, and put back if no new run starts."""

import itertools
import os
import re
from collections.abc import Iterable
from pathlib import Path

from transformer_cli import storage
from transformer_cli.checkpoint.run_folder import CHECKPOINTS, RunFolder
from transformer_cli.storage import FileSystem

_OLD = re.compile(rf"{CHECKPOINTS}-old-([1-9][0-9]{{0,8}})")


def set_aside(run: RunFolder, along: Iterable[str], *, fs: FileSystem) -> Path | None:
    """Rename the folder of the checkpoints; return the new path, if there was one.

    The folder is renamed last: after a kill, `undo_unfinished` can put back what was moved into it.

    Args:
        run: the folder of the run.
        along: names of other files and folders of the run that move into the folder before.
        fs: where the folder lies.
    """
    if not run.checkpoints_folder.exists():
        return None
    for path in (run.path / name for name in along):
        if path.exists():
            _move(path, unused_path(run.checkpoints_folder / path.name), fs)
    numbers = [int(path.name.rpartition("-")[2]) for path in set_aside_before(run.path)]
    target = run.path / f"{CHECKPOINTS}-old-{max(numbers, default=0) + 1}"
    _move(run.checkpoints_folder, target, fs)
    return target


def set_aside_before(run_folder: Path) -> list[Path]:
    """The folders of checkpoints that were set aside, the latest last."""
    try:
        names = os.listdir(run_folder)
    except OSError:
        return []
    found = {int(match[1]): run_folder / match[0] for match in map(_OLD.fullmatch, names) if match}
    return [found[number] for number in sorted(found)]


def undo_unfinished(run: RunFolder, *, fs: FileSystem) -> Path | None:
    """Undo a `set_aside` that a kill interrupted, or after which no new run has started; it started when it has a config.

    Files that a new run has begun to write, such as its data, give way to those that were moved.

    Returns:
        The folder that has its old name again; None if there was none.
    """
    places = set_aside_before(run.path)
    has_started = run.checkpoints_folder.exists() or run.config_file.exists()
    place = places[-1] if places and not has_started else None
    if place is not None:
        storage.remove((path for path in run.records() if _is_in_both(path, place)), fs=fs)
        _move(place, run.checkpoints_folder, fs)
    for path in run.records():
        moved = run.checkpoints_folder / path.name
        if moved.exists() and not os.path.lexists(path):
            _move(moved, path, fs)
    return place


def _is_in_both(path: Path, place: Path) -> bool:
    return os.path.lexists(path) and (place / path.name).exists()


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
