"""`tfm average`: an averaged checkpoint from checkpoints that a run has kept."""

import logging
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from transformer_cli.checkpoint import Checkpoint, find_run, list_checkpoints
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.stored import AVERAGE, ranked
from transformer_cli.checkpoint.trained_model import mean_of_checkpoints, write_average
from transformer_cli.process.errors import CannotCreateError, MissingInputError, UsageError
from transformer_cli.storage import RunLock, make_folders

logger = logging.getLogger(__name__)


class Wanted(NamedTuple):
    """The checkpoints to average: exactly one of these is given."""

    steps: tuple[int, ...] = ()
    last: int | None = None
    best: int | None = None

    @property
    def suffix(self) -> str:
        """The end of the name of the new folder."""
        if self.steps:
            return f"{len(set(self.steps))}-steps"
        return f"last-{self.last}" if self.last else f"best-{self.best}"


def write_new_average(run: str | None, wanted: Wanted, output: Path | None) -> Path:
    """Write the average; return its folder.

    Raises:
        MissingInputError: there is no such run, or it keeps no such checkpoints.
        CannotCreateError: the new folder exists already.
        UsageError: only one checkpoint is asked for.
        TryAgainError: the new folder would lie in the run folder, and a training holds its lock.
    """
    folder = find_run(run)
    checkpoints_folder = RunFolder(folder).checkpoints_folder
    if not checkpoints_folder.is_dir():
        raise MissingInputError(
            f"{folder}: a single checkpoint, where a run is expected",
            hint="give the name or the folder of a run",
        )
    chosen = _chosen(checkpoints_folder, wanted)
    newest = max(found.step for found in chosen)
    final = output or checkpoints_folder / f"{AVERAGE}{newest:08d}-{wanted.suffix}"
    if os.path.lexists(final):
        raise CannotCreateError(
            f"{final}: exists already", hint="delete it, or give another folder: --output FOLDER"
        )
    with _lock(folder, final):
        make_folders(final.parent)
        write_average(final, chosen, mean_of_checkpoints(chosen), is_marked=True)
    steps = ", ".join(f"{found.step:,}" for found in sorted(chosen, key=lambda one: one.step))
    logger.info("%s: the mean of the checkpoints of steps %s", final, steps)
    logger.info("try it: tfm translate --run %s, and score it: tfm validate --run %s", final, final)
    return final


def _lock(run_folder: Path, final: Path) -> AbstractContextManager[object]:
    """The lock of the run if the new folder will be in its folder, where a training deletes unfinished folders."""
    is_inside = final.absolute().is_relative_to(run_folder.absolute())
    elsewhere = "give a folder outside of the run: --output FOLDER"
    return RunLock(run_folder, instead=elsewhere) if is_inside else nullcontext()


def _chosen(checkpoints_folder: Path, wanted: Wanted) -> list[Checkpoint]:
    listing = list_checkpoints(checkpoints_folder)
    for reason in listing.skipped.values():
        logger.warning("skipped a checkpoint: %s", reason)
    newest_run = listing.whole[0].manifest.run_id if listing.whole else ""
    own = {one.step: one for one in listing.whole if one.manifest.run_id == newest_run}
    steps = ", ".join(map(str, sorted(own)))
    kept = f"it keeps {'step' if len(own) == 1 else 'steps'} {steps}" if own else "it keeps none"
    if missing := [step for step in wanted.steps if step not in own]:
        raise MissingInputError(
            f"{checkpoints_folder}: no checkpoint of step {missing[0]}",
            hint=f"{kept}; training.keep_last and training.keep_best set how many are kept",
        )
    order = ranked(listing.whole) if wanted.best else list(own.values())
    number = wanted.last or wanted.best or 0
    chosen = [own[step] for step in {*wanted.steps}] if wanted.steps else order[:number]
    if len(chosen) < max(number, 2):
        if wanted.steps:
            raise UsageError(
                "the mean of one checkpoint is that checkpoint; give two steps or more"
            )
        what = "checkpoints with a score" if wanted.best else "checkpoints"
        raise MissingInputError(
            f"{checkpoints_folder}: {number} {what} were asked for, and it keeps {len(chosen)}",
            hint=f"{kept}; train with training.{'keep_best' if wanted.best else 'keep_last'}={number} or more",
        )
    return chosen
