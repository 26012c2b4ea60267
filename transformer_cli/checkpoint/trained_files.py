"""A trained model: its config, its tokenizers and its weights, read from the chosen checkpoint of a run; converted models; the mean of several."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from transformer_cli.checkpoint.checkpoints import place_aside
from transformer_cli.checkpoint.run_folder import (
    AVERAGE,
    CHECKPOINTS,
    CONFIG_FILE,
    CONVERTED,
    IMPORTED,
    MODEL_FILE,
    OPTIMIZER_FILE,
    STATE_FILE,
    Checkpoint,
    RunFolder,
    StateValues,
    list_checkpoints,
    open_checkpoint,
    ranked,
)
from transformer_cli.config import Config
from transformer_cli.config.loading import MAX_CONFIG_BYTES, stored_config
from transformer_cli.process.errors import (
    ConfigError,
    DataError,
    MissingInputError,
    StorageError,
    TfmError,
)
from transformer_cli.storage import (
    REAL,
    Content,
    DamagedError,
    FileSystem,
    Manifest,
    open_sealed,
    remove,
    write_folder,
)
from transformer_cli.storage.filesystem import (
    FORMAT_VERSION,
    encode_json,
    require_finite,
    tensors_content,
)
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import has_spaces
from transformer_cli.text.seen_words import SeenWords, read_seen_words
from transformer_cli.text.sentences import SEEN_LENGTHS, SeenLengths
from transformer_cli.text.tokenizer import tokenizer_names

if TYPE_CHECKING:  # a translation with another library does not wait for the import of PyTorch
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from transformer_cli.model import Transformer

logger = logging.getLogger(__name__)

MAX_TOKENIZER_BYTES = 100 << 20
Which = Literal["best", "last"]
"""Which checkpoint of a run: the one with the best score, which may be an average, or the one of the highest step."""

Loaded = TypeVar("Loaded")

# For runs without a record. In corpora of everyday sentences, of captions and of speeches, the 99 % quantile of the
# lengths is 1.7 to 3 times their mean, and a translation between languages with spaces has 0.4 tokens or more for each
# token of its source.
_LONGEST_IN_MEANS = 2.5
_SMALLEST_RATIO = 0.4


@dataclass(frozen=True, slots=True)
class TrainedFiles:
    """The config and the tokenizers of a trained model."""

    config: Config
    """Its data paths are cut to their last part."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    checkpoint: Checkpoint
    """The checkpoint from which they were read."""

    @property
    def step(self) -> int:
        """Number of updates of the model."""
        return self.checkpoint.step

    @property
    def run(self) -> RunFolder | None:
        """The run to which the checkpoint belongs; None if it was copied elsewhere."""
        return RunFolder.of_checkpoint(self.checkpoint.folder)

    @property
    def seen_words(self) -> SeenWords | None:
        """The words that the training has seen; None for a checkpoint outside of a run, and for a run that did not record them."""
        return None if self.run is None else read_seen_words(self.run.seen_words_file)

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint."""
        return self.checkpoint.folder


def first_usable(folder: Path, load: Callable[[Path], Loaded], *, which: Which = "best") -> Loaded:
    """What `load` returns for the checkpoint that is used; a damaged checkpoint of a run is skipped with a warning.

    Args:
        folder: the folder of a run, or of one checkpoint that may have been copied elsewhere.
        load: reads a checkpoint folder; it raises DamagedError or StorageError if the next checkpoint shall be
            tried.
        which: the best or the last checkpoint of a run; without any score, the last.

    Raises:
        ValueError: `which` is neither best nor last.
        MissingInputError: there is no such folder, or it has no checkpoint yet.
        StorageError: the run has checkpoints, but none is valid.
    """
    if which not in get_args(Which):
        raise ValueError(f"which: {which!r}; it is one of {', '.join(map(repr, get_args(Which)))}")
    checkpoints_folder = folder / CHECKPOINTS
    if not checkpoints_folder.is_dir():
        if not folder.is_dir():
            raise MissingInputError(
                f"{folder}: no such folder", hint="--run takes the name or the folder of a run"
            )
        return load(folder)
    listing = list_checkpoints(checkpoints_folder)
    averages = list_checkpoints(checkpoints_folder, AVERAGE)
    listing.skipped |= averages.skipped if which == "best" else {}
    order = ranked(listing.whole, averages.whole) if which == "best" else []
    for checkpoint in [*order, *(found for found in listing.whole if found not in order)]:
        try:
            loaded = load(checkpoint.folder)
        except (DamagedError, StorageError) as error:
            listing.skip(checkpoint.folder, error)
        else:
            for reason in listing.skipped.values():
                logger.warning("skipped a checkpoint: %s", reason)
            return loaded
    if not listing.skipped:
        raise MissingInputError(
            f"{folder}: this run has no checkpoint yet", hint="train it: tfm train"
        )
    raise StorageError(
        f"{folder}: no checkpoint is valid:{listing.reasons()}",
        hint="restore the files, use another run (--run), or train again: tfm train --from-scratch",
    )


def seen_lengths_of(checkpoint: Checkpoint, config: Config) -> SeenLengths:
    """The lengths of the texts that a model was trained on.

    A run of an earlier version did not record them. Then the sentences of its validation tell how long those of the
    training were, and only a translation that is shorter than all real ones counts as too short.

    Raises:
        DataError: they are recorded, but are no lengths.
    """
    state = checkpoint.state()
    if SEEN_LENGTHS in state:
        recorded = StateValues(state, str(checkpoint.folder / STATE_FILE)).part(SEEN_LENGTHS)
        is_known = {name: recorded.values.get(name) is not None for name in SeenLengths._fields}
        return SeenLengths(
            recorded.count("longest") if is_known["longest"] else None,
            recorded.number("smallest_ratio") if is_known["smallest_ratio"] else None,
        )
    languages = [language for direction in config.data.directions for language in direction]
    ratio = _SMALLEST_RATIO if all(map(has_spaces, languages)) else None
    if IMPORTED in state:
        return SeenLengths(None, ratio)
    validation = state.get("validation")
    figures = validation if isinstance(validation, dict) else {}
    num_sentences, num_tokens = map(figures.get, ("num_sentences", "num_target_tokens"))
    if not isinstance(num_sentences, int) or not isinstance(num_tokens, int) or num_sentences < 1:
        return SeenLengths(None, ratio)
    return SeenLengths(math.ceil(_LONGEST_IN_MEANS * num_tokens / num_sentences), ratio)


@contextmanager
def hint_on_bad_files() -> Iterator[None]:
    """Tell what to do about files that do not fit together."""
    try:
        yield
    except (DataError, ConfigError) as error:
        error.hint = (
            error.hint or "copy the whole checkpoint folder again, or use another checkpoint"
        )
        raise


@hint_on_bad_files()
def read_files(folder: Path) -> TrainedFiles:
    """Read config and tokenizers of one checkpoint folder.

    Raises:
        DamagedError: a file is missing, added or damaged.
        StorageError: the folder cannot be read.
        DataError: config or tokenizers are not as tfm writes them.
        ConfigError: the config in the checkpoint is invalid.
    """
    checkpoint = open_checkpoint(folder)
    try:
        text = checkpoint.file(CONFIG_FILE, max_bytes=MAX_CONFIG_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{folder / CONFIG_FILE}: not UTF-8 text") from error
    config = stored_config(text, str(folder / CONFIG_FILE))
    return TrainedFiles(config, *tokenizers_of(checkpoint), checkpoint)


def tokenizers_of(checkpoint: Checkpoint) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target; the same object twice where the vocabulary is shared."""
    names = tokenizer_names({file.name for file in checkpoint.manifest.files})
    loaded = []
    for name in names:
        content = checkpoint.file(name, max_bytes=MAX_TOKENIZER_BYTES)
        try:
            loaded.append(Tokenizer.from_file(name, content))
        except DataError as error:
            where = f"{checkpoint.folder / name}: {error.message}"
            raise DataError(where, hint=error.hint) from error
    return loaded[0], loaded[-1]


