"""The layout of a run folder, `runs/NAME`; the checkpoints in it, which of them are kept, and the numbers of their state; the files of an earlier run, set aside."""

import errno
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_cli import storage
from transformer_cli.config import LOWER_IS_BETTER, TrainingConfig
from transformer_cli.process.errors import CannotCreateError, DataError, StorageError, TrainingStoppedError
from transformer_cli.process.messages import shortened
from transformer_cli.storage import Content, DamagedError, FileSystem, Manifest, open_sealed, remove
from transformer_cli.storage.filesystem import (
    Stamp,
    encode_json,
    is_bare_name,
    parse_json,
    read_tensors,
    require_finite,
    tensors_content,
)

if TYPE_CHECKING:
    from torch import Tensor

RUNS = Path("runs")
"""The folder of all runs, relative to the current folder."""
CHECKPOINTS = "checkpoints"
CONFIG_FILE = "config.yaml"
"""The name of the config in a run folder and in a checkpoint folder."""
LOCK_FILE = ".lock"
CALIBRATION_FILE = "calibration.json"
SHORTLIST_FILE = "shortlist.npz"
STEPS_FILE = "steps.jsonl"
"""In the folder of a corpus that models write: the steps that are done. Its config.yaml is that of a run elsewhere."""
CONVERTED = "converted-"
"""Prefix of the name of the folder that holds a model in the format of another library."""


