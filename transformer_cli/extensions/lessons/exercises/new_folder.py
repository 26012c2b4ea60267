"""A new folder of exercises: a README, a blank file for each exercise, and the checks for pytest."""

from pathlib import Path

from transformer_cli.extensions.lessons.exercises.blanks import blank_file
from transformer_cli.extensions.lessons.exercises.catalogue import EXERCISES
from transformer_cli.extensions.lessons.exercises.checker import MAX_SECONDS
from transformer_cli.process.errors import CannotCreateError
from transformer_cli.storage import make_folders, require_name_in_utf8, staged_folder

_COPIED = Path(__file__).parent / "folder"


def write_folder_of_exercises(folder: Path) -> None:
    """Write the folder.

    Raises:
        CannotCreateError: something has this name, and a learner's work is never overwritten; or it is no name.
    """
    if folder.name in ("", ".."):
        raise CannotCreateError(
            f"{folder}: this folder exists already; exercises are written into a new one",
            hint=f"give it a name, such as tfm exercises {folder / 'my-exercises'}",
        )
    require_name_in_utf8(folder)  # the README names the folder
    if folder.exists():
        raise CannotCreateError(
            f"{folder}: exists, and is not overwritten",
            hint=f"give another name, such as {_free_name(folder)}; to check your work: tfm exercises --check {folder}",
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
    filled = readme.format(
        folder=folder.name, example=EXERCISES[0].name, seconds=MAX_SECONDS, table=table
    )
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
