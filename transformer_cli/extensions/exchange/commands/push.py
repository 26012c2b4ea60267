"""`tfm push`: uploads an exported folder to the Hugging Face hub, after showing what would go."""

import sys
from pathlib import Path

from transformer_cli.commands.output import show
from transformer_cli.extensions.exchange.porting.hub_upload import (
    check_repository,
    planned_files,
    upload,
)
from transformer_cli.process.errors import UsageError


def push_folder(
    folder: Path,
    repository: str,
    *,
    is_private: bool,
    is_dry_run: bool,
    is_confirmed: bool,
    as_json: bool,
) -> None:
    """Show what would be uploaded, ask, and upload it.

    Raises:
        UsageError: the answer is no, or there is no terminal to ask at.
    """
    check_repository(repository)
    files = planned_files(folder)
    kind = "private" if is_private else "public"
    total = sum(file.num_bytes for file in files)
    lines = [f"{file.num_bytes:>14,}  {file.name}" for file in files]
    lines.append(
        f"{total:>14,}  bytes in {len(files)} files, to the {kind} repository {repository}"
    )
    facts = {
        "folder": str(folder),
        "repository": repository,
        "private": is_private,
        "files": [file._asdict() for file in files],
        "address": None,
    }
    if is_dry_run:
        show(facts, lines, as_json=as_json)
        return
    sys.stderr.write("\n".join(lines) + "\n")
    if not is_confirmed:
        _ask(repository)
    address = upload(folder, repository, is_private=is_private)
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
