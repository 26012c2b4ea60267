"""The two committed models: docs/run, from which the outputs in the pages come, and docs/demonstration, which comes along in the wheel."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from making.blocks import ROOT

CONFIG = ROOT / "docs" / "run.yaml"
FOLDER = ROOT / "docs" / "run"
DEMONSTRATION = ROOT / "docs" / "demonstration"
README = "README.md"
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
        keep(Path(folder) / "runs" / "docs", FOLDER)
        command = [sys.executable, "-m", "transformer_cli", "calibrate", "--run", str(FOLDER), *PROMISE]
        subprocess.run(command, cwd=folder, env=environment, check=True)


def keep(run: Path, folder: Path, *, in_half: bool = False) -> None:
    """Replace a committed model by a run with its best checkpoint alone, without the state of the optimizer.

    The folder of the corpora (`data.root`) becomes "." in the config, since it is a path of one machine. The model card stays.

    Args:
        run: a finished run.
        folder: of the committed model.
        in_half: store the weights in bfloat16.
    """
    import torch

    from transformer_cli.checkpoint.averages import mean_of_checkpoints, write_average
    from transformer_cli.checkpoint.checkpoints import Checkpoints
    from transformer_cli.checkpoint.run_folder import CONFIG_FILE, open_checkpoint
    from transformer_cli.storage.writing import write_folder

    best = Checkpoints(run).best()
    assert best is not None, f"{run} has no checkpoint with a score"
    card = folder / README
    kept_card = card.read_bytes() if card.exists() else None
    shutil.rmtree(folder, ignore_errors=True)
    kept = folder / "checkpoints"
    kept.mkdir(parents=True)
    if kept_card is not None:
        card.write_bytes(kept_card)
    for name in KEPT:
        shutil.copyfile(run / name, folder / name)
    config = folder / CONFIG_FILE
    config.write_text(_without_root(config.read_text(encoding="utf-8")), encoding="utf-8")
    # The mean of one checkpoint is this checkpoint; an average has no state of the optimizer.
    weights = mean_of_checkpoints([best])
    if in_half:
        weights = {name: one.to(torch.bfloat16) for name, one in weights.items()}
    name = best.folder.name.replace("step-", "average-")
    with tempfile.TemporaryDirectory(dir=kept) as temporary:
        average = write_average(Path(temporary) / name, [best], weights, validation=best.state()["validation"])
        files = {one.name: average.file(one.name, max_bytes=1 << 30) for one in average.manifest.files}
        files[CONFIG_FILE] = _without_root(files[CONFIG_FILE].decode()).encode()
        write_folder(kept / name, files, average.manifest)
    open_checkpoint(kept / name).verify()


def _without_root(config: str) -> str:
    return re.sub(r"(?m)^  root: .*$", "  root: .", config)
