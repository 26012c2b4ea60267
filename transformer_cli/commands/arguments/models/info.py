"""The arguments and options of `tfm info`. As in `cli.py`, the command is imported only when it runs."""

from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    DebugOption,
    JsonOption,
    Overrides,
    RunOption,
    set_option,
)
from transformer_cli.process.errors import UsageError


def info(
    run: RunOption = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            help="Show a config instead of a run.",
            autocompletion=completion.configs,
        ),
    ] = None,
    overrides: Annotated[Overrides, set_option("model.d_model=256", completion.settings)] = None,
    parameters: Annotated[bool, typer.Option("--parameters", help="List every parameter.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show a run or a config. Parameters, vocabularies, best scores, and where the files are."""
    if run and config:
        raise UsageError("give either --run or --config, not both")
    from transformer_cli.commands.info import show_info
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)

    show_info(run, config, overrides or [], parameters=parameters, as_json=as_json)