# Converted models: a model in the format of another library, stored beside its checkpoint for further use.


ORIGIN_FILE = "converted-from.json"
"""Names the files of the checkpoint from which the model was made, with their SHA-256."""

Files = Mapping[str, bytes]
"""File names and contents."""


def converted_files(
    checkpoint: Checkpoint, library: str, layout: str, convert: Callable[[], Files]
) -> Files:
    """The files of a converted model: those on disk if they were made from this model, else newly made ones.

    The folder lies in the run folder; for a checkpoint that was copied elsewhere, beside it. If it cannot be
    written, the model is converted again each time, with a warning.

    Args:
        checkpoint: the model.
        library: the name of the other library, as part of the folder's name.
        layout: names what `convert` makes; a model of another layout is made again.
        convert: makes the files.

    Raises:
        DamagedError: the weights have changed since they were saved.
    """
    folder = _folder(checkpoint, library)
    origin = _origin(checkpoint, layout)
    stored = _stored(folder, origin)
    if stored is not None:
        return stored
    files = dict(convert())
    try:
        _store(folder, checkpoint.manifest, {**files, ORIGIN_FILE: origin})
    except TfmError as error:
        logger.warning("the converted model was not kept: %s", error.message)
    else:
        logger.info("%s: the converted model is stored here for further use", folder)
    return files


def _folder(checkpoint: Checkpoint, library: str) -> Path:
    run = RunFolder.of_checkpoint(checkpoint.folder)
    if run is not None:
        return run.converted_folder(library)
    folder = checkpoint.folder.absolute()
    return folder.with_name(f"{folder.name}.{CONVERTED}{library}")


