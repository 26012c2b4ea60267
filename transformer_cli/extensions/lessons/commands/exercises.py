"""`tfm exercises`: write a folder of exercises, check a learner's code in it, or show a solution."""

import logging
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import JsonOption
from transformer_cli.commands.output import show
from transformer_cli.extensions.lessons.exercises.catalogue import (
    EXERCISES,
    exercise_named,
    exercises_named,
)
from transformer_cli.extensions.lessons.exercises.learner_code import CheckOutcome
from transformer_cli.extensions.lessons.exercises.learner_folder import check_folder, write_folder_of_exercises
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import for_shell

logger = logging.getLogger(__name__)


def exercises_command(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The folder of the exercises.")] = Path(
        "exercises"
    ),
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="With --check: these exercises only.",
            autocompletion=completion.exercises,
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Run the code in the folder, and say what is right.")] = False,
    hint: Annotated[bool, typer.Option("--hint", help="With --check: a hint for each exercise that fails.")] = False,
    solution: Annotated[
        str | None,
        typer.Option(
            "--solution",
            metavar="NAME",
            help="Print the solution of one exercise.",
            autocompletion=completion.exercises,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write exercises, or check them. Each is a function of the Transformer to fill in.

    A check runs the Python files of the folder, in a process of its own: check only code that you trust.
    """

    if solution is not None:
        _show_solution(solution, as_json=as_json)
    elif check:
        _check(folder, names or (), with_hints=hint, as_json=as_json)
    else:
        if names or hint:
            given = names[0] if names else "--hint"
            raise UsageError(
                f"{given}: only a check takes it", hint=f"tfm exercises --check {for_shell(folder)} {given}"
            )
        _make(folder, as_json=as_json)


def _make(folder: Path, *, as_json: bool) -> None:
    """Write a new folder of exercises."""
    write_folder_of_exercises(folder)
    lines = [
        f"wrote {folder}, with {len(EXERCISES)} exercises",
        f"Begin with {folder / 'README.md'}.",
        f"Your work is checked by: tfm exercises --check {for_shell(folder)}",
    ]
    facts = {"folder": str(folder), "exercises": [one.name for one in EXERCISES]}
    show(facts, lines, as_json=as_json)


def _show_solution(name: str, *, as_json: bool) -> None:
    """Print the reference solution of an exercise."""
    exercise = exercise_named(name)
    text = exercise.solution_file.read_text(encoding="utf-8")
    logger.warning(
        "warning: this is the solution of %s; with --check and --hint you get a hint instead",
        exercise.name,
    )
    show({"name": exercise.name, "solution": text}, text.splitlines(), as_json=as_json)


def _check(folder: Path, names: Sequence[str], *, with_hints: bool, as_json: bool) -> None:
    """Check exercises, and print an outcome for each.

    Raises:
        DataError: an exercise fails; the outcomes are printed before.
    """
    outcomes = check_folder(folder, exercises_named(names), with_finale=not names)
    lines = list(_lines(folder, outcomes, with_hints=with_hints))
    shown = "name", "status", "message", "hint", "lines"
    facts = [{key: one._asdict()[key] for key in shown} for one in outcomes]
    show({"folder": str(folder), "outcomes": facts}, lines, as_json=as_json)
    failing = [one.name for one in outcomes if one.status == "fails"]
    if failing:
        more = "" if with_hints else f"; tfm exercises --check {for_shell(folder)} {failing[0]} --hint tells more"
        raise DataError(f"{', '.join(failing)}: not right yet", hint=f"read the messages above{more}")


def _lines(folder: Path, outcomes: Sequence["CheckOutcome"], *, with_hints: bool) -> Iterator[str]:
    width = max(len(one.name) for one in outcomes)
    for one in outcomes:
        yield f"{one.name:<{width}}  {one.status}"
        yield from _wrapped(one.message)
        yield from (f"    {line}" for line in one.lines)
        if with_hints and one.hint and one.status in ("fails", "not begun"):
            yield from _wrapped(f"hint: {one.hint}")
    numbered = {one.name: one for one in EXERCISES}
    file_outcomes = [one for one in outcomes if one.name in numbered]
    num_passing = sum(one.status == "passes" for one in file_outcomes)
    following = next((numbered[one.name] for one in file_outcomes if one.status != "passes"), None)
    told = f"; next: {folder / following.file_name}" if following else ""
    yield f"{num_passing} of {len(file_outcomes)} pass{told}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="      ", break_long_words=False)
