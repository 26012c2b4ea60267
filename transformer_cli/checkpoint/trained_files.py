"""A trained model: its run, found by name or path; its config, its tokenizers and its weights, read from the chosen checkpoint; converted models."""

from __future__ import annotations

import difflib
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os.path import isdir, isfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from transformer_cli.checkpoint.run_folder import (
    AVERAGE,
    CHECKPOINTS,
    CONFIG_FILE,
    CONVERTED,
    IMPORTED,
    MODEL_FILE,
    OPTIMIZER_FILE,
    RUNS,
    STATE_FILE,
    STEPS_FILE,
    Checkpoint,
    RunFolder,
    StateValues,
    list_checkpoints,
    list_run_or_averages,
    open_checkpoint,
    ranked,
    set_aside_before,
)
from transformer_cli.config import Config
from transformer_cli.config.loading import MAX_CONFIG_BYTES, stored_config
from transformer_cli.process.errors import ConfigError, DataError, MissingInputError, StorageError, TfmError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import MANIFEST_NAME, DamagedError, Manifest, open_sealed, remove, write_folder
from transformer_cli.storage.filesystem import encode_json
from transformer_cli.storage.writing import is_running
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import has_spaces
from transformer_cli.text.sentences import SEEN_LENGTHS, SeenLengths
from transformer_cli.text.tokenizer import Tokenizers, read_tokenizers, tokenizer_names

if TYPE_CHECKING:  # a translation with another library does not wait for the import of PyTorch
    import numpy as np
    from numpy.typing import NDArray

    from transformer_cli.model import Transformer

logger = logging.getLogger(__name__)

MAX_TOKENIZER_BYTES = 100 << 20
Which = Literal["best", "last"]
"""Which checkpoint of a run: the one with the best score, which may be an average, or the one of the highest step."""

Loaded = TypeVar("Loaded")

MAX_SHOWN = 8
"""The most names or reasons in one message."""
DEMONSTRATION = "demonstration"
"""The name by which `--run` finds the small model that comes with tfm, if no run and no path has this name."""
PACKAGED_RUN = Path(__file__).resolve().parents[1] / DEMONSTRATION
"""The model that comes along, in an installed package: all folders of a user share it, so nothing changes it."""
_TRAIN = "train one first: tfm train --config en-it.yaml"
_HINT_ON_BAD_FILES = "copy the whole checkpoint folder again, or use another checkpoint"
_OR_DEMONSTRATION = f"or take the small English-French model that comes with tfm: --run {DEMONSTRATION}"

# For runs without a record. In corpora of everyday sentences, of captions and of speeches, the 99 % quantile of the
# lengths is 1.7 to 3 times their mean, and a translation between languages with spaces has 0.4 tokens or more for each
# token of its source.
_LONGEST_IN_MEANS = 2.5
_SMALLEST_RATIO = 0.4


# The run that is meant, and which of its checkpoints is used.


def find_run(run: str | None = None, runs_folder: Path = RUNS, *, or_demonstration: bool = False) -> Path:
    """The folder of a run, or of a single checkpoint.

    Args:
        run: the name of a run, or the path of the folder of a run or a checkpoint, or of a file in it; None:
            the run that saved last, according to `saved_at` in the manifests. "demonstration" is the small model
            that comes with tfm, where no run and no path has this name.
        runs_folder: the folder of all runs.
        or_demonstration: whether the small model answers where no run is named and there is none. It is for commands that show a
            translation to the person who asks: somebody who has just installed tfm sees one, and the warning says whose it is.
            Where a model is served or scored, one that nobody has named would be a mistake that nobody sees.

    Raises:
        MissingInputError: there is no such run, or it has no checkpoint yet.
        StorageError: there are checkpoints, but none of any run is valid.
    """
    if run is None and or_demonstration and not _run_names(runs_folder):
        logger.warning(
            "no run under %s/: the small demonstration model that comes with tfm answers (English to French, everyday "
            "sentences); runs are looked for in the folder where you are, and to train one of your own: tfm init TABLE",
            runs_folder,
        )
        return demonstration_run()
    if run is None:
        return _newest(runs_folder)
    if not run.strip():
        raise MissingInputError("the name of the run is empty", hint=_hint_on_names(run, runs_folder))
    paths = [runs_folder / run, Path(run)]
    for path in [*paths, demonstration_run()] if run == DEMONSTRATION else paths:
        # The path of a file in a run or checkpoint means that run or checkpoint; `checkpoints/` means its run.
        is_in_one = isfile(path) or path.name == CHECKPOINTS
        for folder in (path, path.parent) if is_in_one else (path,):
            # `os.path` returns False if a name is too long for the system; `Path` would raise an error.
            if isdir(folder / CHECKPOINTS) or isfile(folder / MANIFEST_NAME):
                return folder
    raise _no_run(run, paths, runs_folder)


