"""The runs of a folder: an overview of all, and deleting what they no longer need; without PyTorch."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import TypeAdapter, ValidationError

from transformer_cli.checkpoint.limits import Counts, is_finished
from transformer_cli.checkpoint.run_folder import (
    AVERAGE,
    CHECKPOINTS,
    IMPORTED,
    Checkpoint,
    Listing,
    Retention,
    RunFolder,
    StateValues,
    list_checkpoints,
    list_run_or_averages,
    ranked,
)
from transformer_cli.config import DataConfig, SequencesData, TrainingConfig
from transformer_cli.config.loading import MAX_CONFIG_BYTES
from transformer_cli.config.refusal import plain_reason
from transformer_cli.process.errors import DataError, MissingInputError, StorageError
from transformer_cli.storage import DamagedError, RunLock, remove
from transformer_cli.storage.writing import is_running

# An overview of the runs of a folder: how far each has come, its best score, its size; without PyTorch.


Status = Literal["running", "finished", "imported", "resumable", "empty", "damaged"]
_DATA: TypeAdapter[DataConfig] = TypeAdapter(DataConfig)
# With libyaml, hundreds of configs are read in a second; the parser in Python is twenty times slower.
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class RunOverview:
    """The facts about one run."""

    name: str
    """The name of its folder."""
    status: Status
    """running: a process trains it; finished: all its steps are done, or its patience is over; imported: `tfm import` made it; resumable: `tfm train`
    goes on with it; empty: it has no checkpoint yet; damaged: no checkpoint is whole, or the config cannot be read."""
    step: int | None
    """Number of updates of the newest checkpoint."""
    metric: str | None
    """The metric that decides which checkpoint is the best."""
    best: float | None
    """The value of the metric at the best checkpoint; None without a validation."""
    best_step: int | None
    num_checkpoints: int
    size_bytes: int
    """Size of all files of the run folder."""
    saved_at: int | None
    """When the newest checkpoint was saved, in milliseconds since 1970."""
    languages: str
    """The directions of translation, such as en-it; or the synthetic task."""
    problem: str | None
    """What is damaged."""

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        return asdict(self)


def list_runs(runs_folder: Path) -> list[RunOverview]:
    """The runs of a folder, the one that saved last first; a damaged run is listed with its problem.

    Raises:
        MissingInputError: there is no such folder.
        StorageError: the folder cannot be read.
    """
    try:
        folders = [path for path in runs_folder.iterdir() if _looks_like_a_run(path)]
    except (FileNotFoundError, NotADirectoryError):
        raise MissingInputError(
            f"{runs_folder}: no such folder",
            hint="give the folder of the runs, or change to the folder in which tfm train ran",
        ) from None
    except OSError as error:
        raise StorageError(f"{runs_folder}: cannot be read: {error.strerror}") from error
    found = [overview(folder) for folder in folders]
    return sorted(found, key=lambda run: (-(run.saved_at or 0), run.name))


def overview(folder: Path) -> RunOverview:
    """The facts about the run in a folder."""
    listing = list_run_or_averages(folder)
    training, languages, problem = _settings(RunFolder(folder).config_file)
    newest = max(listing.whole, key=lambda found: found.step, default=None)
    best = next(iter(ranked(listing.whole)), None)
    if newest is None and listing.skipped:
        problem = next(iter(listing.skipped.values()))
    return RunOverview(
        name=folder.name,
        status=_status(folder, listing, newest, training, problem),
        step=None if newest is None else newest.step,
        metric=None if newest is None else newest.manifest.metric,
        best=None if best is None else best.manifest.score,
        best_step=None if best is None else best.step,
        num_checkpoints=len(listing.whole),
        size_bytes=folder_size(folder),
        saved_at=None if newest is None else newest.manifest.saved_at,
        languages=languages,
        problem=problem,
    )


def interrupted_at(folder: Path) -> int | None:
    """The newest step of a run whose training can go on and has not come to its end; None for any other run."""
    listing = list_run_or_averages(folder)
    newest = max(listing.whole, key=lambda found: found.step, default=None)
    training, _, problem = _settings(RunFolder(folder).config_file)
    if newest is None or training is None or _progress(newest) is None:  # nobody knows where it ends, or whether it has
        return None
    return newest.step if _status(folder, listing, newest, training, problem) == "resumable" else None


def damaged_behind(folder: Path, step: int) -> str | None:
    """The name of the newest checkpoint of a run, if it is damaged and of a later step than this one."""
    steps = {int(name.rpartition("-")[2]): name for name in list_run_or_averages(folder).skipped}
    last = max(steps, default=step)
    return steps[last] if last > step else None


def folder_size(folder: Path) -> int:
    """The sizes of all files below a folder; links to folders and files that vanish meanwhile count as nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            total += status.st_size
    return total


