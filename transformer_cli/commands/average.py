"""`tfm average`: an averaged checkpoint from checkpoints that a run has kept."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.checkpoint.averages import mean_of_checkpoints, write_average
from transformer_cli.checkpoint.run_folder import AVERAGE, Checkpoint, RunFolder, list_checkpoints, ranked
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands import completion
from transformer_cli.process.errors import CannotCreateError, MissingInputError, UsageError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import RunLock, make_folders

logger = logging.getLogger(__name__)


def average_command(
    steps: Annotated[
        list[str] | None,
        typer.Argument(help="The steps of the checkpoints, such as 8000 9000 10000, or the names of their folders."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            help="Name or folder of a run. Default: the newest run under runs/.",
            autocompletion=completion.runs,
        ),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", min=2, help="Average this many last checkpoints.")] = None,
    best: Annotated[
        int | None,
        typer.Option("--best", min=2, help="Average this many best checkpoints, by best_metric."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The new folder. Default: a folder beside the checkpoints."),
    ] = None,
) -> None:
    """Average the weights of several checkpoints of a run. The new folder translates, and the run stays as it is."""
    if sum(bool(one) for one in (steps, last, best)) != 1:
        raise UsageError("give either the steps of checkpoints, or --last N, or --best N")

    numbers = [_step(one) for one in steps or ()]
    folder = find_run(run)
    checkpoints_folder = RunFolder(folder).checkpoints_folder
    if not checkpoints_folder.is_dir():
        raise MissingInputError(
            f"{folder}: a single checkpoint, where a run is expected",
            hint="give the name or the folder of a run",
        )
    chosen = _chosen(checkpoints_folder, steps=numbers, last=last, best=best)
    newest = max(found.step for found in chosen)
    number = f"{len(set(numbers))}-steps" if numbers else f"last-{last}" if last else f"best-{best}"
    final = output or checkpoints_folder / f"{AVERAGE}{newest:08d}-{number}"
    if os.path.lexists(final):
        raise CannotCreateError(f"{final}: exists already", hint="delete it, or give another folder: --output FOLDER")
    # In the folder of a run, a training deletes unfinished folders.
    is_inside = final.absolute().is_relative_to(folder.absolute())
    elsewhere = "give a folder outside of the run: --output FOLDER"
    with RunLock(folder, instead=elsewhere) if is_inside else nullcontext():
        make_folders(final.parent)
        write_average(final, chosen, mean_of_checkpoints(chosen), is_marked=True)
    averaged = ", ".join(f"{step:,}" for step in sorted(found.step for found in chosen))
    logger.info("%s: the mean of the checkpoints of steps %s", final, averaged)
    name = for_shell(final)
    logger.info("try it: tfm translate --run %s, and score it: tfm validate --run %s", name, name)
    typer.echo(final)


def _step(given: str) -> int:
    """The step that a number or the name of the folder of a checkpoint means.

    Raises:
        UsageError: it is neither.
    """
    found = re.fullmatch(r"(?:step-)?([0-9]{1,18})/?", given)
    if found is None:
        raise UsageError(
            f"{given}: no step of a checkpoint", hint="a step is a number, as in tfm average --run RUN 1000 2000"
        )
    return int(found[1])


def _chosen(checkpoints_folder: Path, *, steps: Sequence[int], last: int | None, best: int | None) -> list[Checkpoint]:
    """The checkpoints of these steps, or the last, or the best.

    Raises:
        MissingInputError: the run does not keep them.
        UsageError: only one checkpoint is asked for.
    """
    listing = list_checkpoints(checkpoints_folder)
    for reason in listing.skipped.values():
        logger.warning("skipped a checkpoint: %s", reason)
    newest_run = listing.whole[0].manifest.run_id if listing.whole else ""
    own = {one.step: one for one in listing.whole if one.manifest.run_id == newest_run}
    own_steps = ", ".join(map(str, sorted(own)))
    kept = f"it keeps {'step' if len(own) == 1 else 'steps'} {own_steps}" if own else "it keeps none"
    if missing := [step for step in steps if step not in own]:
        raise MissingInputError(
            f"{checkpoints_folder}: no checkpoint of step {missing[0]}",
            hint=f"{kept}; training.keep_last and training.keep_best set how many are kept",
        )
    order = ranked(listing.whole) if best else list(own.values())
    number = last or best or 0
    chosen = [own[step] for step in {*steps}] if steps else order[:number]
    if len(chosen) < max(number, 2):
        if steps:
            raise UsageError("the mean of one checkpoint is that checkpoint; give two steps or more")
        what = "checkpoints with a score" if best else "checkpoints"
        raise MissingInputError(
            f"{checkpoints_folder}: {number} {what} were asked for, and it keeps {len(chosen)}",
            hint=f"{kept}; train with training.{'keep_best' if best else 'keep_last'}={number} or more",
        )
    return chosen
