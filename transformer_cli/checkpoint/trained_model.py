"""Loading a trained model from a run or from a checkpoint folder, which may come from elsewhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import torch

from transformer_cli.checkpoint.listing import list_averages, list_checkpoints, ranked
from transformer_cli.checkpoint.run_folder import CONFIG_FILE, RunFolder
from transformer_cli.checkpoint.stored import MODEL_FILE, Checkpoint, open_checkpoint
from transformer_cli.config import Config
from transformer_cli.config.loading import MAX_CONFIG_BYTES, check_settings
from transformer_cli.config.yaml_reader import parse_yaml
from transformer_cli.errors import ConfigError, DataError, MissingInputError, StorageError
from transformer_cli.memory import require_memory
from transformer_cli.model import Transformer
from transformer_cli.storage import DamagedError
from transformer_cli.text import Tokenizer, tokenizer_pair

logger = logging.getLogger(__name__)

MAX_TOKENIZER_BYTES = 100 << 20
Which = Literal["best", "last"]
"""Which checkpoint of a run: the one with the best score, which may be an average, or the one of the highest step."""


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model with its tokenizers and its config."""

    config: Config
    """Its data paths are cut to their last part."""
    model: Transformer
    """In eval mode."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    step: int
    folder: Path
    """The checkpoint from which it was loaded."""


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
    if which not in get_args(Which):
        raise ValueError(f"which: {which!r}; it is one of {', '.join(map(repr, get_args(Which)))}")
    checkpoints_folder = RunFolder(folder).checkpoints_folder
    if not checkpoints_folder.is_dir():
        if not folder.is_dir():
            raise MissingInputError(
                f"{folder}: no such folder", hint="--run takes the name or the folder of a run"
            )
        return _load(folder)
    listing = list_checkpoints(checkpoints_folder)
    averages = list_averages(checkpoints_folder)
    listing.skipped |= averages.skipped if which == "best" else {}
    order = ranked(listing.whole, averages.whole) if which == "best" else []
    for checkpoint in [*order, *(found for found in listing.whole if found not in order)]:
        try:
            trained = _load(checkpoint.folder)
        except (DamagedError, StorageError) as error:
            listing.skip(checkpoint.folder, error)
        else:
            for reason in listing.skipped.values():
                logger.warning("skipped a checkpoint: %s", reason)
            return trained
    if not listing.skipped:
        raise MissingInputError(
            f"{folder}: this run has no checkpoint yet", hint="train it: tfm train"
        )
    raise StorageError(
        f"{folder}: no checkpoint is valid:{listing.reasons()}",
        hint="restore the files, use another run (--run), or train again: tfm train --from-scratch",
    )


def load_tokenizers(checkpoint: Checkpoint) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target; the same object twice where the vocabulary is shared."""
    return tokenizer_pair.load_tokenizers(checkpoint.has, partial(_tokenizer, checkpoint))


@contextmanager
def _hint_on_bad_files() -> Iterator[None]:
    try:
        yield
    except (DataError, ConfigError) as error:
        error.hint = (
            error.hint or "copy the whole checkpoint folder again, or use another checkpoint"
        )
        raise


@_hint_on_bad_files()
def _load(folder: Path) -> TrainedModel:
    checkpoint = open_checkpoint(folder)
    config = _load_config(checkpoint)
    source_tokenizer, target_tokenizer = load_tokenizers(checkpoint)
    sizes = source_tokenizer.vocab_size, target_tokenizer.vocab_size
    # On the meta device: names and shapes only, without memory and without random numbers.
    with torch.device("meta"):
        model = Transformer(config.model, *sizes)
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
        config=config,
        model=model.eval(),
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        step=checkpoint.step,
        folder=folder,
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


def _load_config(checkpoint: Checkpoint) -> Config:
    origin = str(checkpoint.folder / CONFIG_FILE)
    settings = parse_yaml(_text(checkpoint, CONFIG_FILE, MAX_CONFIG_BYTES), origin)
    if not isinstance(settings, dict):
        raise DataError(f"{origin}: not a mapping of sections")
    return check_settings(settings, origin)


def _tokenizer(checkpoint: Checkpoint, name: str) -> Tokenizer:
    text = _text(checkpoint, name, MAX_TOKENIZER_BYTES)
    try:
        return Tokenizer.from_json(text)
    except DataError as error:
        raise DataError(f"{checkpoint.folder / name}: {error.message}", hint=error.hint) from error


def _text(checkpoint: Checkpoint, name: str, max_bytes: int) -> str:
    try:
        return checkpoint.file(name, max_bytes=max_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{checkpoint.folder / name}: not UTF-8 text") from error
