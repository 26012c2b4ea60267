"""Checks the exercises in a learner's folder: each outcome comes from a child process with a time limit."""

import logging
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.extensions.lessons.exercises.blanks import blank_functions
from transformer_cli.extensions.lessons.exercises.catalogue import EXERCISES, FINALE, Exercise
from transformer_cli.extensions.lessons.exercises.learner_code import (
    READY,
    check_in_child,
    too_slow,
)
from transformer_cli.extensions.lessons.exercises.outcomes import Outcome
from transformer_cli.process.errors import MissingInputError, TfmError
from transformer_cli.process.signals import cleaned_up

logger = logging.getLogger(__name__)

MAX_SECONDS = 20.0
"""Of one exercise; a right solution takes less than a second."""
MAX_FINALE_SECONDS = 300.0
_GRACE_SECONDS = 3.0
_MAX_STARTING_SECONDS = 300.0  # PyTorch may be slow to import on a busy machine


def check_folder(
    folder: Path,
    exercises: Sequence[Exercise] = EXERCISES,
    *,
    max_seconds: float = MAX_SECONDS,
    with_finale: bool = False,
) -> list[Outcome]:
    """Check a learner's files; their code runs in child processes.

    Args:
        folder: made by `new_folder.write_folder_of_exercises`.
        exercises: the ones to check.
        max_seconds: the time limit of each.
        with_finale: whether the functions are put together at the end, if all exercises pass.

    Raises:
        MissingInputError: the folder does not exist, or holds no exercise.
    """
    folder = Path(os.path.realpath(folder))
    _require_exercises(folder)
    known = {one.name: _outcome_without_running(folder, one) for one in exercises}
    to_run = [name for name, outcome in known.items() if outcome is None]
    ran = {one.name: one for one in _run(folder, to_run, max_seconds)}
    hints = {one.name: one.first_step for one in exercises}
    outcomes = [outcome or ran[name] for name, outcome in known.items()]
    outcomes = [one._replace(hint=one.hint or hints[one.name]) for one in outcomes]
    if with_finale:
        outcomes.append(_finale(folder, outcomes))
    return outcomes


def _finale(folder: Path, outcomes: Sequence[Outcome]) -> Outcome:
    if any(one.status != "passes" for one in outcomes):
        return Outcome(FINALE, "waits", "it begins when all exercises pass")
    logger.info("%s: a small Transformer of your functions is trained ...", FINALE)
    return _run(folder, [FINALE], MAX_FINALE_SECONDS)[0]


def _require_exercises(folder: Path) -> None:
    if not any((folder / one.file_name).is_file() for one in EXERCISES):
        if folder.is_dir():
            missing, new = "no exercises in this folder", "my-exercises"
        else:
            missing, new = "no such folder", folder.name
        raise MissingInputError(
            f"{folder}: {missing}", hint=f"tfm exercises {new} makes a folder of exercises"
        )


def _outcome_without_running(folder: Path, exercise: Exercise) -> Outcome | None:
    path = folder / exercise.file_name
    if not path.is_file():
        return Outcome(exercise.name, "fails", f"the file {exercise.file_name} is missing")
    blank = blank_functions(path, exercise)
    if len(blank) == len(exercise.functions):
        return Outcome(exercise.name, "not begun")
    if blank:
        return Outcome(exercise.name, "fails", f"the function {blank[0]} is still blank")
    return None


def _run(folder: Path, names: Sequence[str], max_seconds: float) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while len(outcomes) < len(names):  # code that does not end takes its process with it
        outcomes += _run_one_child(folder, names[len(outcomes) :], max_seconds)
    return outcomes


def _run_one_child(folder: Path, names: Sequence[str], max_seconds: float) -> list[Outcome]:
    """The outcomes up to the first one that ends the child."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    seconds = dict.fromkeys(names, max_seconds)
    child = context.Process(target=check_in_child, args=(theirs, folder, list(names), seconds))
    child.start()
    theirs.close()
    outcomes: list[Outcome] = []
    is_ready = False
    with ours, cleaned_up(child.kill):
        try:
            is_ready = ours.poll(_MAX_STARTING_SECONDS) and ours.recv_bytes() == READY
            for name in names if is_ready else ():
                is_there = ours.poll(max_seconds + _GRACE_SECONDS)
                outcome = (
                    Outcome.from_bytes(ours.recv_bytes())
                    if is_there
                    else too_slow(name, max_seconds)
                )
                outcomes.append(outcome)
                if outcome.has_ended_child:
                    break
        except EOFError:
            child.join()
            message = f"the code ended the Python process, with exit code {child.exitcode}"
            outcomes.append(Outcome(names[len(outcomes)], "fails", message))
        finally:
            child.kill()
            child.join()
            child.close()
    if not is_ready:
        raise TfmError("the process that runs the exercises could not start")
    return outcomes