def _looks_like_a_run(path: Path) -> bool:
    return path.is_dir() and (RunFolder(path).is_begun() or (path / CHECKPOINTS).is_dir())


def _status(
    folder: Path, listing: Listing, newest: Checkpoint | None, training: TrainingConfig | None, problem: str | None
) -> Status:
    if is_running(folder):
        return "running"
    if problem is not None:
        return "damaged"
    if newest is None:
        return "empty"
    is_average = newest.folder.name.startswith(AVERAGE)  # made at the end of a run, and without its state
    progress = _progress(newest)
    if is_average or (training is not None and progress is not None and is_finished(progress, training)):
        return "finished"
    return "imported" if _is_imported(newest) else "resumable"


def _is_imported(newest: Checkpoint) -> bool:
    try:
        return IMPORTED in newest.state()
    except (DataError, StorageError):
        return False


def _progress(newest: Checkpoint) -> Counts | None:
    """How far the training has come; None where the checkpoint has no state of a training that can be read."""
    try:
        return Counts.of(StateValues(newest.state(), str(newest.folder)).part("progress"))
    except (DataError, StorageError):
        return None


def _settings(file: Path) -> tuple[TrainingConfig | None, str, str | None]:
    """The training section of a config, its languages, and what is wrong with it."""
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            return None, "", f"{file}: too large for a config"
        settings = _parsed(file.read_text(encoding="utf-8-sig"))
        data = _DATA.validate_python(settings.get("data"))
        training = TrainingConfig.model_validate(settings.get("training"))
    except FileNotFoundError:
        return None, "", None
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        return None, "", f"{file}: {where}: {plain_reason(error.errors()[0])}"
    except OSError as error:
        return None, "", f"{file}: cannot be read: {error.strerror}"
    except (ValueError, yaml.YAMLError, RecursionError):
        return None, "", f"{file}: not the config of a run, written in YAML"
    if isinstance(data, SequencesData):
        return training, data.task, None
    return training, ", ".join(map(str, data.directions)), None


def _parsed(text: str) -> Mapping[str, Any]:
    loader = _YAML(text)
    try:
        settings = loader.get_single_data()
    finally:
        loader.dispose()
    if not isinstance(settings, dict):
        raise ValueError("not a mapping")
    return settings


# Deleting checkpoints that a finished or stopped run no longer needs.


@dataclass(frozen=True, slots=True)
class Pruned:
    """The checkpoints of a run that are deleted, and those that are kept."""

    folder: Path
    """Of the run."""
    deleted: list[int]
    """Their steps."""
    kept: list[int]
    freed_bytes: int


def prune(run_folder: Path, *, keep_last: int, keep_best: int, is_dry_run: bool) -> Pruned:
    """Delete all checkpoints of a run but the newest and the best ones.

    Before the first deletion, all checkpoints that stay are read and verified. Damaged checkpoints are not counted and
    are not deleted.

    Args:
        run_folder: runs/NAME.
        keep_last, keep_best: 1 or more.
        is_dry_run: only find out what would be deleted.

    Raises:
        TryAgainError: the run is being trained.
        StorageError: there are checkpoints, but none is whole.
    """
    if min(keep_last, keep_best) < 1:
        raise ValueError("the last and the best checkpoint are never deleted")
    with nullcontext() if is_dry_run else RunLock(run_folder):
        kept, superfluous = _kept_and_superfluous(run_folder, keep_last, keep_best)
        freed_bytes = sum(folder_size(found.folder) for found in superfluous)
        if not is_dry_run:
            remove([found.folder for found in superfluous])
    deleted, left = ([found.step for found in some] for some in (superfluous, kept))
    return Pruned(run_folder, deleted, left, freed_bytes)


def _kept_and_superfluous(
    run_folder: Path, keep_last: int, keep_best: int
) -> tuple[list[Checkpoint], list[Checkpoint]]:
    folder = RunFolder(run_folder).checkpoints_folder
    listing = list_checkpoints(folder)
    while listing.whole:
        newest = max(listing.whole, key=lambda found: found.step).manifest
        # This command does not delete checkpoints of another run that someone has copied here.
        own = [found for found in listing.whole if found.manifest.run_id == newest.run_id]
        retention = Retention(keep_last, keep_best, newest.metric)
        steps = retention.superfluous(found.scored(newest.metric) for found in own)
        kept = [found for found in own if found.step not in steps]
        num_whole = len(listing.whole)
        for found in kept:
            try:
                found.verify()
            except (DamagedError, StorageError) as error:
                listing.skip(found.folder, error)
        if len(listing.whole) == num_whole:
            return kept, [found for found in own if found.step in steps]
    if listing.skipped:
        raise StorageError(
            f"{folder}: no checkpoint is valid:{listing.reasons()}",
            hint="nothing was deleted; restore the files, or delete the folder of the run",
        )
    return [], []
