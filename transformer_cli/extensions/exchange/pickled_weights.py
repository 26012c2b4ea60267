"""Weights in files that `torch.save` wrote (.bin, .pt): read in a child process, with a limit of its memory.

Such a file is a program for the pickle module. With `weights_only=True`, PyTorch runs only the few steps of which
tensors and plain containers are made. A hostile file can still ask for much memory, which the limit of the child prevents. The child
writes the tensors as safetensors; this process reads nothing else. It is the only place of this package that reads such files.
"""

import io
import json
import multiprocessing
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.process.device import limit_memory
from transformer_cli.process.errors import DataError, MissingInputError, TryAgainError, is_out_of_memory
from transformer_cli.storage.filesystem import (
    read_all_tensors,
    require_finite,
    tensors_content,
)

MAX_SECONDS = 600.0
_STATE = "model_state_dict"
_SPARE_BYTES = 2 << 30
_TENSORS, _NUMBERS, _PROBLEM = "tensors.safetensors", "numbers.json", "problem.txt"
_OUT_OF_MEMORY = 3


class PickledFile(NamedTuple):
    """What a file of `torch.save` holds."""

    tensors: dict[str, Tensor]
    """The state dict of the model."""
    numbers: dict[str, int]
    """The whole numbers beside it, such as the epoch."""


def read_pickled(path: Path) -> PickledFile:
    """The state dict in a file, or under `model_state_dict` in it.

    Raises:
        MissingInputError: the file cannot be read.
        DataError: it is no such file, holds something else than tensors or numbers that are not finite, or needs too much memory.
    """
    try:
        num_bytes = path.stat().st_size
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
    with tempfile.TemporaryDirectory(prefix="tfm-") as name:
        folder = Path(name)
        context = multiprocessing.get_context("spawn")
        child = context.Process(target=_convert, args=(str(path), name, 4 * num_bytes))
        child.start()
        child.join(MAX_SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
            raise DataError(f"{path}: reading takes longer than {MAX_SECONDS:.0f} seconds")
        problem = folder / _PROBLEM
        if problem.is_file():
            raise _refusal(path, problem.read_text(encoding="utf-8", errors="replace"))
        if child.exitcode == _OUT_OF_MEMORY:
            raise TryAgainError(f"{path}: reading it needs more memory than its size allows")
        if child.exitcode != 0:
            raise _refusal(path, f"the process that reads it ended with code {child.exitcode}")
        with io.FileIO(folder / _TENSORS) as file:
            tensors = read_all_tensors(file, str(path))
        require_finite(tensors, str(path))
        return PickledFile(tensors, json.loads((folder / _NUMBERS).read_text(encoding="utf-8")))


def _refusal(path: Path, problem: str) -> DataError:
    return DataError(
        f"{path}: not a file of weights that can be read: {problem}",
        hint="convert it with the program that wrote it: "
        "AutoModelForSeq2SeqLM.from_pretrained(FOLDER).save_pretrained(NEW) of transformers writes model.safetensors",
    )


def _convert(path: str, folder: str, num_bytes: int) -> None:
    """The work of the child: from a file of `torch.save` to safetensors."""
    limit_memory(_SPARE_BYTES + num_bytes)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        tensors, numbers = _parts(loaded)
        with open(os.path.join(folder, _TENSORS), "wb") as file:
            for chunk in tensors_content(tensors).chunks:
                file.write(chunk)
        with open(os.path.join(folder, _NUMBERS), "w", encoding="utf-8") as text:
            json.dump(numbers, text)
    except Exception as error:
        if is_out_of_memory(error):
            os._exit(_OUT_OF_MEMORY)
        with open(os.path.join(folder, _PROBLEM), "w", encoding="utf-8", errors="replace") as text:
            text.write(str(error).strip().split("\n")[0][:300])


def _parts(loaded: Any) -> tuple[dict[str, Tensor], dict[str, int]]:
    if not isinstance(loaded, Mapping):
        raise TypeError("it holds no state dict")
    numbers = {str(name): value for name, value in loaded.items() if type(value) is int}
    state = loaded.get(_STATE, loaded)
    if not isinstance(state, Mapping):
        raise TypeError("it holds no state dict")
    # Tied tensors share memory; each gets its own.
    tensors = {
        str(name): value.detach().clone().contiguous()
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
    }
    if not tensors:
        raise TypeError("it holds no tensor")
    return tensors, numbers
