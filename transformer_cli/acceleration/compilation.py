"""What torch.compile compiles: the rule of `runtime.compile: auto`, from counts of bytes (benchmarks/operations.py)."""

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from transformer_cli.config import Config

BYTES_SAVED = 35
"""Of memory traffic that compiled layers save in an update: for each position of a side, number of the model's width and layer.

Counted for the base model in bfloat16 with dropout, `python benchmarks/operations.py`; the gain was not measured.
"""
SECONDS_TO_COMPILE = 120.0
"""For encoder and decoder layers with and without gradients. On an H100 it took more than 74 s (docs/experiments.md)."""
TIMES_WORTH_IT = 3.0
"""Layers are compiled if they save this many times the seconds that the compilation takes."""
REACHED_BANDWIDTH = 0.8
USUAL_BANDWIDTH = 1e12
"""Bytes a second of a card that does not tell; those of an RTX 4090."""


class Compilation(NamedTuple):
    """What torch.compile compiles."""

    layers: bool = False
    loss: bool = False
    reason: str = ""
    """Why, for the log; empty if there is nothing to say."""


NOTHING = Compilation()


def planned_compilation(
    config: Config, device: torch.device, num_steps: Callable[[], int], num_processes: int = 1
) -> Compilation:
    """What `runtime.compile` means for a training.

    On a GPU the loss is compiled unless the setting says false: as plain operations it would move about 80 bytes for each
    logit, compiled 6. Layers are compiled too if the training is long enough.

    Args:
        config: of the training; `training.batch_tokens` is a number or absent.
        device: of the model.
        num_steps: gives the updates that are left; it is asked only if the answer decides.
        num_processes: those that share out the batches of an update.
    """
    wanted = config.runtime.compile
    if wanted != "auto":
        return Compilation(layers=wanted, loss=wanted and device.type != "cpu")
    if device.type != "cuda":
        return NOTHING
    if why_not := missing_for_compilation(device):
        return Compilation(
            reason=f"runtime.compile: auto compiles nothing, because {why_not}; the loss is then several times slower"
        )
    if config.training.guided_alignment is not None:
        return Compilation(
            loss=True,
            reason="runtime.compile: auto compiles the loss alone, because compiled layers keep no attention weights, which "
            "training.guided_alignment needs",
        )
    seconds = _seconds_saved(config, device, num_steps() / num_processes)
    is_worth_it = seconds > TIMES_WORTH_IT * SECONDS_TO_COMPILE
    return Compilation(
        layers=is_worth_it,
        loss=True,
        reason=f"runtime.compile: auto compiles {'the loss and the layers' if is_worth_it else 'the loss alone'}: over all updates that "
        f"are left, compiled layers would save about {seconds:,.0f} s of memory traffic, and to compile them takes about "
        f"{SECONDS_TO_COMPILE:.0f} s (computed, not measured)",
    )


def _seconds_saved(config: Config, device: torch.device, num_steps: float) -> float:
    training, model = config.training, config.model
    num_layers = model.encoder_layers + model.decoder_layers
    if training.update_tokens is not None:
        cells = float(training.update_tokens)
    elif isinstance(training.batch_tokens, int):
        cells = float(training.batch_tokens * training.accumulate)
    else:
        cells = 30.0 * (training.batch_sentences or 1) * training.accumulate
    num_bytes = BYTES_SAVED * cells * model.d_model * num_layers
    return num_steps * num_bytes / (REACHED_BANDWIDTH * bandwidth_of(device))


def bandwidth_of(device: torch.device) -> float:
    """The bytes a second that the memory of a CUDA device is built for, as far as it tells."""
    properties = torch.cuda.get_device_properties(device)
    kilohertz = getattr(properties, "memory_clock_rate", 0)
    bits = getattr(properties, "memory_bus_width", 0)
    # Two transfers in each cycle of the clock.
    return 2e3 * kilohertz * bits / 8 or USUAL_BANDWIDTH


def missing_for_compilation(device: torch.device) -> str | None:
    """What torch.compile lacks on a machine with a GPU; None if it has all that can be looked up."""
    if importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    if torch.version.hip is None and torch.cuda.get_device_capability(device) < (7, 0):
        return "Triton needs a card of compute capability 7.0 or newer"
    compilers = (os.environ.get("CC"), "cc", "gcc", "clang")
    if not any(name and shutil.which(name) for name in compilers):
        return "there is no C compiler such as gcc"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "the headers of Python are not installed (python3-dev)"
    return None
