"""`tfm exercises`: write a folder of exercises, check a learner's code in it, or show a solution."""

import logging
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from transformer_cli.commands.output import show
from transformer_cli.extensions.lessons.exercises.catalogue import (
    EXERCISES,
    exercise_named,
    exercises_named,
)
from transformer_cli.extensions.lessons.exercises.checker import check_folder
from transformer_cli.extensions.lessons.exercises.new_folder import write_folder_of_exercises
from transformer_cli.extensions.lessons.exercises.outcomes import Outcome
from transformer_cli.process.errors import DataError, UsageError

logger = logging.getLogger(__name__)


def make_exercises(folder: Path, names: Sequence[str], *, with_hints: bool, as_json: bool) -> None:
    """Write a new folder of exercises.

    Raises:
        UsageError: the command line asks for a part of a check.
        CannotCreateError: the folder exists.
    """
    if names or with_hints:
        given = names[0] if names else "--hint"
        raise UsageError(
            f"{given}: only a check takes it", hint=f"tfm exercises --check {folder} {given}"
        )
    write_folder_of_exercises(folder)
    lines = [
        f"wrote {folder}, with {len(EXERCISES)} exercises",
        f"Begin with {folder / 'README.md'}.",
        f"Your work is checked by: tfm exercises --check {folder}",
    ]
    show({"folder": str(folder), "exercises": [one.name for one in EXERCISES]}, lines, as_json=as_json)  # fmt: skip


def show_solution(name: str, *, as_json: bool) -> None:
    """Print the reference solution of an exercise.

    Raises:
        UsageError: no exercise has this name.
    """
    exercise = exercise_named(name)
    text = exercise.solution_file.read_text(encoding="utf-8")
    logger.warning(
        "warning: this is the solution of %s; with --check and --hint you get a hint instead",
        exercise.name,
    )
    show({"name": exercise.name, "solution": text}, text.splitlines(), as_json=as_json)


def check_exercises(folder: Path, names: Sequence[str], *, with_hints: bool, as_json: bool) -> None:
    """Check exercises, and print an outcome for each.

    Raises:
        UsageError: no exercise has one of the names.
        MissingInputError: the folder does not exist, or holds no exercises.
        DataError: an exercise fails; the outcomes are printed before.
    """
    outcomes = check_folder(folder, exercises_named(names), with_finale=not names)
    lines = list(_lines(folder, outcomes, with_hints=with_hints))
    facts = [{key: one._asdict()[key] for key in ("name", "status", "message", "hint", "lines")} for one in outcomes]  # fmt: skip
    show({"folder": str(folder), "outcomes": facts}, lines, as_json=as_json)
    failing = [one.name for one in outcomes if one.status == "fails"]
    if failing:
        more = (
            "" if with_hints else f"; tfm exercises --check {folder} {failing[0]} --hint tells more"
        )
        raise DataError(
            f"{', '.join(failing)}: not right yet", hint=f"read the messages above{more}"
        )


def _lines(folder: Path, outcomes: Sequence[Outcome], *, with_hints: bool) -> Iterator[str]:
    width = max(len(one.name) for one in outcomes)
    for one in outcomes:
        yield f"{one.name:<{width}}  {one.status}"
        yield from _wrapped(one.message)
        yield from (f"    {line}" for line in one.lines)
        if with_hints and one.hint and one.status in ("fails", "not begun"):
            yield from _wrapped(f"hint: {one.hint}")
    numbered = {one.name: one for one in EXERCISES}
    of_files = [one for one in outcomes if one.name in numbered]
    num_passing = sum(one.status == "passes" for one in of_files)
    following = next((numbered[one.name] for one in of_files if one.status != "passes"), None)
    told = f"; next: {folder / following.file_name}" if following else ""
    yield f"{num_passing} of {len(of_files)} pass{told}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, 100, initial_indent="    ", subsequent_indent="      ", break_long_words=False
    )
