"""The work of `tfm plot`: the curves of runs as a picture, a page or a table."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint import find_run
from transformer_cli.checkpoint.recorded_series import RecordedSeries, read_series
from transformer_cli.checkpoint.run_folder import RUNS, RunFolder
from transformer_cli.commands.output import check_output, fitting, show, write_and_tell
from transformer_cli.extensions.lessons.drawing.picture_files import FORMATS, bytes_of
from transformer_cli.extensions.lessons.drawing.plots.curves import (
    Panel,
    PlottedRun,
    default_metrics,
    gaps,
    panels_of,
)
from transformer_cli.extensions.lessons.drawing.plots.horizontal_axis import AXIS_LABELS, Axis
from transformer_cli.extensions.lessons.drawing.plots.seed_groups import grouped
from transformer_cli.extensions.lessons.drawing.theme import THEMES, ThemeName
from transformer_cli.process.errors import MissingInputError, UsageError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.storage import make_folders

logger = logging.getLogger(__name__)

PAGE = ".html"
_ABSENT = "-"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is drawn, and how."""

    metrics: Sequence[str] = ()
    """Empty: loss, scores, learning rate, gradient norm and speed."""
    axis: Axis = "step"
    smooth: int = 1
    logarithmic: Sequence[str] = ()
    is_grouped: bool = False
    theme: ThemeName | None = None


class ValueRow(NamedTuple):
    """The final and the best value of a curve."""

    metric: str
    run: str
    of: str
    final: float | None
    final_step: int | None
    best: float | None
    best_step: int | None


def plot(
    names: Sequence[str], output: Path | None, wishes: Wishes, *, as_json: bool, as_table: bool
) -> None:
    """Draw the curves of runs, and print their final and best values if that is asked for.

    Raises:
        UsageError: there is nothing to do, a metric is not known, or the output has another ending.
        MissingInputError: there is no such run, or no run has recorded anything.
    """
    if output is None and not (as_json or as_table):
        raise UsageError(
            "say what to make: a picture or page, or a table",
            hint="add --output curves.png (or .svg, .pdf, .html), or --table, or --json",
        )
    if output is not None:
        _check_ending(output)
        make_folders(output.parent)
        check_output(output)
    members = _members(names)
    if wishes.is_grouped:
        runs = grouped(members)
    else:
        runs = [PlottedRun(name, [one]) for name, one in zip(_names(members), members, strict=True)]
    panels = panels_of(
        runs, wishes.metrics or default_metrics(runs), wishes.axis, smooth=wishes.smooth
    )
    _check_logarithmic(panels, wishes.logarithmic)
    for sentence in gaps(runs):
        logger.warning("%s", sentence)
    rows = value_rows(runs, panels)
    if output is not None:
        _write(output, runs, panels, wishes)
    if as_json or as_table:
        facts = {
            "runs": [_facts(run) for run in runs],
            "values": [row._asdict() for row in rows],
        }
        show(facts, fitting(_table(rows)), as_json=as_json)


def _check_ending(output: Path) -> None:
    endings = (*FORMATS, PAGE)
    if output.suffix.lower() not in endings:
        raise UsageError(
            f"{output}: the ending of --output says what is written; {output.suffix or 'no ending'} is none of "
            f"{', '.join(endings)}",
            hint="--output curves.png",
        )


def _members(names: Sequence[str]) -> list[tuple[Path, RecordedSeries]]:
    """The runs that have recorded something, each once."""
    folders = [_newest()] if not names else [_folder(name) for name in names]
    unique = {folder.resolve(): folder for folder in folders}
    found = []
    for folder in unique.values():
        series = read_series(RunFolder(folder).metrics_file)
        if series.training or series.validation:
            found.append((folder, series))
        else:
            logger.warning("%s: nothing is recorded yet; it is left out", folder)
    if not found:
        listed = ", ".join(map(str, unique.values()))
        raise MissingInputError(
            f"{listed}: nothing is recorded in metrics.jsonl",
            hint="a training records a line every training.log_every updates, and one at each validation",
        )
    return found


def _newest() -> Path:
    try:
        return _of_checkpoint(find_run(None))
    except MissingInputError:
        # A run that trains may have no checkpoint yet.
        files = [path for path in RUNS.glob("*/metrics.jsonl") if path.is_file()]
        if not files:
            raise
        return max(files, key=lambda path: path.stat().st_mtime).parent


def _folder(name: str) -> Path:
    for place in (RUNS / name, Path(name)):
        if name.strip() and RunFolder(place).metrics_file.is_file():
            return place
    return _of_checkpoint(find_run(name))


def _of_checkpoint(found: Path) -> Path:
    of_checkpoint = RunFolder.of_checkpoint(found)
    return found if of_checkpoint is None else of_checkpoint.path


def _names(members: Sequence[tuple[Path, RecordedSeries]]) -> list[str]:
    """The names of the folders; the whole path where two folders have the same name."""
    short = [folder.resolve().name for folder, _ in members]
    return [
        name if short.count(name) == 1 else str(folder)
        for name, (folder, _) in zip(short, members, strict=True)
    ]


def _check_logarithmic(panels: Sequence[Panel], names: Sequence[str]) -> None:
    drawn = [panel.metric for panel in panels]
    for name in names:
        if name.lower() not in drawn:
            raise UsageError(f"--log {name}: it is not drawn", hint=f"drawn are {', '.join(drawn)}")


def value_rows(runs: Sequence[PlottedRun], panels: Sequence[Panel]) -> list[ValueRow]:
    """A row for each curve, in the order of the panels."""
    rows = []
    for panel in panels:
        for curve in panel.curves:
            final_step, final = panel.final(curve) or (None, None)
            best_step, best = panel.best(curve) or (None, None)
            run = runs[curve.run].name
            rows.append(ValueRow(panel.metric, run, curve.kind, final, final_step, best, best_step))
    return rows


def _write(
    output: Path, runs: Sequence[PlottedRun], panels: Sequence[Panel], wishes: Wishes
) -> None:
    from transformer_cli.extensions.lessons.drawing.plots.curve_figure import (
        Look,
        draw_panels,
        end_of,
    )
    from transformer_cli.extensions.lessons.drawing.plots.curve_page import page_of_panels
    from transformer_cli.extensions.lessons.drawing.theme import drawing_settings

    names = [run.name for run in runs]
    is_page = output.suffix.lower() == PAGE
    theme = THEMES["light" if is_page else wishes.theme or "light"]
    logarithmic = frozenset(map(str.lower, wishes.logarithmic))
    look = Look(AXIS_LABELS[wishes.axis], theme, end_of(panels), logarithmic)
    if is_page:
        rows = [_shown(row) for row in value_rows(runs, panels)]
        page = page_of_panels(names, panels, look, rows, theme=wishes.theme)
        content = page.encode("utf-8", "replace")
    else:
        with drawing_settings():
            content = bytes_of(draw_panels(names, panels, look), output.suffix.lower())
    write_and_tell(output, content, f": {', '.join(map(on_one_line, names))}")


def _facts(run: PlottedRun) -> dict[str, Any]:
    return {"name": run.name, "folders": [str(folder) for folder, _ in run.members]}


def _shown(row: ValueRow) -> dict[str, str]:
    """A row as texts."""
    return {
        name: _ABSENT
        if value is None
        else f"{value:,}"
        if isinstance(value, int)
        else _value(value)
        for name, value in row._asdict().items()
    }


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return on_one_line(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _table(rows: Sequence[ValueRow]) -> list[str]:
    heads = ("metric", "run", "of", "final", "at step", "best", "at step")
    cells = [heads, *(tuple(_shown(row).values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < 3 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
