"""Checkpoint averaging: the mean of the weights of several checkpoints, in a checkpoint folder of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_cli.checkpoint.checkpoints import place_aside
from transformer_cli.checkpoint.run_folder import (
    CONFIG_FILE,
    MODEL_FILE,
    OPTIMIZER_FILE,
    STATE_FILE,
    Checkpoint,
    open_checkpoint,
)
from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.process.errors import DataError
from transformer_cli.storage import REAL, Content, FileSystem, remove, write_folder
from transformer_cli.storage.filesystem import FORMAT_VERSION, encode_json, require_finite, tensors_content
from transformer_cli.text.sentences import SEEN_LENGTHS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

MAX_COPIED_BYTES = 100 << 20
"""The largest tokenizer or config that is copied from a checkpoint to an average."""


def mean_weights(models: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each tensor over models of the same shapes: summed in float64 on the CPU, rounded once.

    Source: Vaswani et al. 2017, section 6.1, which averages the last 5 or 20 checkpoints.
    """
    import torch

    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for weights in models:
        count += 1
        dtypes = {name: tensor.dtype for name, tensor in weights.items()}
        for name, tensor in weights.items():
            wide = tensor.detach().to("cpu", torch.float64)
            sums[name] = sums[name].add_(wide) if name in sums else wide.clone()
    return {name: (total / count).to(dtypes[name]) for name, total in sums.items()}


def mean_of_checkpoints(checkpoints: Iterable[Checkpoint]) -> dict[str, Tensor]:
    """The mean of the weights of checkpoints that have the same model and tokenizers.

    Raises:
        DamagedError: a file of a checkpoint has changed since it was saved.
        DataError: the checkpoints are of different models.
    """
    return mean_weights(_models_of_one_kind(checkpoints))


def write_average(
    final: Path,
    checkpoints: Sequence[Checkpoint],
    weights: Mapping[str, Tensor],
    *,
    validation: Mapping[str, Any] | None = None,
    rival: Mapping[str, Any] | None = None,
    is_marked: bool = False,
    fs: FileSystem = REAL,
) -> Checkpoint:
    """Write the mean of some checkpoints as a checkpoint of its own, and verify it.

    `tfm translate` can use it, but no training continues from it. Config and tokenizers are those of the newest
    checkpoint.

    Args:
        final: the new folder, in a folder that exists; an older one of this name is replaced.
        checkpoints: of one run.
        weights: their mean.
        validation: the figures of its validation, with "step", and the score as "value"; None: it was not validated,
            so it never counts as the best.
        rival: the checkpoint that it was compared with, as `Checkpoint.rival` reads it; None: their scores decide.
        is_marked: as of `storage.write_folder`.
        fs: for tests.

    Raises:
        DataError: a weight is NaN or infinite.
        DamagedError: a file of a checkpoint has changed since it was saved.
    """
    newest = max(checkpoints, key=lambda checkpoint: checkpoint.step)
    require_finite(weights, str(final))
    state = {
        "average": {"steps": sorted(checkpoint.step for checkpoint in checkpoints)},
        "validation": dict(validation or {}),
    }
    if SEEN_LENGTHS in (known := newest.state()):
        state[SEEN_LENGTHS] = known[SEEN_LENGTHS]
    if rival is not None:
        state["average"]["rival"] = dict(rival)
    copied = {
        file.name: newest.file(file.name, max_bytes=MAX_COPIED_BYTES)
        for file in newest.manifest.files
        if file.name not in (MODEL_FILE, OPTIMIZER_FILE, STATE_FILE)
    }
    files: dict[str, Content | bytes] = {MODEL_FILE: tensors_content(weights), STATE_FILE: encode_json(state)}
    changes: dict[str, Any] = {"format_version": FORMAT_VERSION, "score": None}
    if validation is not None:
        score = validation["value"] if math.isfinite(validation["value"]) else None
        changes |= {"step": validation["step"], "score": score}
    manifest = newest.manifest.model_copy(update=changes)
    aside = place_aside(final, fs=fs)
    write_folder(final, files | copied, manifest, aside=aside, is_marked=is_marked, fs=fs)
    average = open_checkpoint(final)
    average.verify()
    if aside is not None and aside.exists():
        remove([aside], fs=fs)
    return average


def averaged_steps(checkpoint: Checkpoint) -> list[int]:
    """The steps of the checkpoints that an average was made of; empty if it is no average.

    Raises:
        DataError: its state cannot be read.
    """
    average = checkpoint.state().get("average")
    steps = average.get("steps") if isinstance(average, dict) else None
    return steps if isinstance(steps, list) else []


def _models_of_one_kind(checkpoints: Iterable[Checkpoint]) -> Iterable[Mapping[str, Tensor]]:
    first: tuple[Checkpoint, Any] | None = None
    for checkpoint in checkpoints:
        trained = load_trained(checkpoint.folder)
        kind = trained.config.model, _tokenizers(checkpoint)
        if first is None:
            first = checkpoint, kind
        elif kind != first[1]:
            what = "tokenizers" if kind[0] == first[1][0] else f"settings of the model ({CONFIG_FILE})"
            raise DataError(
                f"{checkpoint.folder} has other {what} than {first[0].folder}, so their weights cannot be averaged",
                hint="average checkpoints of one run",
            )
        yield trained.model.state_dict()


def _tokenizers(checkpoint: Checkpoint) -> dict[str, str]:
    files = checkpoint.manifest.files
    return {file.name: file.sha256 for file in files if file.name.startswith("tokenizer")}
