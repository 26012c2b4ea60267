"""The layout of a run folder, `runs/NAME`; the files of an earlier run are set aside and put back."""

import itertools
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from os.path import isfile
from pathlib import Path

from transformer_cli import storage
from transformer_cli.process.errors import CannotCreateError, StorageError
from transformer_cli.storage import FileSystem, remove

RUNS = Path("runs")
"""The folder of all runs, relative to the current folder."""
CHECKPOINTS = "checkpoints"
CONFIG_FILE = "config.yaml"
"""The name of the config in a run folder and in a checkpoint folder."""
LOCK_FILE = ".lock"
CONVERTED = "converted-"
"""Prefix of the name of the folder that holds a model in the format of another library."""


class RunFolder:
    """The paths of the files and folders of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints_folder = path / CHECKPOINTS
        self.config_file = path / CONFIG_FILE
        """The config with all defaults filled in; training with it repeats the run."""
        self.environment_file = path / "environment.json"
        """Versions of the software, the device, and the fingerprint of the data."""
        self.metrics_file = path / "metrics.jsonl"
        """One JSON object for each report and each validation."""
        self.learning_file = path / "learning.jsonl"
        """One JSON object for each validation: the same few sentences, and what the model made of them."""
        self.log_file = path / "train.log"
        self.tensorboard_folder = path / "tensorboard"
        """Event files: one folder for the training, one for the validations."""
        self.data_folder = path / "data"
        """The corpus as token ids, and the tokenizers."""

    def records(self) -> tuple[Path, ...]:
        """What belongs to the checkpoints of a run, and is renamed with them when it starts from scratch."""
        files = self.config_file, self.metrics_file, self.learning_file
        return *files, self.tensorboard_folder, self.data_folder

    def require_own_files(self) -> None:
        """Check the files and folders to which the run will write; a run from elsewhere may have links or pipes there.

        The run folder itself may be a symbolic link to another disk.

        Raises:
            CannotCreateError: a file or folder of the run is a symbolic link, or of another kind; or the
                folder of the checkpoints cannot be written to.
        """
        board = self.tensorboard_folder
        files = (self.path / LOCK_FILE, self.config_file, self.environment_file, self.metrics_file)
        for file in (*files, self.learning_file, self.log_file):
            _require_kind(file, is_right=file.is_file(), kind="a file")
        for folder in (self.checkpoints_folder, board, board / "train", board / "validation"):
            _require_kind(folder, is_right=folder.is_dir(), kind="a folder")
        if self.checkpoints_folder.is_dir() and not os.access(
            self.checkpoints_folder, os.W_OK | os.X_OK
        ):
            raise CannotCreateError(
                f"{self.checkpoints_folder}: no permission to write into this folder",
                hint="change its permissions, or give another name: --set name=...",
            )

    def remove_if_only_logged(self) -> None:
        """Remove the folder if it holds nothing but the log and the lock file, which the caller has locked."""
        with suppress(OSError, StorageError):  # it stays, and does no harm
            if {one.name for one in self.path.iterdir()} <= {LOCK_FILE, self.log_file.name}:
                remove([self.path])

    def is_begun(self) -> bool:
        """Whether `tfm train` has made this folder, perhaps without a checkpoint yet."""
        return any(map(isfile, (self.config_file, self.log_file, self.environment_file)))

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> "RunFolder | None":
        """The run that a checkpoint folder lies in; None for a checkpoint that was copied elsewhere."""
        is_in_run = checkpoint.absolute().parent.name == CHECKPOINTS
        return cls(checkpoint.parent.parent) if is_in_run else None

    def converted_folder(self, library: str) -> Path:
        """The model in the format of another library, made from the checkpoint that was used last."""
        return self.path / f"{CONVERTED}{library}"


def _require_kind(path: Path, *, is_right: bool, kind: str) -> None:
    is_junction = getattr(
        path, "is_junction", None
    )  # links to folders on Windows, from Python 3.12 on
    if path.is_symlink() or (is_junction is not None and is_junction()):
        raise CannotCreateError(
            f"{path}: a symbolic link; a run writes only into its own folder",
            hint="delete this link, or move its target here; only the whole run folder may be a link",
        )
    if path.exists() and not is_right:
        raise CannotCreateError(
            f"{path}: not {kind}", hint=f"move it away: a training makes {kind} of this name"
        )


# The files of an earlier run are set aside when it starts from scratch, and put back if no new run starts.


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
