"""Measures what each lever on quality gives on Multi30k: one setting at a time against the same baseline.

    OMP_NUM_THREADS=1 python benchmarks/quality_levers.py --data-root PATH
    OMP_NUM_THREADS=1 python benchmarks/quality_levers.py --data-root PATH --seeds 1 2 3 --only R-Drop EMA

For each lever and seed, this trains `multi30k-en-de.yaml` with the settings of the lever, and prints a table with the
mean over the seeds and the range. The schedule of the baseline is cosine, and its initial weights are those of Glorot
and Bengio. Two judges score the translations into German, and neither is a test set: the validation split, and 1,000
training captions that no run is trained on. After an interruption, the same command continues.
`--set training.max_steps=1500` gives this setting to all runs.

The lever `both directions` has as many updates as the others, so it sees each pair half as often in the direction that is
scored. `tests/extensions/benchmark/test_quality_levers.py` loads the settings of every lever, without training.
"""

import argparse
import json
import logging
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from transformer_cli.config import load_config

CONFIG = "multi30k-en-de.yaml"
HELD_OUT_SHARE = 1000 / 29_000
LEVERS: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "init: pytorch": ("model.init=pytorch",),
    "init: small": ("model.init=small",),
    "rotary positions": ("model.positions=rotary",),
    "learning rate 0.75e-3": ("training.learning_rate=0.75e-3",),
    "learning rate 3e-3": ("training.learning_rate=3e-3",),
    "dropout 0.1": ("model.dropout=0.1",),
    "dropout 0.3": ("model.dropout=0.3",),
    "EMA of the weights": ("training.ema_decay=0.999",),
    "mean of the last 5": ("training.average_last=5",),
    "BPE-dropout": ("training.bpe_dropout=0.1",),
    "Unigram": ("tokenizer.kind=unigram",),
    "Unigram sampling": ("tokenizer.kind=unigram", "training.unigram_alpha=0.2"),
    "R-Drop": ("training.r_drop=5",),
    "word dropout": ("training.word_dropout=0.1",),
    "layer dropout": ("model.layer_dropout=0.1",),
    "AdamW": ("training.optimizer=adamw",),
    "Adafactor": ("training.optimizer=adafactor",),
    "Muon": ("training.optimizer=muon",),
    "Noam": ("training.schedule=noam", "training.learning_rate=null"),
    "inverse square root": ("training.schedule=inverse_sqrt",),
    "constant": ("training.schedule=constant",),
    "linear": ("training.schedule=linear",),
    "plateau": ("training.schedule=plateau", "training.plateau_patience=1"),
    "warm-up-stable-decay": ("training.schedule=warmup_stable_decay",),
    "both directions": ("data.both_directions=true",),
    "vocabulary 4,000": ("tokenizer.vocab_size=4000",),
    "vocabulary 10,000": ("tokenizer.vocab_size=10000",),
}
SCORED_LANGUAGE = "de"
JUDGES = ("validation", "test")  # the test split of these runs are the held-out training captions

logger = logging.getLogger("quality_levers")


class Result(NamedTuple):
    """The results of one run."""

    bleu: dict[str, float]  # by judge
    minutes: float | None  # None: this command did not train the whole run


def main() -> None:
    """Train the runs that are not finished, one after the other, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", required=True, help="the folder that holds multi30k/")
    parser.add_argument("--folder", type=Path, default=Path(), help="the folder for runs/")
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", default=[""], help="levers whose names hold a text")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    chosen = [name for name in LEVERS if any(text in name for text in arguments.only)]
    for lever in chosen:
        # Raises now, and not after hours of other levers.
        load_config(CONFIG, settings_of(lever, 1, arguments.data_root, arguments.set))
    lines = [
        "| lever | BLEU, validation | BLEU, held-out captions | minutes of a run |",
        "|---|--:|--:|--:|",
    ]
    for lever in chosen:
        results = [_result(arguments, lever, seed) for seed in arguments.seeds]
        lines.append(_row(lever, results))
        logger.info("%s", lines[-1])
    sys.stdout.write("\n".join(lines) + "\n")


def run_of(lever: str, seed: int) -> str:
    """The name of the run of a lever and a seed."""
    return "lever-" + "".join(c if c.isalnum() else "-" for c in lever) + f"-{seed}"


def settings_of(lever: str, seed: int, data_root: str | Path, shared: Sequence[str] = ()) -> list[str]:
    """All settings in which a run differs from the config, as `--set` takes them; `shared` are those of all levers."""
    settings = [
        f"name={run_of(lever, seed)}",
        f"seed={seed}",
        f"data.root={Path(data_root).resolve()}",
        f"data.corpora={json.dumps(_corpora())}",
        f"data.test_share={HELD_OUT_SHARE}",
        "data.validation_share=0.0",
        *shared,
        *LEVERS[lever],
    ]
    if "training.schedule=warmup_stable_decay" in LEVERS[lever]:
        max_steps = load_config(CONFIG, shared).training.max_steps
        assert max_steps is not None
        settings.append(f"training.decay_steps={max_steps // 5}")
    return settings


def _result(arguments: argparse.Namespace, lever: str, seed: int) -> Result:
    run = run_of(lever, seed)
    is_new = not (arguments.folder / "runs" / run).exists()
    settings = settings_of(lever, seed, arguments.data_root, arguments.set)
    options = [option for setting in settings for option in ("--set", setting)]
    started_at = time.perf_counter()
    _tfm(arguments.folder, "train", "--config", CONFIG, *options)
    minutes = (time.perf_counter() - started_at) / 60
    bleu = {judge: _bleu(arguments.folder, run, judge) for judge in JUDGES}
    return Result(bleu, minutes if is_new else None)


def _corpora() -> list[dict[str, str]]:
    """The training captions without a split, so that a share of them is held out; no test set."""
    train = {"source_path": "multi30k/train.en.gz", "target_path": "multi30k/train.de.gz"}
    held_out = {"source_path": "multi30k/val.en.gz", "target_path": "multi30k/val.de.gz"}
    return [train, {"split": "validation", **held_out}]


def _bleu(folder: Path, run: str, split: str) -> float:
    options = "--split", split, "--to", SCORED_LANGUAGE, "--json"
    report = json.loads(_tfm(folder, "validate", "--run", run, *options))
    return next(score["value"] for score in report["scores"] if score["name"] == "BLEU")


def _tfm(folder: Path, *arguments: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "transformer_cli", *arguments]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def _row(lever: str, results: list[Result]) -> str:
    cells = [lever]
    for judge in JUDGES:
        values = [result.bleu[judge] for result in results]
        spread = f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else ""
        cells.append(f"{fmean(values):.1f}{spread}")
    minutes = [result.minutes for result in results if result.minutes is not None]
    cells.append(f"{fmean(minutes):.0f}" if minutes else "")
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