class RunFolder:
    """The paths of the files and folders of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints_folder = path / CHECKPOINTS
        self.config_file = path / CONFIG_FILE
        """The config with all defaults filled in; training with it repeats the run."""
        self.environment_file = path / "environment.json"
        """Versions of the software, the device, and the fingerprint of the data."""
        self.metrics_file = path / "metrics.jsonl"
        """One JSON object for each report and each validation."""
        self.learning_file = path / "learning.jsonl"
        """One JSON object for each validation: the same few sentences, and what the model made of them."""
        self.seen_words_file = path / "seen_words.json"
        """The words that the training has seen, as hashes."""
        self.lock_file = path / LOCK_FILE
        """Where it is, a process trains or has trained here; see `storage.writing.is_running`."""
        self.log_file = path / "train.log"
        self.tensorboard_folder = path / "tensorboard"
        """Event files: one folder for the training, one for the validations."""
        self.data_folder = path / "data"
        """The corpus as token ids, and the tokenizers."""
        self.given_folder = path / "given"
        """The pairs that a program has given to `train`, as files."""

    def records(self) -> tuple[Path, ...]:
        """What belongs to the checkpoints of a run, and is renamed with them when it starts from scratch."""
        files = self.config_file, self.metrics_file, self.learning_file, self.seen_words_file
        return *files, self.tensorboard_folder, self.data_folder

    def data_of_training(self) -> dict[str, str] | None:
        """The fingerprint of the data that the run was trained on last; None if the file that tells it was lost or is damaged."""
        try:
            return dict(json.loads(self.environment_file.read_bytes())["data"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def require_own_files(self) -> None:
        """Check the files and folders to which the run will write; a run from elsewhere may have links or pipes there.

        The run folder itself may be a symbolic link to another disk.

        Raises:
            CannotCreateError: a file or folder of the run is a symbolic link, or of another kind; or the
                folder of the checkpoints cannot be written to.
        """
        board = self.tensorboard_folder
        files = (self.lock_file, self.config_file, self.environment_file, self.metrics_file)
        for file in (*files, self.learning_file, self.seen_words_file, self.log_file):
            _require_kind(file, is_right=file.is_file(), kind="a file")
        boards = board, board / "train", board / "validation"
        for folder in (self.checkpoints_folder, self.given_folder, *boards):
            _require_kind(folder, is_right=folder.is_dir(), kind="a folder")
        if self.checkpoints_folder.is_dir() and not os.access(self.checkpoints_folder, os.W_OK | os.X_OK):
            if storage.is_read_only_disk(self.checkpoints_folder):
                raise CannotCreateError(f"{self.checkpoints_folder}: {os.strerror(errno.EROFS)}")
            raise CannotCreateError(
                f"{self.checkpoints_folder}: no permission to write into this folder",
                hint="change its permissions, or give another name: --set name=...",
            )

    def is_only_logged(self) -> bool:
        """Whether it holds nothing but given pairs, the log and the lock file: no run has left anything in it."""
        return {*os.listdir(self.path)} <= {LOCK_FILE, self.log_file.name, self.given_folder.name}

    def remove_if_only_logged(self) -> None:
        """Remove the folder if that is all; the caller has locked the lock file."""
        with suppress(OSError, StorageError):  # it stays, and does no harm
            if self.is_only_logged():
                remove([self.path])

    def is_begun(self) -> bool:
        """Whether `tfm train` has made this folder, perhaps without a checkpoint yet."""
        if isfile(self.path / STEPS_FILE):
            return False
        return any(map(isfile, (self.config_file, self.log_file, self.environment_file)))

    @classmethod
    def containing(cls, checkpoint: Path) -> "RunFolder | None":
        """The run that a checkpoint folder lies in; None for a checkpoint that was copied elsewhere."""
        is_in_run = checkpoint.absolute().parent.name == CHECKPOINTS
        return cls(checkpoint.parent.parent) if is_in_run else None

    def converted_folder(self, library: str) -> Path:
        """The model in the format of another library, made from the checkpoint that was used last."""
        return self.path / f"{CONVERTED}{library}"


def name_of_run(folder: Path, runs_folder: Path = RUNS) -> str:
    """What a person types to name a run, or a checkpoint of one: its name if it lies in `runs_folder`, else the path of its folder."""
    run = RunFolder.containing(folder)
    path = folder if run is None else run.path
    is_in_folder = path.absolute().parent == runs_folder.absolute()
    return path.name if is_in_folder else str(path)


def _require_kind(path: Path, *, is_right: bool, kind: str) -> None:
    is_junction = getattr(path, "is_junction", None)  # links to folders on Windows, from Python 3.12 on
    if path.is_symlink() or (is_junction is not None and is_junction()):
        raise CannotCreateError(
            f"{path}: a symbolic link; a run writes only into its own folder",
            hint="delete this link, or move its target here; only the whole run folder may be a link",
        )
    if path.exists() and not is_right:
        raise CannotCreateError(f"{path}: not {kind}", hint=f"move it away: a training makes {kind} of this name")


# The files of a checkpoint.


MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
STATE_FILE = "state.json"
NEVER_NEGATIVE = (".step", ".exp_avg_sq", ".row_var", ".col_var", ".variance")
"""Suffixes of the names of counts and mean squares in the state of an optimizer."""
RAW = ".raw"
"""Suffix of the names of the raw weights, from which training goes on if model.safetensors holds averaged weights."""
IMPORTED = "imported"
"""The key of the origin of an imported model, in state.json and environment.json."""
MAX_STATE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of training at one step: enough to resume and to translate."""

    step: int
    model: "Mapping[str, Tensor]"
    """`state_dict()` of the model; a tied tensor has one name."""
    optimizer: "Mapping[str, Tensor]"
    """Keys are the parameter's name, a dot, and the name of the optimizer's state, or `raw` for a weight."""
    state: Mapping[str, Any]
    """Values for JSON: the position in the data, the best score, counters."""
    files: Mapping[str, bytes]
    """config.yaml and the tokenizers, from `portable_files`."""

    def contents(self) -> dict[str, Content | bytes]:
        """The files of the checkpoint."""
        assert all(map(is_bare_name, self.files)), "a file of a checkpoint has a plain name"
        try:
            raw = {name: tensor for name, tensor in self.optimizer.items() if name.endswith(RAW)}
            require_finite({**self.model, **raw}, f"step {self.step}")
        except DataError as error:
            raise TrainingStoppedError(
                f"{error.message}; this step was not saved", hint="the previous checkpoint is intact"
            ) from error
        return {
            MODEL_FILE: tensors_content(self.model),
            OPTIMIZER_FILE: tensors_content(self.optimizer),
            STATE_FILE: encode_json(self.state),
            **self.files,
        }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint folder with a valid manifest, whose files have the sizes that the manifest lists.

    Every read compares the SHA-256 of the file first, unless this object has compared it before and it is the same file still.
    """

    folder: Path
    manifest: Manifest
    _compared: dict[str, Stamp] = field(default_factory=dict, compare=False, repr=False)

    @property
    def step(self) -> int:
        """Number of updates of the model."""
        return self.manifest.step

    def scored(self, metric: str) -> "Scored":
        """Step, score and loss; a score of another metric is ignored."""
        if self.manifest.score is None or self.manifest.metric != metric:
            return Scored(self.step, None)
        loss = math.inf
        # The score alone counts if the state does not contain the loss of the validation at this step.
        with suppress(DataError, StorageError, KeyError, TypeError, ValueError):
            validation = self.state()["validation"]
            if validation["step"] == self.step and not math.isnan(found := float(validation["loss"])):
                loss = found
        return Scored(self.step, self.manifest.score, loss)

    def rival(self) -> tuple[int, bool] | None:
        """The step of the checkpoint that an average was compared with, and whether the average was better; else None."""
        with suppress(DataError, StorageError, KeyError, TypeError):
            rival = self.state()["average"]["rival"]
            if isinstance(rival["step"], int) and isinstance(rival["is_worse"], bool):
                return rival["step"], rival["is_worse"]
        return None

    def verify(self) -> None:
        """Read every file and compare its checksum.

        Raises:
            DamagedError: a file has changed since it was saved.
        """
        with open_sealed(self.folder, known=(self.manifest, self._compared)) as sealed:
            for listed in sealed.manifest.files:
                with sealed.open(listed.name):
                    pass

    def file(self, name: str, *, max_bytes: int) -> bytes:
        """All bytes of a file of at most `max_bytes`."""
        with open_sealed(self.folder, known=(self.manifest, self._compared)) as sealed:
            return sealed.read(name, max_bytes=max_bytes)

    def state(self) -> dict[str, Any]:
        """The saved `Snapshot.state`."""
        origin = str(self.folder / STATE_FILE)
        state = parse_json(self.file(STATE_FILE, max_bytes=MAX_STATE_BYTES), origin)
        if not isinstance(state, dict):
            raise DataError(f"{origin}: not a JSON object")
        return state

    def training_state(self) -> "StateValues":
        """The saved `Snapshot.state`, for reading it field by field.

        Raises:
            DataError: the state and the manifest name different steps.
        """
        state = StateValues(self.state(), str(self.folder / STATE_FILE))
        progress = state.part("progress")
        if progress.count("step") != self.step:
            step = progress.count("step")
            raise progress.refusal("step", f"is {step}, but the checkpoint is of step {self.step}")
        return state

    def validation(self) -> "StateValues":
        """The figures of the last validation before this checkpoint; empty before the first.

        Raises:
            DataError: there is no such part of the state.
        """
        return StateValues(self.state(), str(self.folder / STATE_FILE)).part("validation")

    def model(self, expected: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
        """The weights.

        Args:
            expected: `state_dict()` of the model to be loaded, on any device, also meta.

        Raises:
            DamagedError: the file has changed since it was saved.
            DataError: it has other tensors than expected, or values that are NaN or infinite.
        """
        origin, known = str(self.folder / MODEL_FILE), (self.manifest, self._compared)
        with open_sealed(self.folder, known=known) as sealed, sealed.open(MODEL_FILE) as file:
            weights = read_tensors(file, expected, origin)
        require_finite(weights, origin)
        return weights

    def optimizer(self, expected: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
        """The optimizer's state, as in `Snapshot.optimizer`; raises the errors of `model`."""
        origin, known = str(self.folder / OPTIMIZER_FILE), (self.manifest, self._compared)
        with open_sealed(self.folder, known=known) as sealed, sealed.open(OPTIMIZER_FILE) as file:
            state = read_tensors(file, expected, origin)
        require_finite({name: tensor for name, tensor in state.items() if name.endswith(RAW)}, origin)
        for name, tensor in state.items():
            is_square = name.endswith(NEVER_NEGATIVE)
            if bool(tensor.isnan().any()) or (is_square and bool((tensor < 0).any())):
                raise DataError(
                    f"{origin}: {name} has impossible values, NaN or negative",
                    hint="use another checkpoint, or start again with --from-scratch",
                )
        return state


