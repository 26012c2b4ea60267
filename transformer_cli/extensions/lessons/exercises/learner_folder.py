"""A learner's folder: it is written with blank files, and checked by child processes with a time limit."""

import ast
import logging
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.extensions.lessons.exercises.catalogue import (
    EXERCISES,
    FINALE,
    MAX_SECONDS,
    Exercise,
)
from transformer_cli.extensions.lessons.exercises.learner_code import (
    READY,
    CheckOutcome,
    check_in_child,
    too_slow,
)
from transformer_cli.process.errors import CannotCreateError, MissingInputError, TfmError
from transformer_cli.process.messages import for_shell
from transformer_cli.process.signals import cleaned_up
from transformer_cli.storage import make_folders, require_name_in_utf8, staged_folder

logger = logging.getLogger(__name__)

_COPIED = Path(__file__).parent / "folder"
MAX_FINALE_SECONDS = 300.0
_GRACE_SECONDS = 3.0
_MAX_STARTING_SECONDS = 300.0  # PyTorch may be slow to import on a busy machine


def write_folder_of_exercises(folder: Path) -> None:
    """Write the folder.

    Raises:
        CannotCreateError: something has this name, and a learner's work is never overwritten; or it is no name.
    """
    if folder.name in ("", ".."):
        raise CannotCreateError(
            f"{folder}: this folder exists already; exercises are written into a new one",
            hint=f"give it a name, such as tfm exercises {for_shell(folder / 'my-exercises')}",
        )
    require_name_in_utf8(folder)  # the README names the folder
    if folder.exists():
        raise CannotCreateError(
            f"{folder}: exists, and is not overwritten",
            hint=f"give another name, such as {_free_name(folder)}; to check your work: tfm exercises --check {for_shell(folder)}",
        )
    make_folders(folder.absolute().parent)
    with staged_folder(folder) as partial:
        for name, text in _files(folder).items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")


def _files(folder: Path) -> dict[str, str]:
    readme = (_COPIED / "README.md").read_text(encoding="utf-8")
    table = "\n".join(
        f"| `{one.file_name}` | {', '.join(f'`{name}`' for name in one.functions)} | {one.paper} | `{one.answered_by}` |"
        for one in EXERCISES
    )
    filled = readme.format(folder=folder.name, example=EXERCISES[0].name, seconds=MAX_SECONDS, table=table)
    return {
        "README.md": filled,
        **{one.file_name: blank_file(one) for one in EXERCISES},
        "test_exercises.py": (_COPIED / "test_exercises.txt").read_text(encoding="utf-8"),
    }


def _free_name(folder: Path) -> Path:
    number = 2
    while (free := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return free


def blank_file(exercise: Exercise) -> str:
    """The text of the file that a learner fills in: the solution without the bodies of its functions."""
    source = exercise.solution_file.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    for function in reversed(_functions(ast.parse(source))):
        assert function.end_lineno is not None
        if function.name in exercise.functions:
            first_line = function.body[1].lineno - 1  # behind the docstring
            lines[first_line : function.end_lineno] = [_blank(function.name)]
        else:  # a part of the solution, with the two empty lines before it
            del lines[function.lineno - 3 : function.end_lineno]
    return "".join(lines)


def blank_functions(path: Path, exercise: Exercise) -> tuple[str, ...]:
    """The functions of the exercise that are still blank in a learner's file; none if the file has a syntax error."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # ValueError: null bytes
        return ()
    blank = {function.name for function in _functions(tree) if _is_blank(function)}
    return tuple(name for name in exercise.functions if name in blank)


def _blank(name: str) -> str:
    return f'    raise NotImplementedError("{name} is blank: replace this line with your code")\n'


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def _is_blank(function: ast.FunctionDef) -> bool:
    last = function.body[-1]
    is_docstring_before = all(isinstance(node, ast.Expr) for node in function.body[:-1])
    return (
        is_docstring_before
        and isinstance(last, ast.Raise)
        and isinstance(last.exc, ast.Call)
        and ast.unparse(last.exc.func) == "NotImplementedError"
    )


def check_folder(
    folder: Path,
    exercises: Sequence[Exercise] = EXERCISES,
    *,
    max_seconds: float = MAX_SECONDS,
    with_finale: bool = False,
) -> list[CheckOutcome]:
    """Check a learner's files; their code runs in child processes.

    Args:
        folder: made by `write_folder_of_exercises`.
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


def _finale(folder: Path, outcomes: Sequence[CheckOutcome]) -> CheckOutcome:
    if any(one.status != "passes" for one in outcomes):
        return CheckOutcome(FINALE, "waits", "it begins when all exercises pass")
    logger.info("%s: a small Transformer of your functions is trained ...", FINALE)
    return _run(folder, [FINALE], MAX_FINALE_SECONDS)[0]


def _require_exercises(folder: Path) -> None:
    if not any((folder / one.file_name).is_file() for one in EXERCISES):
        if folder.is_dir():
            missing, new = "no exercises in this folder", "my-exercises"
        else:
            missing, new = "no such folder", folder.name
        raise MissingInputError(
            f"{folder}: {missing}", hint=f"tfm exercises {for_shell(new)} makes a folder of exercises"
        )


def _outcome_without_running(folder: Path, exercise: Exercise) -> CheckOutcome | None:
    path = folder / exercise.file_name
    if not path.is_file():
        return CheckOutcome(exercise.name, "fails", f"the file {exercise.file_name} is missing")
    if len(blank_functions(path, exercise)) == len(exercise.functions):
        return CheckOutcome(exercise.name, "not begun")
    return None


def _run(folder: Path, names: Sequence[str], max_seconds: float) -> list[CheckOutcome]:
    outcomes: list[CheckOutcome] = []
    while len(outcomes) < len(names):  # code that does not end takes its process with it
        outcomes += _run_one_child(folder, names[len(outcomes) :], max_seconds)
    return outcomes


def _run_one_child(folder: Path, names: Sequence[str], max_seconds: float) -> list[CheckOutcome]:
    """The outcomes up to the first one that ends the child."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    seconds = dict.fromkeys(names, max_seconds)
    child = context.Process(target=check_in_child, args=(theirs, folder, list(names), seconds))
    child.start()
    theirs.close()
    outcomes: list[CheckOutcome] = []
    is_ready = False
    with ours, cleaned_up(child.kill):
        try:
            is_ready = ours.poll(_MAX_STARTING_SECONDS) and ours.recv_bytes() == READY
            for name in names if is_ready else ():
                is_there = ours.poll(max_seconds + _GRACE_SECONDS)
                outcome = CheckOutcome.from_bytes(ours.recv_bytes()) if is_there else too_slow(name, max_seconds)
                outcomes.append(outcome)
                if outcome.has_ended_child:
                    break
        except EOFError:
            child.join()
            message = f"the code ended the Python process, with exit code {child.exitcode}"
            outcomes.append(CheckOutcome(names[len(outcomes)], "fails", message))
        finally:
            child.kill()
            child.join()
            child.close()
    if not is_ready:
        raise TfmError("the process that runs the exercises could not start")
    return outcomes
