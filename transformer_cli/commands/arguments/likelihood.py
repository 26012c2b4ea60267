"""The options of `tfm likelihood`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.arguments.options import (
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunsOption,
    ToOption,
    set_option,
)


def likelihood(
    source: Annotated[
        Path,
        typer.Option("--source", help="A text file in the source language; - is standard input."),
    ],
    target: Annotated[
        Path,
        typer.Option("--target", help="Its translations: line N belongs to line N of --source."),
    ],
    run: RunsOption = None,
    overrides: Annotated[
        Overrides, set_option("runtime.device=cpu", completion.settings_of_likelihoods)
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print how probable given translations are: log-probability, tab, number of tokens, for each line."""
    from transformer_cli.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.commands.likelihood import print_likelihoods

    print_likelihoods(
        run, (source, target), overrides=overrides or [], languages=(to, from_), as_json=as_json
    )
