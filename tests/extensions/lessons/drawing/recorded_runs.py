"""Runs that have recorded figures, for the tests of plots: a folder with metrics.jsonl, and a config if it is needed."""

import math
from pathlib import Path

from transformer_cli.config import load_config, to_yaml
from transformer_cli.storage import append_json_line

STEPS = (10, 20, 30, 40)


def record_run(name: str, *changes: str, slope: float = 1.0, epochs: tuple[int, ...] = (0, 0, 1, 1)) -> Path:
    """A run under runs/ whose training loss at step N is 10 - slope * N / 10, and which validates at steps 20 and 40."""
    folder = Path("runs", name)
    folder.mkdir(parents=True)
    config = load_config("en-it.yaml", list(changes))
    (folder / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    for step, epoch in zip(STEPS, epochs, strict=True):
        record(folder, step, 10 - slope * step / 10, epoch=epoch)
        if step % 20 == 0:
            validated(folder, step, 9 - slope * step / 10, bleu=step * slope)
    return folder


def record(folder: Path, step: int, loss: float, *, epoch: int = 0) -> None:
    """A report of the training: 600 tokens in 30 seconds."""
    line = {
        "kind": "train",
        "step": step,
        "epoch": epoch,
        "loss": loss,
        "learning_rate": step / 1e4,
        "gradient_norm": 1 / step,
        "target_tokens_per_second": 20.0,
        "num_target_tokens": 600,
    }
    append_json_line(folder / "metrics.jsonl", line)


def validated(folder: Path, step: int, loss: float, *, bleu: float) -> None:
    """A validation with three scores."""
    values = {"BLEU": bleu, "CER": 100 - bleu, "length_ratio": 1.0}
    scores = [{"name": name, "value": value, "signature": ""} for name, value in values.items()]
    line = {
        "kind": "validation",
        "step": step,
        "loss": loss,
        "perplexity": math.exp(loss),
        "scores": scores,
    }
    append_json_line(folder / "metrics.jsonl", line)