def open_checkpoint(folder: Path) -> Checkpoint:
    """Open the checkpoint in a folder.

    Raises:
        DamagedError: a file is missing, added or damaged.
        StorageError: the folder cannot be read.
    """
    with open_sealed(folder) as sealed:
        return Checkpoint(folder, sealed.manifest)


# The checkpoints of a folder, by their manifests, because names and file times can be wrong.


REPLACED = ".replaced-"
"""Prefix of the name of a checkpoint while a new one of the same step is written."""
AVERAGE = "average-"
"""Prefix of the name of the average that a run makes at its end; the number is that of its last step."""
_NAME = rf"(?P<replaced>{re.escape(REPLACED)})?%s(?P<step>[0-9]{{1,12}})"


@dataclass(slots=True)
class Listing:
    """The usable and the unusable checkpoints of a folder."""

    whole: list[Checkpoint] = field(default_factory=list)
    """Newest first; the names and sizes of their files were compared, but only the checksum of the state."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Folder name to the reason why the checkpoint is unusable."""

    def skip(self, folder: Path, error: DamagedError | StorageError) -> None:
        """Move a checkpoint from `whole` to `skipped`."""
        self.whole = [checkpoint for checkpoint in self.whole if checkpoint.folder != folder]
        self.skipped[folder.name] = error.message

    def reasons(self) -> str:
        """One line for each skipped checkpoint, for a message."""
        return "".join(f"\n    {reason}" for reason in self.skipped.values())


