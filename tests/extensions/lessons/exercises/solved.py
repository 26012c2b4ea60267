"""A folder of exercises with the reference solutions in it."""

from pathlib import Path

from transformer_cli.extensions.lessons.exercises.catalogue import EXERCISES
from transformer_cli.extensions.lessons.exercises.learner_folder import write_folder_of_exercises


def solve(folder: Path) -> None:
    """Make the folder, and fill in each solution."""
    write_folder_of_exercises(folder)
    for exercise in EXERCISES:
        (folder / exercise.file_name).write_bytes(exercise.solution_file.read_bytes())
