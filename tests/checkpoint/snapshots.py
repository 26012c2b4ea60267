"""Tiny snapshots; every number in a snapshot depends on its step."""

import functools
import hashlib
from pathlib import Path

import torch

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Checkpoint, Retention, Snapshot

EXPECTED = {"output.weight": torch.zeros(3, 2), "output.bias": torch.zeros(3)}
FILES = {"config.yaml": b"name: tiny\n", "tokenizer.json": b"{}"}


def snapshot(step: int) -> Snapshot:
    return Snapshot(
        step=step,
        model={name: torch.full_like(tensor, step) for name, tensor in EXPECTED.items()},
        optimizer={"output.weight.exp_avg": torch.full((3, 2), float(step))},
        state={"step": step},
        files=FILES,
    )


def is_snapshot(checkpoint: Checkpoint) -> bool:
    """Whether all parts of a checkpoint are those of `snapshot(checkpoint.step)`."""
    step = checkpoint.step
    model = checkpoint.model(EXPECTED)
    optimizer = checkpoint.optimizer({"output.weight.exp_avg": torch.zeros(3, 2)})
    return checkpoint.state() == {"step": step} and all(
        bool((tensor == step).all()) for tensor in (*model.values(), *optimizer.values())
    )


def saved(run: Path, *steps: int) -> list[Path]:
    """A run that has saved checkpoints at these steps and kept all of them."""
    checkpoints = Checkpoints(run, Retention(keep_last=100))
    return [checkpoints.save(snapshot(step)) for step in steps]


def newest_step(run: Path) -> int | None:
    """The step of the newest valid checkpoint; checks that its bytes are those that were saved."""
    newest = Checkpoints(run).newest_valid()
    if newest is None:
        return None
    digests = {file.name: file.sha256 for file in newest.manifest.files}
    assert digests == expected_digests(newest.step)
    return newest.step


@functools.cache
def expected_digests(step: int) -> dict[str, str]:
    """SHA-256 of each file of `snapshot(step)`."""
    contents = snapshot(step).contents()
    chunks = {name: [one] if isinstance(one, bytes) else one.chunks for name, one in contents.items()}
    return {name: hashlib.sha256(b"".join(map(bytes, some))).hexdigest() for name, some in chunks.items()}