def list_checkpoints(folder: Path, prefix: str = "step-") -> Listing:
    """The checkpoints of a folder, which need not exist.

    Args:
        prefix: of their names; `AVERAGE`: the averages that runs made at their end, which `tfm translate` can use, but from
            which no training continues.
    """
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        names = []
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read: {error.strerror}") from error
    # Step, whether it is replaced, and path; highest step first; of equal steps, the replaced one last.
    candidates = [
        (-int(match["step"]), match["replaced"] is not None, folder / match[0])
        for match in map(re.compile(_NAME % prefix).fullmatch, names)
        if match is not None
    ]
    listing = Listing()
    for negative_step, is_replaced, path in sorted(candidates):
        step = -negative_step
        if is_replaced and any(one.manifest.step == step for one in listing.whole):
            continue
        try:
            if path.is_symlink():
                raise DamagedError(f"{path}: a symbolic link, where a folder is expected")
            checkpoint = open_checkpoint(path)
            if (said := checkpoint.manifest.step) != step:
                raise DamagedError(f"{path}: its manifest says step {said}")
            # The state has the loss that decides between equal scores, so its checksum is compared here.
            sizes = {file.name: file.size for file in checkpoint.manifest.files}
            if sizes.get(STATE_FILE, MAX_STATE_BYTES + 1) <= MAX_STATE_BYTES:
                checkpoint.file(STATE_FILE, max_bytes=MAX_STATE_BYTES)
        except (DamagedError, StorageError) as error:
            listing.skip(path, error)
        else:
            listing.whole.append(checkpoint)
    return listing


def ranked(checkpoints: Sequence[Checkpoint], averages: Sequence[Checkpoint] = ()) -> list[Checkpoint]:
    """The checkpoints with a score, best first; only those with the run and metric of the newest one.

    An average stands directly before or behind the checkpoint that it was compared with. If it was compared with none, or if
    that one is not there, its score decides, and it comes before a checkpoint only if it is better.
    """
    both = [*checkpoints, *averages]
    if len(both) < 2:  # one alone is compared with none
        return [found for found in both if found.manifest.score is not None]
    newest = max(both, key=lambda found: found.step).manifest
    keys: dict[Path, tuple[float, ...]] = {
        found.folder: (*key[:2], 0, found.step)
        for found in both
        if found.manifest.run_id == newest.run_id
        and (key := ranking_key(found.scored(newest.metric), newest.metric)) is not None
    }
    places = {found.step: keys[found.folder] for found in checkpoints if found.folder in keys}
    for found in averages:
        if found.folder in keys:
            score, loss, order = *keys[found.folder][:2], 1
            rival = found.rival()
            if rival is not None and rival[0] in places:
                score, loss, order = *places[rival[0]][:2], -1 if rival[1] else 1
            keys[found.folder] = (score, loss, order, found.step)
    return sorted((one for one in both if one.folder in keys), key=lambda one: keys[one.folder])


def list_run(run_folder: Path) -> Listing:
    """The checkpoints of one of many runs; a folder that cannot be read counts as a skipped checkpoint."""
    folder = RunFolder(run_folder).checkpoints_folder
    try:
        return list_checkpoints(folder)
    except StorageError as error:
        return Listing(skipped={folder.name: error.message})