def _origin(checkpoint: Checkpoint, layout: str) -> bytes:
    """What the converted model depends on: the layout, and the checksums of weights, config and tokenizers."""
    digests = {
        file.name: file.sha256
        for file in sorted(checkpoint.manifest.files, key=lambda file: file.name)
        if file.name not in (OPTIMIZER_FILE, STATE_FILE)
    }
    return encode_json({"layout": layout, "files": digests})


def _stored(folder: Path, origin: bytes) -> Files | None:
    """The files in a folder, after their checksums were compared; None if they must be made."""
    try:
        with open_sealed(folder) as sealed:
            if sealed.read(ORIGIN_FILE, max_bytes=len(origin)) != origin:
                return None
            listed = [file for file in sealed.manifest.files if file.name != ORIGIN_FILE]
            return {file.name: sealed.read(file.name, max_bytes=file.size) for file in listed}
    except (DataError, StorageError):
        return None


def _store(folder: Path, of_checkpoint: Manifest, files: Files) -> None:
    """Write the folder, in place of an older one."""

    if folder.exists():
        remove([folder])
    contents = {name: Content.of(data) for name, data in files.items()}
    write_folder(folder, contents, of_checkpoint, is_marked=True)


# Loading a trained model from a run or from a checkpoint folder, which may come from elsewhere; and the mean of several.


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
    import torch

    from transformer_cli.process.device import require_memory

    checkpoint, model = files.checkpoint, _without_weights(files)
    sizes = files.source_tokenizer.vocab_size, files.target_tokenizer.vocab_size
    try:
        # The reader refuses a file whose tensors do not fit the model.
        in_file = sum(file.size for file in checkpoint.manifest.files if file.name == MODEL_FILE)
        require_memory(
            min(in_file, sum(parameter.nbytes for parameter in model.parameters())),
            torch.device("cpu"),
            f"{checkpoint.folder / MODEL_FILE}: the weights",
            hint="close other programs, or use a machine with more memory",
        )
        weights = checkpoint.model(expected=model.state_dict())
    except DamagedError:
        raise
    except DataError as error:
        error.hint = error.hint or (
            f"{CONFIG_FILE}, the tokenizers ({sizes[0]:,} source and {sizes[1]:,} target tokens) and "
            "the weights must belong to one model: copy the whole checkpoint folder again"
        )
        raise
    return _with_weights(files, model, weights)


def model_of_arrays(files: TrainedFiles, arrays: Mapping[str, NDArray[np.float32]]) -> TrainedModel:
    """The model on the CPU whose weights are in memory already; the checkpoint's file is not read again.

    Args:
        files: of the model.
        arrays: all tensors of the model by their names in PyTorch, with their shapes; they are copied.
    """
    import torch

    weights = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    return _with_weights(files, _without_weights(files), weights)


def _without_weights(files: TrainedFiles) -> Transformer:
    """The model on the meta device: names and shapes only, without memory and without random numbers."""
    import torch

    from transformer_cli.model import Transformer

    sizes = files.source_tokenizer.vocab_size, files.target_tokenizer.vocab_size
    with torch.device("meta"):
        return Transformer(files.config.model, *sizes)


def _with_weights(
    files: TrainedFiles, model: Transformer, weights: Mapping[str, Tensor]
) -> TrainedModel:
    model.load_state_dict(weights, assign=True)
    tensors = [*model.parameters(), *model.buffers()]
    assert not any(tensor.is_meta for tensor in tensors), "a tensor is not in the state_dict"
    return TrainedModel(
        config=files.config,
        source_tokenizer=files.source_tokenizer,
        target_tokenizer=files.target_tokenizer,
        checkpoint=files.checkpoint,
        model=model.eval(),
    )


# Checkpoint averaging: the mean of the weights of several checkpoints, in a checkpoint folder of its own.


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
        file.name: Content.of(newest.file(file.name, max_bytes=MAX_COPIED_BYTES))
        for file in newest.manifest.files
        if file.name not in (MODEL_FILE, OPTIMIZER_FILE, STATE_FILE)
    }
    files = {MODEL_FILE: tensors_content(weights), STATE_FILE: Content.of(encode_json(state))}
    changes: dict[str, Any] = {"format_version": FORMAT_VERSION, "score": None}
    if validation is not None:
        score = validation["value"] if math.isfinite(validation["value"]) else None
        changes |= {"step": validation["step"], "score": score}
    manifest = newest.manifest.model_copy(update=changes)
    aside = place_aside(final, fs=fs)
    write_folder(
        final,
        files | copied,
        manifest,
        aside=aside,
        is_marked=is_marked,
        fs=fs,
    )
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
            what = (
                "tokenizers" if kind[0] == first[1][0] else f"settings of the model ({CONFIG_FILE})"
            )
            raise DataError(
                f"{checkpoint.folder} has other {what} than {first[0].folder}, so their weights cannot be averaged",
                hint="average checkpoints of one run",
            )
        yield trained.model.state_dict()


def _tokenizers(checkpoint: Checkpoint) -> dict[str, str]:
    files = checkpoint.manifest.files
    return {file.name: file.sha256 for file in files if file.name.startswith("tokenizer")}
