"""`tfm plot`: the curves of runs as a picture, a page or a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import JsonOption
from transformer_cli.commands.output import check_output, fitting, show, write_and_tell
from transformer_cli.extensions.lessons.drawing.curves import (
    AXIS_LABELS,
    Panel,
    PlottedRun,
    ValueRow,
    default_metrics,
    panels_of,
    plotted_runs,
    table_of_values,
    value_rows,
    warn_of_gaps,
)
from transformer_cli.extensions.lessons.drawing.pictures import FORMATS, ThemeName, bytes_of
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.storage import make_folders

PAGE = ".html"
Axis = Literal["step", "epoch", "tokens", "minutes"]

RunsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN]...",
        help="Names or folders of runs. Default: the newest run under runs/.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="A file that ends in .png, .svg or .pdf, or in .html for a page that needs no network.",
    ),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="What is drawn, such as loss, bleu or gradient_norm; may be repeated. Default: loss, all scores, "
        "learning rate, gradient norm and speed.",
        autocompletion=completion.plotted_metrics,
    ),
]
AxisOption = Annotated[
    Axis,
    typer.Option("--x", help="The horizontal axis."),
]
SmoothOption = Annotated[
    int,
    typer.Option(
        "--smooth",
        min=1,
        max=10_000,
        metavar="N",
        help="Draw the mean of N reports of the training around each one; the values themselves stay visible.",
    ),
]
LogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        metavar="NAME",
        help="A metric with a logarithmic axis; may be repeated.",
        autocompletion=completion.plotted_metrics,
    ),
]
GroupOption = Annotated[
    bool,
    typer.Option("--group", help="Draw runs that differ only in the seed as their mean, with their range."),
]
ThemeOption = Annotated[
    ThemeName | None,
    typer.Option("--theme", help="The colours. Default: light; a page follows the reader's setting."),
]
TableOption = Annotated[bool, typer.Option("--table", help="Print the final and the best values as a table.")]


def plot_command(
    names: RunsArgument = None,
    output: OutputOption = None,
    metrics: MetricOption = None,
    axis: AxisOption = "step",
    smooth: SmoothOption = 1,
    log: LogOption = None,
    group: GroupOption = False,
    theme: ThemeOption = None,
    table: TableOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw the training curves of runs. Loss, scores, learning rate, gradient norm and speed."""
    runs = plotted_runs(names or (), is_grouped=group)
    if output is None and not (as_json or table):
        raise UsageError(
            "say what to make: a picture or page, or a table",
            hint="add --output curves.png (or .svg, .pdf, .html), or --table, or --json",
        )
    if output is not None:
        _check_ending(output)
        make_folders(output.parent)
        check_output(output)
    panels = panels_of(runs, metrics or default_metrics(runs), axis, smooth=smooth)
    _check_logarithmic([panel.metric for panel in panels], log or ())
    warn_of_gaps(runs)
    rows = value_rows(runs, panels)
    if output is not None:
        content = _content(output, runs, panels, rows, axis=axis, theme=theme, logarithmic=log or ())
        write_and_tell(output, content, f": {', '.join(on_one_line(run.name) for run in runs)}")
    if as_json or table:
        facts = {
            "runs": [run.facts() for run in runs],
            "values": [row.facts() for row in rows],
        }
        show(facts, fitting(table_of_values(rows)), as_json=as_json)


def _check_ending(output: Path) -> None:
    endings = (*FORMATS, PAGE)
    if output.suffix.lower() not in endings:
        raise UsageError(
            f"{output}: the ending of --output says what is written; {output.suffix or 'no ending'} is none of "
            f"{', '.join(endings)}",
            hint="--output curves.png",
        )


def _check_logarithmic(drawn: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name.lower() not in drawn:
            raise UsageError(f"--log {name}: it is not drawn", hint=f"drawn are {', '.join(drawn)}")


def _content(
    output: Path,
    runs: Sequence["PlottedRun"],
    panels: Sequence["Panel"],
    rows: Sequence["ValueRow"],
    *,
    axis: Axis,
    theme: ThemeName | None,
    logarithmic: Sequence[str],
) -> bytes:
    """The bytes of the picture or page."""
    from transformer_cli.evaluation.curve_pictures import drawing_settings
    from transformer_cli.extensions.lessons.drawing.curve_figure import (
        Look,
        draw_panels,
        end_of,
        page_of_panels,
    )
    from transformer_cli.extensions.lessons.drawing.theme import THEMES

    names = [run.name for run in runs]
    is_page = output.suffix.lower() == PAGE
    colors = THEMES["light" if is_page else theme or "light"]
    look = Look(AXIS_LABELS[axis], colors, end_of(panels), frozenset(map(str.lower, logarithmic)))
    if is_page:
        shown = [row.shown() for row in rows]
        return page_of_panels(names, panels, look, shown, theme=theme).encode("utf-8", "replace")
    with drawing_settings():
        return bytes_of(draw_panels(names, panels, look), output.suffix.lower())