def list_run_or_averages(folder: Path) -> Listing:
    """The checkpoints of a run; its averages, if it was passed on with these alone."""
    listing = list_run(folder)
    if listing.whole or listing.skipped:
        return listing
    try:
        return list_checkpoints(RunFolder(folder).checkpoints_folder, AVERAGE)
    except StorageError:
        return Listing()


# The checkpoints that are kept: the newest and the best.


class Scored(NamedTuple):
    """The step of a checkpoint, its score, and its loss on the same text, which decides between equal scores."""

    step: int
    score: float | None
    loss: float = math.inf


@dataclass(frozen=True, slots=True)
class Retention:
    """How many of the newest checkpoints are kept, and how many of the best by a metric.

    `num_regular` more are kept for an average at the end of the run: the newest whose step is a multiple of
    `save_every`. Checkpoints of other steps do not count, because an interruption saves at any step.
    """

    keep_last: int = 2
    keep_best: int = 1
    metric: str = "loss"
    num_regular: int = 0
    save_every: int = 1

    @classmethod
    def of(cls, training: TrainingConfig) -> "Retention":
        """The retention that a config asks for."""
        return cls(
            keep_last=training.keep_last,
            keep_best=training.num_kept_best,
            metric=training.best_metric,
            num_regular=(training.average_last or 0) if training.average_of == "last" else 0,
            save_every=training.save_every,
        )

    def superfluous(self, checkpoints: Iterable[Scored]) -> set[int]:
        """The steps whose checkpoints are neither among the newest nor among the best."""
        checkpoints = list(checkpoints)
        newest = sorted((checkpoint.step for checkpoint in checkpoints), reverse=True)
        keys = (ranking_key(one, self.metric) for one in checkpoints)
        best = [step for *_, step in sorted(key for key in keys if key is not None)]
        regular = [step for step in newest if step % self.save_every == 0]
        kept = {*newest[: self.keep_last], *best[: self.keep_best], *regular[: self.num_regular]}
        return set(newest) - kept


def ranking_key(scored: Scored, metric: str) -> tuple[float, float, int] | None:
    """The key by which checkpoints are sorted, best first: score, loss, step; None without a score."""
    if scored.score is None:
        return None
    return -goodness(scored.score, metric), scored.loss, scored.step


def goodness(value: float, metric: str) -> float:
    """The score, or its negative where lower is better: higher goodness is always better."""
    return -value if metric in LOWER_IS_BETTER else value


# The numbers of `state.json`, checked one by one: a checkpoint may come from elsewhere.


MOST = 10**10
"""The largest count that is accepted: the largest `training.max_steps` that a config may have."""
_HINT = (
    "use another checkpoint: without this folder, tfm train goes on from the previous one; "
    "or start again with --from-scratch"
)


