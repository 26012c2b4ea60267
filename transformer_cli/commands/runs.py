"""`tfm runs`: the list of runs, runs side by side, and the deletion of checkpoints, as tables or JSON."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from transformer_cli.checkpoint.recorded_series import Comparison, Curve, compare_runs
from transformer_cli.checkpoint.run_folder import RunFolder, name_of_run
from transformer_cli.checkpoint.runs import Pruned, RunOverview, list_runs, prune
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import JsonOption
from transformer_cli.commands.output import fitting, in_columns, show
from transformer_cli.process.errors import StorageError, TryAgainError, UsageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.storage.filesystem import size_in_words

logger = logging.getLogger(__name__)

_ABSENT = "-"
_MAX_SETTING = 40

NamesArgument = Annotated[
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


def runs_command(
    context: typer.Context,
    folder: Annotated[Path, typer.Option("--folder", help="The folder that holds the runs.")] = Path("runs"),
    as_json: JsonOption = False,
) -> None:
    """List, compare and prune the runs of a folder. Pruning deletes checkpoints, but never the best and the last one."""
    if context.invoked_subcommand is None:
        show_list(folder, as_json=as_json)
    else:
        context.obj = _Before(folder, as_json)


def compare_command(context: typer.Context, names: NamesArgument, as_json: JsonOption = False) -> None:
    """Show runs side by side. Settings that differ, scores at the best and the last step, learning curves."""
    before: _Before = context.obj
    show_run_comparison(names, before.folder, as_json=as_json or before.as_json)


def prune_command(
    context: typer.Context,
    names: NamesArgument,
    keep_best: Annotated[int, typer.Option("--keep-best", min=1, help="How many of the best checkpoints stay.")] = 1,
    keep_last: Annotated[int, typer.Option("--keep-last", min=1, help="How many of the newest checkpoints stay.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without a question.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete checkpoints of runs, but never the best and the last one."""
    before: _Before = context.obj
    prune_runs(
        names,
        before.folder,
        keep_last=keep_last,
        keep_best=keep_best,
        is_dry_run=dry_run,
        is_confirmed=yes,
        as_json=as_json or before.as_json,
    )


def show_list(folder: Path, *, as_json: bool) -> None:
    """Print one row for each run of a folder."""
    found = list_runs(folder)
    heads = ("run", "state", "step", "best", "at step", "size", "saved", "languages")
    rows = [heads, *map(_row, found)]
    lines = fitting(in_columns(rows)) if found else [f"no run under {folder}/"]
    for run in found:
        if run.problem is not None:
            logger.warning("%s is damaged: %s", run.name, run.problem)
    show({"folder": str(folder), "runs": [run.as_json() for run in found]}, lines, as_json=as_json)


def show_run_comparison(names: Sequence[str], runs_folder: Path, *, as_json: bool) -> None:
    """Print runs side by side.

    Args:
        names: names of runs in `runs_folder`, or folders of runs.

    Raises:
        UsageError: fewer than two different runs are named.
    """
    folders = _run_folders(names, runs_folder)
    if len(folders) < 2:
        found_one = f"only {name_of_run(folders[0], runs_folder)}" if folders else "no run"
        raise UsageError(
            f"two different runs or more are compared, found {found_one}",
            hint="tfm runs lists them",
        )
    found = compare_runs(folders, runs_folder)
    lines = [
        *in_columns(_settings_rows(found)),
        "",
        *in_columns(_metrics_rows(found)),
        *(line for name in _curve_names(found) for line in ("", *in_columns(_curve_rows(found, name)))),
    ]
    figures = {
        "runs": found.names,
        "settings": found.settings,
        "best": [_at(curve, curve.best_step) for curve in found.curves],
        "last": [_at(curve, max(curve.figures, default=None)) for curve in found.curves],
        "curves": [
            [{"step": step} | dict(values) for step, values in sorted(curve.figures.items())] for curve in found.curves
        ],
    }
    show(figures, fitting(lines), as_json=as_json)


