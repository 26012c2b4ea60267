"""Compares choices of the model in one table; all rows are trained alike and differ in one choice.

    OMP_NUM_THREADS=1 python benchmarks/relative_merits.py --data-root PATH

For each row, this trains `multi30k-en-de.yaml` with the preset `tiny` (d 128, 4 + 4 layers, d_ff 256) for 3 epochs,
about 4 minutes on one core, in FOLDER/runs (`--folder FOLDER`). Then it prints the table in Markdown. After an
interruption, the same command continues. `--epochs 30 --bleu` trains longer and also scores the test split.
"""

import argparse
import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transformer_cli.config import load_config
from transformer_cli.model.transformer import Transformer

CONFIG = "multi30k-en-de.yaml"
STEPS_PER_EPOCH = 250  # steps of about 2,048 tokens
COMMON = (
    "model.preset=tiny",
    "model.d_ff=256",
    "model.dropout=0.1",
    "training.schedule=inverse_sqrt",
    "training.learning_rate=2e-3",
    "training.warmup_steps=250",
    f"training.validate_every={STEPS_PER_EPOCH}",
    f"training.save_every={STEPS_PER_EPOCH}",
    "training.best_metric=loss",
    "validation.scores=[]",
)
# A gated layer has three matrices instead of two; two thirds of the width give as many parameters.
GATED = "model.d_ff=168"
ROWS: dict[str, dict[str, list[str]]] = {
    "baseline: pre, layernorm, relu, sinusoidal": {
        "seed 1": [],
        "seed 2": ["seed=2"],
        "seed 3": ["seed=3"],
    },
    "norm_placement": {
        "post": ["model.norm_placement=post"],
        "residual_of_normed": ["model.norm_placement=residual_of_normed"],
    },
    "norm": {
        "rmsnorm": ["model.norm=rmsnorm"],
        "std_layernorm": ["model.norm=std_layernorm", "model.norm_eps=1e-6"],
        "scalar_std_layernorm": ["model.norm=scalar_std_layernorm", "model.norm_eps=1e-6"],
    },
    "positions": {
        "sinusoidal_halves": ["model.positions=sinusoidal_halves"],
        "learned": ["model.positions=learned"],
        "rotary": ["model.positions=rotary"],
        "none": ["model.positions=none"],
    },
    "activation": {
        "gelu": ["model.activation=gelu"],
        "silu": ["model.activation=silu"],
        "reglu, d_ff 168": ["model.activation=reglu", GATED],
        "geglu, d_ff 168": ["model.activation=geglu", GATED],
        "swiglu, d_ff 168": ["model.activation=swiglu", GATED],
    },
    "other": {
        "scale_embeddings: false": ["model.scale_embeddings=false"],
        "tie_embeddings: none": ["model.tie_embeddings=none"],
        "qk_norm: true": ["model.qk_norm=true"],
        "num_kv_heads: 1": ["model.num_kv_heads=1"],
        "init: small": ["model.init=small"],
        "init: pytorch": ["model.init=pytorch"],
        "7 encoder layers, 1 decoder layer": ["model.encoder_layers=7", "model.decoder_layers=1"],
        "rmsnorm, rotary, swiglu": [
            "model.norm=rmsnorm",
            "model.positions=rotary",
            "model.activation=swiglu",
            GATED,
        ],
    },
}

logger = logging.getLogger("relative_merits")


class Row(NamedTuple):
    """The results of one run."""

    group: str
    name: str
    num_parameters: int
    losses: list[float]  # on validation, after each epoch, in nats per token
    target_tokens_per_second: float
    bleu: float | None


def main() -> None:
    """Train the runs that are not finished, one after the other, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", required=True, help="the folder that holds multi30k/")
    parser.add_argument("--folder", type=Path, default=Path(), help="the folder for runs/")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", default="", help="only rows with this text in group or name")
    parser.add_argument("--bleu", action="store_true", help="also score the test split")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    rows = []
    for group, choices in ROWS.items():
        for name, settings in choices.items():
            if arguments.only in f"{group} {name}":
                logger.info("%s · %s", group, name)
                rows.append(_row(arguments, group, name, settings))
    sys.stdout.write("\n".join(_table(rows)) + "\n")


def _row(arguments: argparse.Namespace, group: str, name: str, settings: list[str]) -> Row:
    run = "merits-" + "".join(c if c.isalnum() else "-" for c in f"{group.split(':')[0]}-{name}")
    root = Path(arguments.data_root).resolve()
    wanted = [
        *COMMON,
        f"name={run}",
        f"data.root={root}",
        f"training.max_steps={arguments.epochs * STEPS_PER_EPOCH}",
        *settings,
    ]
    started_at = time.perf_counter()
    options = [option for setting in wanted for option in ("--set", setting)]
    _tfm(arguments.folder, "train", "--config", CONFIG, *options)
    logger.info("  %.0f s", time.perf_counter() - started_at)
    metrics = (arguments.folder / "runs" / run / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in metrics.splitlines()]
    speeds = sorted(line["target_tokens_per_second"] for line in lines if line["kind"] == "train")
    bleu = None
    if arguments.bleu:
        scores = json.loads(_tfm(arguments.folder, "validate", "--run", run, "--split", "test", "--json"))
        bleu = next(score["value"] for score in scores["scores"] if score["name"] == "BLEU")
    return Row(
        group,
        name,
        _num_parameters(wanted),
        [line["loss"] for line in lines if line["kind"] == "validation"],
        speeds[len(speeds) // 2],
        bleu,
    )


def _tfm(folder: Path, *arguments: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "transformer_cli", *arguments]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def _num_parameters(settings: list[str]) -> int:
    config = load_config(CONFIG, settings)
    vocab_size = config.tokenizer.vocab_size
    assert vocab_size is not None
    with torch.device("meta"):
        model = Transformer(config.model, vocab_size, vocab_size)
    return sum(parameter.numel() for parameter in model.parameters())


def _table(rows: list[Row]) -> list[str]:
    epochs = range(1, max(len(row.losses) for row in rows) + 1)
    has_bleu = any(row.bleu is not None for row in rows)
    head: list[str] = [
        "choice",
        "",
        "parameters",
        *(f"loss, epoch {e}" for e in epochs),
        "tokens/s",
    ]
    head += ["BLEU"] if has_bleu else []
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "--:|" * (len(head) - 2)]
    for row in rows:
        cells: list[Any] = [row.group, row.name, f"{row.num_parameters:,}"]
        cells += [f"{loss:.3f}" for loss in row.losses] + [""] * (len(epochs) - len(row.losses))
        cells += [f"{row.target_tokens_per_second:,.0f}"]
        cells += [f"{row.bleu:.1f}" if row.bleu is not None else ""] if has_bleu else []
        lines.append("| " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    main()