@dataclass(frozen=True, slots=True)
class StateValues:
    """A JSON object whose values are checked when they are read; errors name the file and the field."""

    values: Mapping[str, Any]
    origin: str
    """What messages call the file."""
    path: str = ""
    """Of the object in the file: the names of the fields that lead to it, each with a dot behind it."""

    def part(self, name: str) -> "StateValues":
        """The object in this field."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise self.refusal(name, "is not a JSON object")
        return StateValues(value, self.origin, f"{self.path}{name}.")

    def count(self, name: str, *, most: int = MOST) -> int:
        """A whole number from 0 to `most`."""
        value = self.values.get(name)
        if type(value) is not int or not 0 <= value <= most:
            raise self.refusal(name, f"is {_shown(value)} instead of a whole number from 0 to {most:,}")
        return value

    def counts(self, name: str, *, least: int) -> list[int]:
        """A list of at least `least` whole numbers."""
        items = self._items(name)
        if len(items.values) < least:
            raise self.refusal(name, f"has {len(items.values)} values instead of {least}")
        return [items.count(place) for place in items.values]

    def number(self, name: str, *, with_nan: bool = False) -> float:
        """A number, which may be infinite; `with_nan` allows NaN."""
        value: Any = self.values.get(name)
        is_number = type(value) is float or (type(value) is int and abs(value) <= 2**53)
        if not is_number or (math.isnan(value) and not with_nan):
            raise self.refusal(name, f"is {_shown(value)} instead of a number")
        return float(value)

    def numbers(self, name: str, *, with_nan: bool = False) -> list[float]:
        """A list of numbers; `with_nan` allows NaN among them."""
        items = self._items(name)
        return [items.number(place, with_nan=with_nan) for place in items.values]

    def text(self, name: str, *, most: int) -> str:
        """A text of at most `most` characters."""
        value = self.values.get(name)
        if not isinstance(value, str) or len(value) > most:
            raise self.refusal(name, f"is {_shown(value)} instead of a short text")
        return value

    def refusal(self, name: str, problem: str) -> DataError:
        """The error for a field; if it is missing, this is the problem."""
        problem = problem if name in self.values else "is missing"
        return DataError(f"{self.origin}: {self.path}{name} {problem}: not the state of a training run", hint=_HINT)

    def _items(self, name: str) -> "StateValues":
        """The values of a list, each under the name of the list and its place in it."""
        values = self.values.get(name)
        if not isinstance(values, list | tuple):
            raise self.refusal(name, f"is {_shown(values)} instead of a list")
        return replace(self, values={f"{name}[{place}]": value for place, value in enumerate(values)})


def _shown(value: Any) -> str:
    return shortened(repr(value), 40)


# The files of an earlier run, set aside when it starts from scratch, and put back if no new run starts.


_OLD = re.compile(rf"{CHECKPOINTS}-old-([1-9][0-9]{{0,8}})")


def set_aside(run: RunFolder, along: Iterable[str], *, fs: FileSystem) -> Path | None:
    """Rename the folder of the checkpoints; return the new path, if there was one.

    The folder is renamed last: after a kill, `undo_unfinished` can put back what was moved into it.

    Args:
        run: the folder of the run.
        along: names of other files and folders of the run that move into the folder before.
        fs: where the folder lies.
    """
    if not run.checkpoints_folder.exists():
        return None
    for path in (run.path / name for name in along):
        if path.exists():
            _move(path, unused_path(run.checkpoints_folder / path.name), fs)
    numbers = [int(path.name.rpartition("-")[2]) for path in set_aside_before(run.path)]
    target = run.path / f"{CHECKPOINTS}-old-{max(numbers, default=0) + 1}"
    _move(run.checkpoints_folder, target, fs)
    return target


def set_aside_before(run_folder: Path) -> list[Path]:
    """The folders of checkpoints that were set aside, the latest last."""
    try:
        names = os.listdir(run_folder)
    except OSError:
        return []
    found = {int(match[1]): run_folder / match[0] for match in map(_OLD.fullmatch, names) if match}
    return [found[number] for number in sorted(found)]


def undo_unfinished(run: RunFolder, *, fs: FileSystem) -> Path | None:
    """Undo a `set_aside` that a kill interrupted, or after which no new run has started; it started when it has a config.

    Files that a new run has begun to write, such as its data, give way to those that were moved.

    Returns:
        The folder that has its old name again; None if there was none.
    """
    earlier = set_aside_before(run.path)
    has_started = run.checkpoints_folder.exists() or run.config_file.exists()
    set_aside_folder = earlier[-1] if earlier and not has_started else None
    if set_aside_folder is not None:
        storage.remove((path for path in run.records() if _is_in_both(path, set_aside_folder)), fs=fs)
        _move(set_aside_folder, run.checkpoints_folder, fs)
    for path in run.records():
        moved = run.checkpoints_folder / path.name
        if moved.exists() and not os.path.lexists(path):
            _move(moved, path, fs)
    return set_aside_folder


def _is_in_both(path: Path, set_aside_folder: Path) -> bool:
    return os.path.lexists(path) and (set_aside_folder / path.name).exists()


def unused_path(path: Path) -> Path:
    """The path if nothing has this name, else the path with the first free number at its end, such as NAME-2."""
    paths = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(found for found in itertools.chain([path], paths) if not os.path.lexists(found))


def _move(path: Path, new: Path, fs: FileSystem) -> None:
    with storage.errors_explained(path, fs=fs):
        fs.rename(path, new)
        fs.flush_path(new.parent)
        if path.parent != new.parent:
            fs.flush_path(path.parent)
