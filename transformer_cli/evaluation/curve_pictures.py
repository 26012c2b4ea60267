"""Curves as pictures of matplotlib: reports, model cards, plots and ablations draw their lines here, so they look alike."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from transformer_cli.checkpoint.recorded_series import Values, finite, read_series
from transformer_cli.evaluation.picture_fonts import USUAL

INK, MUTED, FAINT = "#1b2430", "#5a6573", "#d5dae1"
"""Of texts, of texts of second rank, and of grids and borders."""
LINES = ("#0072b2", "#d55e00", "#009e73", "#a3497f", "#b07d00", "#3a8fc4", "#7a5cc0")
"""The palette of Okabe and Ito 2008, "Color Universal Design": people with any colour vision can tell them apart."""
LINE_STYLES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (7, 2, 1, 2, 1, 2)))
_MAX_MARKERS = 40
_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "text.color": INK,
    "font.size": 11,
}


class ChartLine(NamedTuple):
    """The points of one line, whose numbers are finite."""

    name: str
    points: Sequence[tuple[float, float]]


class Chart(NamedTuple):
    """What a picture shows: lines with points, from x = 0 on."""

    title: str
    x_label: str
    lines: Sequence[ChartLine]
    y_range: tuple[float, float] | None = None
    """The lowest and the highest value of the vertical axis; None: those of the points."""


def learning_curves(metrics_file: Path) -> list[Chart]:
    """Charts of the losses, the scores and the learning rate over the steps; none without a readable file."""
    if not metrics_file.is_file():
        return []
    recorded = read_series(metrics_file)
    training, validation = recorded.training, recorded.validation
    drawn: list[tuple[str, Mapping[str, Values]]] = [
        (
            "Loss, nats per target token",
            {"training": training.get("loss", {}), "validation": validation.get("loss", {})},
        ),
        (
            "Scores on the validation split",
            {title: validation.get(name, {}) for name, title in recorded.titles.items()},
        ),
        ("Learning rate", {"rate": training.get("learning_rate", {})}),
    ]
    charts = []
    for title, series in drawn:
        lines = [ChartLine(name, [*finite(values).items()]) for name, values in series.items()]
        charts.append(Chart(title, "step", [line for line in lines if line.points]))
    return [chart for chart in charts if chart.lines]


def svg_of(chart: Chart, *, is_bare: bool = False) -> str:
    """The chart as an SVG document; equal charts give equal texts.

    Args:
        is_bare: without the title and the white ground.
    """
    with drawing_settings(), matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 3.3), layout="constrained")
        axes = figure.subplots()
        for number, line in enumerate(chart.lines):
            marker = "o" if len(line.points) <= _MAX_MARKERS else ""
            xs, ys = zip(*line.points, strict=True)
            draw_line(axes, xs, ys, number, label=line.name, marker=marker, markersize=4)
        axes.set(xlabel=chart.x_label, title="" if is_bare else chart.title)
        axes.set_xlim(left=min(0, axes.dataLim.xmin))
        if chart.y_range:
            axes.set_ylim(chart.y_range)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6))
            axis.set_major_formatter(FuncFormatter(_number))
        handles, _ = axes.get_legend_handles_labels()
        names = [line.name for line in chart.lines]
        figure.legend(handles, names, loc="outside lower left", ncols=3, frameon=False)
        return svg_text(figure, chart.title, transparent=is_bare)


def _number(value: float, _: object) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def draw_line(
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float],
    number: int,
    colors: Sequence[str] = LINES,
    **style: Any,
) -> None:
    """Draw a line in the colour and with the dashes of its number."""
    style = {"linewidth": 1.8} | style
    axes.plot(xs, ys, color=color_of(number, colors), linestyle=dashes_of(number), **style)


def color_of(number: int, colors: Sequence[str] = LINES) -> str:
    """The colour of a line."""
    return colors[number % len(colors)]


def dashes_of(number: int) -> Any:
    """The line style of a line."""
    return LINE_STYLES[number % len(LINE_STYLES)]


@contextmanager
def drawing_settings() -> Iterator[None]:
    """The settings of matplotlib for drawing and saving: its defaults, whatever the user's own file says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["font.family"] = [USUAL]
        matplotlib.rcParams["svg.hashsalt"] = "tfm"
        matplotlib.rcParams["text.parse_math"] = False  # a dollar sign is a dollar sign
        yield


def svg_text(figure: Figure, salt: str, **options: Any) -> str:
    """A figure as SVG whose texts are texts; in `drawing_settings`.

    Args:
        salt: figures on one page need different ones, because their elements get their names from it.
        options: of `Figure.savefig`.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, **options)
    svg = buffer.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)


def inline_svg(svg: str, variables: Mapping[str, str]) -> str:
    """The SVG as an element of a page, as wide as its place, with variables of CSS in the place of colours."""
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)  # a parser of HTML knows these names
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    for color, variable in variables.items():
        svg = svg.replace(color, f"var({variable})")
    return svg
