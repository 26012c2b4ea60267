"""The arguments and options of `tfm exercises`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import DebugOption, JsonOption


def exercises(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="The folder of the exercises.")
    ] = Path("exercises"),
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="With --check: these exercises only.",
            autocompletion=completion.exercises,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run the code in the folder, and say what is right.")
    ] = False,
    hint: Annotated[
        bool, typer.Option("--hint", help="With --check: a hint for each exercise that fails.")
    ] = False,
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
    debug: DebugOption = False,
) -> None:
    """Write exercises, or check them. Each is a function of the Transformer to fill in.

    A check runs the Python files of the folder, in a process of its own: check only code that you trust.
    """
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.extensions.lessons.commands import exercises as command

    if solution is not None:
        command.show_solution(solution, as_json=as_json)
    elif check:
        command.check_exercises(folder, names or [], with_hints=hint, as_json=as_json)
    else:
        command.make_exercises(folder, names or [], with_hints=hint, as_json=as_json)