def demonstration_run() -> Path:
    """The folder of the small model that comes with tfm: English to French, everyday sentences; its README.md has data and scores."""
    package = PACKAGED_RUN.parent
    return PACKAGED_RUN if PACKAGED_RUN.is_dir() else package.parent / "docs" / DEMONSTRATION  # in a clone


def _newest(runs_folder: Path) -> Path:
    listings = {name: list_run_or_averages(runs_folder / name) for name in _run_names(runs_folder)}
    usable = [(one.manifest.saved_at, name) for name, found in listings.items() for one in found.whole]
    if usable:
        return runs_folder / max(usable)[1]
    if not listings:
        raise MissingInputError(
            f"no run under {runs_folder}/",
            hint=f"{_TRAIN}; {_OR_DEMONSTRATION}",
        )
    damage = [reason for found in listings.values() for reason in found.skipped.values()]
    if not damage:
        shown = ", ".join([*listings][:MAX_SHOWN])
        more = f" and {len(listings) - MAX_SHOWN} more" if len(listings) > MAX_SHOWN else ""
        which = f"the runs {shown}{more} have" if len(listings) > 1 else f"the run {shown} has"
        # Of several, the one that is being trained is the one that somebody waits for.
        name = max(listings, key=lambda name: is_running(runs_folder / name))
        raise MissingInputError(
            f"{runs_folder}/: {which} no checkpoint yet", hint=_hint_without_checkpoint(runs_folder / name)
        )
    lines = "".join(f"\n    {reason}" for reason in damage[:MAX_SHOWN])
    more = f"\n    and {len(damage) - MAX_SHOWN} more" if len(damage) > MAX_SHOWN else ""
    raise StorageError(
        f"{runs_folder}/: no checkpoint is valid:{lines}{more}",
        hint="restore the files named here, or train again: tfm train --from-scratch --config ...",
    )


def _no_run(run: str, paths: Sequence[Path], runs_folder: Path) -> MissingInputError:
    """The error for a name or path that is none of a run with a checkpoint: what it is instead."""
    if any(map(isfile, paths)):
        return MissingInputError(
            f"{run}: a file, where a run is expected",
            hint="give the name of a run, or the folder of a run or of a checkpoint; "
            f"{_hint_on_names(run, runs_folder)}",
        )
    for path in filter(isdir, paths):
        if whole := list_checkpoints(path).whole:
            return MissingInputError(
                f"{path}: a folder of checkpoints, where a run or one checkpoint is expected",
                hint=f"give one of them, such as {whole[0].folder}",
            )
    for path in paths:
        if RunFolder(path).is_begun():
            return MissingInputError(f"{run}: this run has no checkpoint yet", hint=_hint_without_checkpoint(path))
    for path in paths:
        if isfile(path / STEPS_FILE):
            return MissingInputError(
                f"{path}: not a run, but the text that tfm student, back-translate or diversify has made for one",
                hint="give the run that was trained on it; tfm runs lists the runs",
            )
    found = [path for path in paths if isdir(path)]
    return MissingInputError(
        f"{found[0]}: not a run: this folder has no {CHECKPOINTS}/, and is not a checkpoint"
        if found
        else f"{run}: no such run: no folder of this name under {runs_folder}/, and no such path",
        hint=_hint_on_names(run, runs_folder),
    )


