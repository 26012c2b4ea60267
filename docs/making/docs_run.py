"""The committed model, docs/run: how it is trained, and what of its run comes into the repository."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from making.blocks import ROOT

CONFIG = ROOT / "docs" / "run.yaml"
FOLDER = ROOT / "docs" / "run"
KEPT = ("config.yaml", "metrics.jsonl", "learning.jsonl", "seen_words.json")
"""The files of the run that are kept: of its settings, its curves, the sentences that show how it has learned, and the words that it has seen."""
PROMISE = ("--below", "80", "--share", "0.03")
"""Of the calibration: docs/trusting_translations.md tells why."""


def train() -> None:
    """Train the model of docs/run.yaml in a temporary folder, replace docs/run, and calibrate it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "transformer_cli", "train", "--config", str(CONFIG)]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        keep(Path(folder) / "runs" / "docs")
        command = [sys.executable, "-m", "transformer_cli", "calibrate", "--run", str(FOLDER), *PROMISE]
        subprocess.run(command, cwd=folder, env=environment, check=True)


def keep(run: Path) -> None:
    """Replace docs/run by a run with its best checkpoint alone, without the state of the optimizer."""
    from transformer_cli.checkpoint.averages import mean_of_checkpoints, write_average
    from transformer_cli.checkpoint.checkpoints import Checkpoints
    from transformer_cli.checkpoint.run_folder import OPTIMIZER_FILE

    best = Checkpoints(run).best()
    assert best is not None, f"{run} has no checkpoint with a score"
    shutil.rmtree(FOLDER, ignore_errors=True)
    kept = FOLDER / "checkpoints"
    kept.mkdir(parents=True)
    for name in KEPT:
        shutil.copyfile(run / name, FOLDER / name)
    if not best.has(OPTIMIZER_FILE):
        shutil.copytree(best.folder, kept / best.folder.name)
        return
    # The mean of one checkpoint is this checkpoint; an average has no state of the optimizer.
    name = best.folder.name.replace("step-", "average-")
    weights = mean_of_checkpoints([best])
    write_average(kept / f"{name}-last1", [best], weights, validation=best.state()["validation"])
