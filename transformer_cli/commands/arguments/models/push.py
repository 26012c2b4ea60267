"""The arguments and options of `tfm push`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands.options import DebugOption, JsonOption


def push(
    folder: Annotated[Path, typer.Argument(help="A folder that tfm export has made.")],
    repository: Annotated[
        str, typer.Argument(metavar="USER/NAME", help="The repository on the hub; it is made.")
    ],
    private: Annotated[
        bool, typer.Option("--private", help="If the repository is made, only you can see it.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Upload without a question.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Upload an exported folder to the Hugging Face hub. Log in first: hf auth login."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.extensions.exchange.commands.push import push_folder

    push_folder(
        folder,
        repository,
        is_private=private,
        is_dry_run=dry_run,
        is_confirmed=yes,
        as_json=as_json,
    )
