"""Loading a trained model from a run or from a checkpoint folder, which may come from elsewhere."""

from dataclasses import dataclass
from pathlib import Path

import torch

from transformer_cli.checkpoint.run_folder import CONFIG_FILE
from transformer_cli.checkpoint.stored import MODEL_FILE, Checkpoint
from transformer_cli.checkpoint.trained_files import (
    TrainedFiles,
    Which,
    first_usable,
    hint_on_bad_files,
    read_files,
)
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError
from transformer_cli.process.memory import require_memory
from transformer_cli.storage import DamagedError


@dataclass(frozen=True, slots=True)
class TrainedModel(TrainedFiles):
    """A model with its tokenizers and its config."""

    model: Transformer
    """In eval mode."""


def load_trained(folder: Path, *, which: Which = "best") -> TrainedModel:
    """Load a model to the CPU; a damaged checkpoint of a run is skipped with a warning.

    Args:
        folder: the folder of a run, or of one checkpoint that may have been copied elsewhere.
        which: the best or the last checkpoint of a run; without any score, the last.

    Raises:
        ValueError: `which` is neither best nor last.
        MissingInputError: there is no such folder, or it has no checkpoint yet.
        StorageError: the run has checkpoints, but none is valid.
        DataError: config, tokenizers and weights do not belong to one model.
        ConfigError: the config in the checkpoint is invalid.
    """
    return first_usable(folder, _load, which=which)


def _load(folder: Path) -> TrainedModel:
    return load_weights(read_files(folder))


@hint_on_bad_files()
def load_weights(files: TrainedFiles) -> TrainedModel:
    """Load the weights to the CPU; raises the errors of `load_trained`."""
    checkpoint = files.checkpoint
    sizes = files.source_tokenizer.vocab_size, files.target_tokenizer.vocab_size
    # On the meta device: names and shapes only, without memory and without random numbers.
    with torch.device("meta"):
        model = Transformer(files.config.model, *sizes)
    try:
        _require_memory(checkpoint, model)
        weights = checkpoint.model(expected=model.state_dict())
    except DamagedError:
        raise
    except DataError as error:
        error.hint = error.hint or (
            f"{CONFIG_FILE}, the tokenizers ({sizes[0]:,} source and {sizes[1]:,} target tokens) and "
            "the weights must belong to one model: copy the whole checkpoint folder again"
        )
        raise
    model.load_state_dict(weights, assign=True)
    tensors = [*model.parameters(), *model.buffers()]
    assert not any(tensor.is_meta for tensor in tensors), "a tensor is not in the state_dict"
    return TrainedModel(
        config=files.config,
        source_tokenizer=files.source_tokenizer,
        target_tokenizer=files.target_tokenizer,
        checkpoint=checkpoint,
        model=model.eval(),
    )


def _require_memory(checkpoint: Checkpoint, model: Transformer) -> None:
    """Refuse weights that do not fit into memory; the reader refuses a file whose tensors do not fit the model."""
    in_file = sum(file.size for file in checkpoint.manifest.files if file.name == MODEL_FILE)
    needed = min(in_file, sum(parameter.nbytes for parameter in model.parameters()))
    require_memory(
        needed,
        torch.device("cpu"),
        f"{checkpoint.folder / MODEL_FILE}: the weights",
        hint="close other programs, or use a machine with more memory",
    )
