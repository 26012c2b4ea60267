"""The arguments and options of `tfm import`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands.options import DebugOption, JsonOption


def import_model(
    folder: Annotated[
        Path, typer.Argument(help="The folder of the model, such as an OPUS-MT model.")
    ],
    name: Annotated[str, typer.Option("--name", help="Name of the run that is made.")],
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Source language, such as en. Default: as the folder says."),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            help="Target language; several times for a model of several. Default: as the folder says.",
        ),
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make a run of a model of another program. OPUS-MT (Marian), Pegasus, BART, or an export of tfm."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.extensions.exchange.commands.import_model import run_import
    from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes

    run_import(folder, name, Wishes(from_, tuple(to or ())), as_json=as_json)
