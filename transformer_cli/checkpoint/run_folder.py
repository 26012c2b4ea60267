"""The layout of a run folder, `runs/NAME`; no other file of the package defines these names."""

from dataclasses import dataclass
from pathlib import Path

RUNS = Path("runs")
"""The folder of all runs, relative to the current folder."""
CHECKPOINTS = "checkpoints"
CONFIG_FILE = "config.yaml"
"""The name of the config in a run folder and in a checkpoint folder."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files and folders of one run."""

    path: Path

    @property
    def checkpoints_folder(self) -> Path:
        """One folder for each checkpoint."""
        return self.path / CHECKPOINTS

    @property
    def config_file(self) -> Path:
        """The config with all defaults filled in; training with it repeats the run."""
        return self.path / CONFIG_FILE

    @property
    def environment_file(self) -> Path:
        """Versions of the software, the device, and the fingerprint of the data."""
        return self.path / "environment.json"

    @property
    def metrics_file(self) -> Path:
        """One JSON object for each report and each validation."""
        return self.path / "metrics.jsonl"

    @property
    def log_file(self) -> Path:
        """The log lines of the run, with the time of each."""
        return self.path / "train.log"

    @property
    def tensorboard_folder(self) -> Path:
        """Event files for TensorBoard."""
        return self.path / "tensorboard"

    @property
    def data_folder(self) -> Path:
        """The corpus as token ids, and the tokenizers."""
        return self.path / "data"

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> "RunFolder | None":
        """The run that a checkpoint folder lies in; None for a checkpoint that was copied elsewhere."""
        is_in_run = checkpoint.absolute().parent.name == CHECKPOINTS
        return cls(checkpoint.parent.parent) if is_in_run else None
