"""The layout of a run folder, `runs/NAME`; no other file of the package defines these names."""

from os.path import isfile
from pathlib import Path

RUNS = Path("runs")
"""The folder of all runs, relative to the current folder."""
CHECKPOINTS = "checkpoints"
CONFIG_FILE = "config.yaml"
"""The name of the config in a run folder and in a checkpoint folder."""


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
        self.log_file = path / "train.log"
        self.tensorboard_folder = path / "tensorboard"
        self.data_folder = path / "data"
        """The corpus as token ids, and the tokenizers."""

    def is_begun(self) -> bool:
        """Whether `tfm train` has made this folder, perhaps without a checkpoint yet."""
        return any(map(isfile, (self.config_file, self.log_file, self.environment_file)))

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> "RunFolder | None":
        """The run that a checkpoint folder lies in; None for a checkpoint that was copied elsewhere."""
        is_in_run = checkpoint.absolute().parent.name == CHECKPOINTS
        return cls(checkpoint.parent.parent) if is_in_run else None