def prune_runs(
    names: Sequence[str],
    runs_folder: Path,
    *,
    keep_last: int,
    keep_best: int,
    is_dry_run: bool,
    is_confirmed: bool,
    as_json: bool,
) -> None:
    """Delete checkpoints of runs; print what was deleted, and its size.

    Args:
        names: names of runs in `runs_folder`, or folders of runs.
        keep_last, keep_best: how many of the last and how many of the best checkpoints stay.
        is_dry_run: only print what would be deleted.
        is_confirmed: delete without asking.

    Raises:
        UsageError: it is not confirmed, and the answer is no or there is no terminal to ask at.
        StorageError, TryAgainError: of the first run that could not be pruned; what was done to the others is printed before.
    """
    folders = _run_folders(names, runs_folder)
    settings = {"keep_last": keep_last, "keep_best": keep_best}
    planned = [prune(folder, **settings, is_dry_run=True) for folder in folders]
    num_deleted = sum(len(one.deleted) for one in planned)
    done = planned
    failures: list[tuple[Path, StorageError | TryAgainError]] = []
    if num_deleted and not is_dry_run:
        if not is_confirmed:
            _ask(planned, num_deleted)
        done = []
        for folder in folders:
            try:
                done.append(prune(folder, **settings, is_dry_run=False))
            except (StorageError, TryAgainError) as error:
                failures.append((folder, error))
    verb = "would delete" if is_dry_run else "deleted"
    facts = [
        {
            "run": str(one.folder),
            "deleted": one.deleted,
            "kept": one.kept,
            "freed_bytes": one.freed_bytes,
        }
        for one in done
    ]
    skipped = [{"run": str(folder), "reason": error.message} for folder, error in failures]
    figures = {"is_dry_run": is_dry_run, "runs": facts} | ({"skipped": skipped} if skipped else {})
    lines = [_pruned_line(one, verb, runs_folder) for one in done]
    lines += [f"{name_of_run(folder, runs_folder)}: not pruned" for folder, _ in failures]
    show(figures, lines, as_json=as_json)
    if failures:
        _, first = failures[0]
        raise type(first)("\n".join(error.message for _, error in failures), hint=first.hint) from first


def _ask(planned: Sequence[Pruned], num_deleted: int) -> None:
    size = size_in_words(sum(one.freed_bytes for one in planned))
    noun = "checkpoint" if num_deleted == 1 else "checkpoints"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"{num_deleted} {noun} ({size}) would be deleted, and there is no terminal to ask at",
            hint="add --yes to delete them, or --dry-run to see which they are",
        )
    sys.stderr.write(f"delete {num_deleted} {noun} ({size})? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was deleted", hint="answer y, or add --yes")


def _pruned_line(one: Pruned, verb: str, runs_folder: Path) -> str:
    deleted = ", ".join(map(str, sorted(one.deleted)))
    kept = ", ".join(map(str, sorted(one.kept))) or "none"
    what = f"{verb} steps {deleted} ({size_in_words(one.freed_bytes)})" if deleted else "nothing to delete"
    return f"{name_of_run(one.folder, runs_folder)}: {what}; keeps {kept}"


def _run_folders(names: Sequence[str], runs_folder: Path) -> list[Path]:
    """The folder of each run, once; a name may also be the path of one of its checkpoints."""
    folders: dict[Path, Path] = {}
    for name in names:
        found = find_run(name, runs_folder)
        folder = (RunFolder.containing(found) or RunFolder(found)).path
        folders.setdefault(folder.resolve(), folder)
    return [*folders.values()]


def _row(run: RunOverview) -> tuple[str, ...]:
    saved = None if run.saved_at is None else time.localtime(run.saved_at / 1000)
    return (
        run.name,
        run.status,
        _number(run.step),
        _ABSENT if run.best is None else f"{run.metric} {run.best:.4g}",
        _number(run.best_step),
        size_in_words(run.size_bytes),
        _ABSENT if saved is None else time.strftime("%Y-%m-%d %H:%M", saved),
        run.languages or _ABSENT,
    )


def _settings_rows(found: Comparison) -> list[tuple[str, ...]]:
    if not found.settings:
        return [("no setting differs",)]
    rows = [("setting", *found.names)]
    for name, values in found.settings.items():
        shown = (_ABSENT if value is None else str(value) for value in values)
        rows.append((name, *(on_one_line(text, _MAX_SETTING) for text in shown)))
    return rows


def _metrics_rows(found: Comparison) -> list[tuple[str, ...]]:
    """The figures of each run at its best and at its last step."""
    heads = (f"{name} {which}" for name in found.names for which in ("best", "last"))
    at = [(curve.best_step, max(curve.figures, default=None)) for curve in found.curves]
    rows = [("", *heads), ("step", *(_number(step) for steps in at for step in steps))]
    for metric in found.metrics():
        values = (_at(curve, step).get(metric) for curve, steps in zip(found.curves, at, strict=True) for step in steps)
        rows.append((metric, *map(_value, values)))
    return rows


def _curve_names(found: Comparison) -> list[str]:
    """The loss, and `training.best_metric` of each run: each gets a table of its learning curves."""
    wanted = dict.fromkeys(["loss", *(curve.metric for curve in found.curves)])
    return [name for name in wanted if name in found.metrics()]


def _curve_rows(found: Comparison, metric: str) -> list[tuple[str, ...]]:
    rows = [(f"{metric} at step", *found.names)]
    for step in found.steps():
        values = (curve.figures.get(step, {}).get(metric) for curve in found.curves)
        rows.append((_number(step), *map(_value, values)))
    return rows


def _at(curve: Curve, step: int | None) -> dict[str, Any]:
    return {} if step is None else {"step": step} | dict(curve.figures[step])


def _value(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def _number(value: int | None) -> str:
    return _ABSENT if value is None else f"{value:,}"
