"""Tiny experiments, and functions that compare two runs."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.data.sources import corpus
from transformer_cli.storage import Manifest
from transformer_cli.storage.filesystem import MANIFEST_NAME, parse_manifest

# 70 pairs are 9 batches of 8 and so 5 updates per epoch, the last one of a single batch.
TINY = """\
name: tiny
seed: 3
data: {source: sequences, num_pairs: 70, num_symbols: 10, min_length: 3, max_length: 6}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}
training:
  max_steps: 13
  batch_sentences: 8
  accumulate: 2
  learning_rate: 5e-3
  warmup_steps: 6
  label_smoothing: 0.1
  clip_norm: 0.5
  log_every: 3
  validate_every: 4
  save_every: 4
  best_metric: loss
validation: {max_sentences: 6, scores: [bleu], num_samples: 0}
decoding: {max_length: 8, beam_size: 2}
runtime: {device: cpu, precision: float32, threads: 1}
"""
SPEEDS = ("target_tokens_per_second", "source_tokens_per_second")


@contextmanager
def few_sequences() -> Iterator[None]:
    """Trainings of a synthetic task in this process hold out 50 sequences instead of 1,000, and end with 10 of each length instead of 100.

    To generate and to translate them would take a third of such a training.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(corpus, "NUM_HELD_OUT_PAIRS", 50)
        patched.setattr(corpus, "NUM_PER_LENGTH", 10)
        yield


def write_tiny(folder: Path, text: str = TINY) -> str:
    """Write the config of the tiny experiment; returns its file name, for `--config`."""
    (folder / "tiny.yaml").write_text(text, encoding="utf-8")
    return "tiny.yaml"


def newest_checkpoint(run_folder: Path) -> Path:
    return max((run_folder / "checkpoints").glob("step-*"))


def manifest_of(checkpoint: Path) -> Manifest:
    return parse_manifest((checkpoint / MANIFEST_NAME).read_bytes(), str(checkpoint))


def state_of(run_folder: Path) -> dict[str, Any]:
    state = json.loads((newest_checkpoint(run_folder) / "state.json").read_bytes())
    assert isinstance(state, dict)
    return state


def metrics_of(run_folder: Path) -> list[dict[str, Any]]:
    lines = (run_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def essence(run_folder: Path) -> dict[str, Any]:
    """The complete result of a run, bit for bit, without speeds and times."""
    checkpoint = newest_checkpoint(run_folder)
    found: dict[str, Any] = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(checkpoint.iterdir())
        if file.name != MANIFEST_NAME
    }
    found["metrics"] = [
        {key: value for key, value in line.items() if key not in SPEEDS} for line in metrics_of(run_folder)
    ]
    folders = (run_folder / "checkpoints").iterdir()
    found["checkpoints"] = sorted(folder.name for folder in folders)
    links = ("best", "last")
    found |= {name: (run_folder / "checkpoints" / name).readlink().name for name in links}
    return found


def forge(checkpoint: Path, name: str, data: bytes) -> None:
    """Replace a file of a checkpoint so that its manifest agrees."""
    (checkpoint / name).write_bytes(data)
    manifest = manifest_of(checkpoint)
    digest = hashlib.sha256(data).hexdigest()
    files = tuple(
        file.model_copy(update={"size": len(data), "sha256": digest}) if file.name == name else file
        for file in manifest.files
    )
    forged = manifest.model_copy(update={"files": files})
    (checkpoint / MANIFEST_NAME).write_bytes(forged.encode())