def _hint_without_checkpoint(run_folder: Path) -> str:
    earlier = set_aside_before(run_folder)
    first = f"take one of its earlier checkpoints, in {earlier[-1]}, or " if earlier else ""
    what_next = (
        "wait for its first checkpoint; Ctrl-C in its training saves one, too"
        if is_running(run_folder)
        else "start its training again with the same command; tfm train saves at the end, and on Ctrl-C"
    )
    return f"{first}{what_next}"


def _hint_on_names(run: str, runs_folder: Path) -> str:
    names = _run_names(runs_folder)
    # A person may give the path of a run that is not there, or the name of its config.
    meant = Path(run).name.removesuffix(".yaml").removesuffix(".yml")
    close = difflib.get_close_matches(meant, names, n=1, cutoff=0.5)
    close = close or difflib.get_close_matches(meant, [DEMONSTRATION], cutoff=0.75)
    if close:
        return f"did you mean {for_shell(close[0])}?"
    if not names:
        where = "in the folder where you are" if runs_folder == RUNS else f"in {runs_folder}"
        return f"runs are looked for {where}, which has none: change to the folder where tfm train ran, or {_TRAIN}; {_OR_DEMONSTRATION}"
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return f"existing runs: {', '.join(names[:MAX_SHOWN])}{more}"


def _run_names(runs_folder: Path) -> list[str]:
    """The runs in a folder, also those whose training has begun and has saved nothing yet."""
    if not runs_folder.is_dir():
        return []
    return sorted(one.name for one in runs_folder.glob("*") if isdir(one / CHECKPOINTS) or RunFolder(one).is_begun())


def first_usable(folder: Path, load: Callable[[Path], Loaded], *, which: Which = "best") -> Loaded:
    """What `load` returns for the checkpoint that is used: of those that may be used, the best one that is whole.

    A warning tells of those that were skipped, because `load` has raised DamagedError or StorageError.

    Args:
        folder: of a run, or of one checkpoint that may have been copied elsewhere.
        load: reads a checkpoint folder.
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
            raise MissingInputError(f"{folder}: no such folder", hint="--run takes the name or the folder of a run")
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
            continue
        for reason in listing.skipped.values():
            logger.warning("skipped a checkpoint: %s", reason)
        return loaded
    if not listing.skipped:
        raise MissingInputError(f"{folder}: this run has no checkpoint yet", hint="train it: tfm train")
    raise StorageError(
        f"{folder}: no checkpoint is valid:{listing.reasons()}",
        hint="restore the files, use another run (--run), or train again: tfm train --from-scratch",
    )


# The config and the tokenizers of a checkpoint.


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
    def tokenizers(self) -> Tokenizers:
        """Of source and target."""
        return self.source_tokenizer, self.target_tokenizer

    @property
    def step(self) -> int:
        """Number of updates of the model."""
        return self.checkpoint.step

    @property
    def run(self) -> RunFolder | None:
        """The run to which the checkpoint belongs; None if it was copied elsewhere."""
        return RunFolder.containing(self.checkpoint.folder)

    @property
    def is_demonstration(self) -> bool:
        """Whether it is the small model that comes with tfm."""
        return self.run is not None and self.run.path.resolve() == demonstration_run().resolve()

    @property
    def name(self) -> str:
        """The name of the run: as its config has it, or as people name the model that comes with tfm."""
        return DEMONSTRATION if self.is_demonstration else self.config.name

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint."""
        return self.checkpoint.folder


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


