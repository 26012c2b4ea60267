"""The layout of a run folder, `runs/NAME`: the names of its files and folders."""

import os
from contextlib import suppress
from os.path import isfile
from pathlib import Path

from transformer_cli.process.errors import CannotCreateError, StorageError
from transformer_cli.storage import remove

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
