"""The arguments and options of `tfm ablate`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    DebugOption,
    JsonOption,
    Overrides,
    set_option,
)
from transformer_cli.process.errors import UsageError


def ablate(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The ablation; without it, all are listed.",
            show_default=False,
            autocompletion=completion.ablations,
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder of its runs, its figures and its picture."),
    ] = Path("ablations"),
    prediction: Annotated[
        int | None,
        typer.Option(
            "--prediction",
            metavar="NUMBER",
            min=1,
            help="The number of your prediction. Default: asked on a terminal.",
        ),
    ] = None,
    answer: Annotated[
        bool,
        typer.Option("--answer", help="Train nothing; say what came out before, and why."),
    ] = False,
    overrides: Annotated[Overrides, set_option("seed=2", completion.settings)] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Train with and without a part of the model, and compare. Predict first what breaks without it."""
    if name is None and (answer or prediction or overrides):
        raise UsageError(
            "give the name of an ablation", hint="tfm ablate lists them; then: tfm ablate NAME"
        )
    if answer and (prediction or overrides):
        raise UsageError("--answer trains nothing, so it takes neither --prediction nor --set")
    from transformer_cli.extensions.lessons.commands.ablating.ablate import (
        Wanted,
        answer_question,
        list_all,
        run,
    )
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    if name is None:
        list_all(as_json=as_json)
    elif answer:
        answer_question(name, as_json=as_json)
    else:
        run(Wanted(name, output, tuple(overrides or ()), prediction), as_json=as_json)
