"""The committed model, docs/run: how it is trained, and how its checkpoint comes into the repository."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from making.blocks import ROOT

CONFIG = ROOT / "docs" / "run.yaml"
FOLDER = ROOT / "docs" / "run"


def train() -> None:
    """Train the model of docs/run.yaml in a temporary folder, and replace docs/run by its best checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "transformer_cli", "train", "--config", str(CONFIG)]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        keep(Path(folder) / "runs" / "docs")


def keep(run: Path) -> None:
    """Replace docs/run by the best checkpoint of a run, without the state of its optimizer."""
    from transformer_cli.checkpoint.averages import mean_of_checkpoints, write_average
    from transformer_cli.checkpoint.checkpoints import Checkpoints

    best = Checkpoints(run).best()
    assert best is not None, f"{run} has no checkpoint with a score"
    shutil.rmtree(FOLDER, ignore_errors=True)
    # The mean of one checkpoint is this checkpoint; an average has no state of the optimizer.
    write_average(FOLDER, [best], mean_of_checkpoints([best]))
