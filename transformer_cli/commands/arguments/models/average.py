"""The arguments and options of `tfm average`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.process.errors import UsageError


def average(
    steps: Annotated[
        list[int] | None,
        typer.Argument(help="The steps of the checkpoints, such as 8000 9000 10000."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            help="Name or folder of a run. Default: the newest run under runs/.",
            autocompletion=completion.runs,
        ),
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=2, help="Average this many last checkpoints.")
    ] = None,
    best: Annotated[
        int | None,
        typer.Option("--best", min=2, help="Average this many best checkpoints, by best_metric."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The new folder. Default: a folder beside the checkpoints."
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Average the weights of several checkpoints of a run. The new folder translates, and the run stays as it is."""
    if sum(bool(one) for one in (steps, last, best)) != 1:
        raise UsageError("give either the steps of checkpoints, or --last N, or --best N")
    from transformer_cli.commands.new_average import Wanted, write_new_average
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    typer.echo(write_new_average(run, Wanted(tuple(steps or ()), last, best), output))
