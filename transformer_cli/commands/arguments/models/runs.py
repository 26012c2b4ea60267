"""The arguments and options of `tfm runs`. As in `cli.py`, the work is imported only when it is done."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import CarefulCommand
from transformer_cli.commands.options import DebugOption, JsonOption

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Names or folders of runs.",
        autocompletion=completion.runs,
    ),
]


class _Before(NamedTuple):
    """The options that stand before the name of a subcommand."""

    folder: Path
    as_json: bool
    debug: bool


runs = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    help="List, compare and prune the runs of a folder. Pruning deletes checkpoints, but never the best and the last one.",
    epilog="Example: tfm runs, or: tfm runs compare en-it en-it-2, or: tfm runs prune en-it --keep-last 1",
)


@runs.callback()
def show_runs(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Option("--folder", help="The folder that holds the runs.")
    ] = Path("runs"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List the runs of a folder. Step, state, best score, size, time of the last save."""
    if context.invoked_subcommand is not None:
        context.obj = _Before(folder, as_json, debug)
        return
    _set_up_logging(debug)
    from transformer_cli.commands.run_tables import show_list

    show_list(folder, as_json=as_json)


@runs.command(cls=CarefulCommand, epilog="Example: tfm runs compare en-it en-it-small --json")
def compare(
    context: typer.Context,
    names: Names,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show runs side by side. Settings that differ, scores at the best and the last step, learning curves."""
    before: _Before = context.obj
    _set_up_logging(debug or before.debug)
    from transformer_cli.commands.run_tables import show_comparison

    show_comparison(names, before.folder, as_json=as_json or before.as_json)


@runs.command(
    cls=CarefulCommand, epilog="Example: tfm runs prune en-it --keep-best 1 --keep-last 1 --dry-run"
)
def prune(
    context: typer.Context,
    names: Names,
    keep_best: Annotated[
        int, typer.Option("--keep-best", min=1, help="How many of the best checkpoints stay.")
    ] = 1,
    keep_last: Annotated[
        int, typer.Option("--keep-last", min=1, help="How many of the newest checkpoints stay.")
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without a question.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Delete checkpoints of runs, but never the best and the last one."""
    before: _Before = context.obj
    _set_up_logging(debug or before.debug)
    from transformer_cli.commands.run_tables import prune_runs

    prune_runs(
        names,
        before.folder,
        (keep_last, keep_best),
        is_dry_run=dry_run,
        is_confirmed=yes,
        as_json=as_json or before.as_json,
    )


def _set_up_logging(debug: bool) -> None:
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
