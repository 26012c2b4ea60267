"""The memory and the CPU time of preparing and training on a generated corpus of any size.

    OMP_NUM_THREADS=1 python benchmarks/preparation.py --pairs 1000000

It writes pairs of random words into a temporary file, prepares them as `tfm train` does, and trains a few updates of a
small model. "resident" is the most memory of its own that the process had in a stage; "mapped" counts the pages of
mapped files, which the system takes back when memory is short. `--streaming` prepares only the first pairs, and
reads the others while it trains.
"""

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from transformer_cli.config import Config
from transformer_cli.data import preparation
from transformer_cli.training.run import train

STAGES = ("write_text", "_train_tokenizers", "write_encoded")
NUM_WORDS = 50_000


class Stage:
    """Measures a stage; another thread reads the memory in use every 50 milliseconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.peaks = {"RssAnon": 0, "RssFile": 0}
        self.is_over = threading.Event()

    def __enter__(self) -> None:
        self.started_at, self.thread = time.process_time(), threading.Thread(target=self._watch)
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        cpu_seconds = time.process_time() - self.started_at
        self.is_over.set()
        self.thread.join()
        resident, mapped = self.peaks.values()
        sys.stdout.write(f"{self.name:24}{cpu_seconds:>12.1f}{resident:>12,}{mapped:>12,}\n")
        sys.stdout.flush()

    def _watch(self) -> None:
        while not self.is_over.wait(0.05):
            status = Path("/proc/self/status").read_text()
            for name in self.peaks:
                found = re.search(rf"{name}:\s+(\d+) kB", status)
                assert found is not None, "only Linux tells the resident size"
                self.peaks[name] = max(self.peaks[name], int(found[1]) // 1000)


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, measured as a stage."""

    def call(*arguments: Any, **options: Any) -> Any:
        with Stage(name.strip("_")):
            return function(*arguments, **options)

    return call


def write_corpus(path: Path, num_pairs: int) -> None:
    """Sentences of 4 to 19 words, of which a few are frequent and most are rare."""
    numbers = np.random.default_rng(1)
    words = np.array([f"{chr(97 + i % 26)}{i:x}" for i in range(NUM_WORDS)])
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, num_pairs, 10_000):
            for _ in range(min(10_000, num_pairs - first)):
                length = numbers.integers(4, 20)
                drawn = words[(NUM_WORDS ** numbers.random(length)).astype(int) - 1]
                file.write(f"{' '.join(drawn)}\t{' '.join(drawn[::-1])} .\n")


def config_of(folder: Path, arguments: argparse.Namespace) -> Config:
    """A small BPE tokenizer and a small model."""
    splits = {"train": "train.tsv", "validation": "held-out.tsv"}
    corpora = [{"split": split, "path": path} for split, path in splits.items()]
    data = {"source": "files", "root": str(folder), "corpora": corpora}
    small = {"d_model": 64, "num_heads": 2, "d_ff": 128, "encoder_layers": 1, "decoder_layers": 1}
    training = {"batch_tokens": 2048, "max_steps": arguments.updates, "best_metric": "loss"}
    intervals = dict.fromkeys(("validate_every", "save_every", "log_every"), arguments.updates)
    return Config.model_validate(
        {
            "name": "generated",
            "data": data | ({"streaming": True} if arguments.streaming else {}),
            "tokenizer": {"kind": "bpe", "vocab_size": 8000, "shared": True},
            "model": small,
            "training": training | intervals,
            "validation": {"scores": []},
            "runtime": {"device": "cpu"},
        }
    )


def main() -> None:
    """Prepare, train, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--streaming", action="store_true")
    arguments = parser.parse_args()
    for name in STAGES:
        setattr(preparation, name, timed(name, getattr(preparation, name)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "held-out.tsv", 100)
        write_corpus(folder / "train.tsv", arguments.pairs)
        os.chdir(folder)
        sys.stdout.write(f"{'stage':24}{'CPU seconds':>12}{'resident MB':>12}{'mapped MB':>12}\n")
        config = config_of(folder, arguments)
        with Stage("prepare"):
            preparation.prepare_data(config, folder / "runs/generated/data")
        with Stage(f"train {arguments.updates} updates"):
            train(config)


if __name__ == "__main__":
    main()
