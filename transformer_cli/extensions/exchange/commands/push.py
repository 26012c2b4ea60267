"""`tfm push`: uploads an exported folder to the Hugging Face hub, after showing what would go."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands.command_line import JsonOption
from transformer_cli.commands.output import show
from transformer_cli.process.errors import UsageError


def push_command(
    folder: Annotated[Path, typer.Argument(help="A folder that tfm export has made.")],
    repository: Annotated[str, typer.Argument(metavar="USER/NAME", help="The repository on the hub; it is made.")],
    private: Annotated[bool, typer.Option("--private", help="If the repository is made, only you can see it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Upload without a question.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Upload an exported folder to the Hugging Face hub. Log in first: hf auth login."""
    from transformer_cli.extensions.exchange.hub_upload import (
        check_repository,
        planned_files,
        upload,
    )

    check_repository(repository)
    files = planned_files(folder)
    kind = "private" if private else "public"
    total = sum(file.num_bytes for file in files)
    lines = [f"{file.num_bytes:>14,}  {file.name}" for file in files]
    lines.append(f"{total:>14,}  bytes in {len(files)} files, to the {kind} repository {repository}")
    facts = {
        "folder": str(folder),
        "repository": repository,
        "private": private,
        "files": [file._asdict() for file in files],
        "address": None,
    }
    if dry_run:
        show(facts, lines, as_json=as_json)
        return
    sys.stderr.write("\n".join(lines) + "\n")
    if not yes:
        _ask(repository)
    address = upload(folder, repository, files, is_private=private)
    show(facts | {"address": address}, [f"uploaded to {address}"], as_json=as_json)


def _ask(repository: str) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"these files would be uploaded to {repository}, and there is no terminal to ask at",
            hint="add --yes to upload them, or --dry-run to see them only",
        )
    sys.stderr.write("upload? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was uploaded", hint="answer y, or add --yes")