def read_trained_files(folder: Path) -> TrainedFiles:
    """Read config and tokenizers of one checkpoint folder.

    Raises:
        DamagedError: a file is missing, added or damaged.
        StorageError: the folder cannot be read.
        DataError: config or tokenizers are not as tfm writes them.
        ConfigError: the config in the checkpoint is invalid.
    """
    try:
        checkpoint = open_checkpoint(folder)
        try:
            text = checkpoint.file(CONFIG_FILE, max_bytes=MAX_CONFIG_BYTES).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{folder / CONFIG_FILE}: not UTF-8 text") from error
        config = stored_config(text, str(folder / CONFIG_FILE))
        return TrainedFiles(config, *tokenizers_of(checkpoint), checkpoint)
    except (DataError, ConfigError) as error:
        error.hint = error.hint or _HINT_ON_BAD_FILES
        raise


def tokenizers_of(checkpoint: Checkpoint) -> Tokenizers:
    """The tokenizers of source and target; the same object twice where the vocabulary is shared."""
    names = tokenizer_names({file.name for file in checkpoint.manifest.files})
    contents = {name: checkpoint.file(name, max_bytes=MAX_TOKENIZER_BYTES) for name in names}
    return read_tokenizers(contents, checkpoint.folder)


# Converted models: a model in the format of another library, stored beside its checkpoint for further use.


ORIGIN_FILE = "converted-from.json"
"""Names the files of the checkpoint from which the model was made, with their SHA-256."""

Files = Mapping[str, bytes]
"""File names and contents."""


def converted_files(checkpoint: Checkpoint, library: str, layout: str, convert: Callable[[], Files]) -> Files:
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
    run = RunFolder.containing(checkpoint.folder)
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


def _store(folder: Path, manifest: Manifest, files: Files) -> None:
    """Write the folder, in place of an older one."""

    if folder.exists():
        remove([folder])
    write_folder(folder, files, manifest, is_marked=True)


# Loading a trained model from a run or from a checkpoint folder, which may come from elsewhere.


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
    return load_weights(read_trained_files(folder))


def load_weights(files: TrainedFiles, arrays: Mapping[str, NDArray[np.float32]] | None = None) -> TrainedModel:
    """Load the weights to the CPU; raises the errors of `load_trained`.

    Args:
        files: of the model.
        arrays: all tensors of the model by their names in PyTorch, with their shapes, if they are in memory already; they are
            copied, and the checkpoint's file is not read again.
    """
    import torch

    from transformer_cli.model import Transformer
    from transformer_cli.process.device import require_memory

    checkpoint, source, target = files.checkpoint, files.source_tokenizer, files.target_tokenizer
    try:
        with torch.device("meta"):  # names and shapes only, without memory and without random numbers
            model = Transformer(files.config.model, source.vocab_size, target.vocab_size)
        if arrays is not None:
            weights = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        else:
            # The reader refuses a file whose tensors do not fit the model.
            in_file = sum(file.size for file in checkpoint.manifest.files if file.name == MODEL_FILE)
            require_memory(
                min(in_file, sum(parameter.nbytes for parameter in model.parameters())),
                torch.device("cpu"),
                f"{checkpoint.folder / MODEL_FILE}: the weights",
                hint="close other programs, or use a machine with more memory",
            )
            weights = checkpoint.model(expected=model.state_dict())
    except (DamagedError, ConfigError) as error:
        error.hint = error.hint or _HINT_ON_BAD_FILES
        raise
    except DataError as error:
        error.hint = error.hint or (
            f"{CONFIG_FILE}, the tokenizers ({source.vocab_size:,} source and {target.vocab_size:,} target tokens) and "
            "the weights must belong to one model: copy the whole checkpoint folder again"
        )
        raise
    model.load_state_dict(weights, assign=True)
    tensors = [*model.parameters(), *model.buffers()]
    assert not any(tensor.is_meta for tensor in tensors), "a tensor is not in the state_dict"
    return TrainedModel(files.config, source, target, checkpoint, model.eval())
