"""Panels with curves as a figure of matplotlib, or as one web page: one colour and one line style for each run."""

import itertools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

import jinja2
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from transformer_cli.evaluation.curve_pictures import (
    LINE_STYLES,
    color_of,
    dashes_of,
    draw_line,
    drawing_settings,
    inline_svg,
    svg_text,
)
from transformer_cli.evaluation.picture_fonts import readable_labels
from transformer_cli.extensions.lessons.drawing.curves import LOSS, Panel, PlottedCurve
from transformer_cli.extensions.lessons.drawing.pictures import ThemeName
from transformer_cli.extensions.lessons.drawing.theme import (
    DARK,
    LIGHT,
    SMALL,
    TEXT,
    Theme,
    grid,
    new_figure,
    style,
)
from transformer_cli.process.messages import on_one_line

_PANEL_WIDTH, _PANEL_HEIGHT = 6.0, 3.1  # inches
_MAX_MARKERS = 30
_MAX_NAME = 48


@dataclass(frozen=True, slots=True)
class Look:
    """What all panels of a plot have in common."""

    x_label: str
    theme: Theme
    x_end: float
    """The end of the horizontal axes, which begin at 0."""
    logarithmic: Collection[str] = ()
    """The metrics whose vertical axis is logarithmic."""


def end_of(panels: Sequence[Panel]) -> float:
    """Where the longest curve ends, and a little more; 1 without curves."""
    return 1.02 * max((x for one in panels for curve in one.curves for x in curve.xs), default=0) or 1.0


def draw_panels(names: Sequence[str], panels: Sequence[Panel], look: Look) -> Figure:
    """All panels in one figure, two beside each other, with a legend of the runs above them.

    Args:
        names: of the runs; `Curve.run` is an index into them.
    """
    num_columns = min(2, len(panels))
    num_rows = math.ceil(len(panels) / num_columns)
    labels, families = readable_labels([_label(name) for name in names])
    columns_of_legend = max(1, int(num_columns * 60 / (max(map(len, labels)) + 10)))
    rows_of_legend = math.ceil(len(labels) / columns_of_legend)
    figure = new_figure(num_rows * _PANEL_HEIGHT + 0.3 + 0.24 * rows_of_legend, look.theme)
    figure.set_size_inches(num_columns * _PANEL_WIDTH, figure.get_figheight())
    axes = figure.subplots(num_rows, num_columns, squeeze=False).flatten().tolist()
    for one, panel in itertools.zip_longest(axes, panels):
        if panel is None:
            one.set_axis_off()
        else:
            draw_panel(one, panel, look)
    figure.legend(
        handles=[_handle(run, label, look.theme) for run, label in enumerate(labels)],
        loc="outside upper left",
        ncols=columns_of_legend,
        frameon=False,
        labelcolor=look.theme.ink,
        prop={"family": families, "size": TEXT},
        handlelength=3.5,
    )
    return figure


def single_figure(panel: Panel, look: Look) -> Figure:
    """A figure with one panel, without a legend."""
    figure = new_figure(_PANEL_HEIGHT, look.theme)
    figure.set_size_inches(_PANEL_WIDTH, _PANEL_HEIGHT)
    draw_panel(figure.subplots(), panel, look)
    return figure


def draw_panel(axes: Axes, panel: Panel, look: Look) -> None:
    """Draw the curves of one metric.

    The identifier of a line is `curve-METRIC-RUN-KIND`, with hyphens for spaces.
    """
    theme = look.theme
    kinds = {curve.kind for curve in panel.curves}
    for curve in panel.curves:
        is_thin = curve.kind == "training" and len(kinds) == 2
        _draw_curve(axes, panel.metric, curve, theme, is_thin=is_thin)
    style(axes, theme, title=panel.title)
    grid(axes, theme)
    if len(kinds) == 2:
        note = "thin: training; thick, with marks: validation"
        axes.margins(y=0.16)  # room for the note above the curves
        axes.annotate(
            note,
            (1.0, 1.0),
            (0, -4),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=SMALL,
            color=theme.muted,
        )
    axes.set_xlabel(look.x_label, color=theme.muted, fontsize=SMALL)
    if panel.metric in look.logarithmic:
        _make_logarithmic(axes)
    elif panel.metric != LOSS and _lowest(panel) >= 0:
        axes.set_ylim(bottom=0)
    axes.set_xlim(0, look.x_end)


def _make_logarithmic(axes: Axes) -> None:
    """A logarithmic axis with marks at 1, 2, 5, 10 and so on; zeros are left out of the curves."""
    axes.set_yscale("log", nonpositive="mask")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _lowest(panel: Panel) -> float:
    values = [value for curve in panel.curves for value in curve.lows if math.isfinite(value)]
    return min(values, default=0.0)


def _draw_curve(axes: Axes, metric: str, curve: PlottedCurve, theme: Theme, *, is_thin: bool) -> None:
    name = f"curve-{metric.replace(' ', '-')}-{curve.run}-{curve.kind}"
    color = color_of(curve.run, theme.lines)
    if curve.raw is not None:
        axes.plot(curve.xs, curve.raw, color=color, linewidth=0.7, alpha=0.35, gid=f"{name}-raw")
    if curve.lows != curve.highs:
        axes.fill_between(curve.xs, curve.lows, curve.highs, color=color, alpha=0.18, linewidth=0, gid=f"{name}-range")
    is_marked = curve.kind == "validation" and len(curve.xs) <= _MAX_MARKERS
    draw_line(
        axes,
        curve.xs,
        curve.ys,
        curve.run,
        theme.lines,
        linewidth=1.1 if is_thin else 1.8,
        alpha=0.75 if is_thin else 1.0,
        marker="o",
        markersize=3.5,
        markevery=None if is_marked else _alone(curve.ys),
        gid=name,
    )


def _alone(values: Sequence[float]) -> list[int]:
    """The places of values without a neighbour, of which a line shows nothing."""
    is_there = [False, *map(math.isfinite, values), False]
    return [
        place for place in range(len(values)) if is_there[place + 1] and not is_there[place] and not is_there[place + 2]
    ]


def _handle(run: int, label: str, theme: Theme) -> Any:
    return Line2D(
        [],
        [],
        color=color_of(run, theme.lines),
        linestyle=dashes_of(run),
        linewidth=1.8,
        label=label,
    )


def _label(name: str) -> str:
    """A name for a legend, which leaves out names that begin with an underscore."""
    return on_one_line(name.strip(), _MAX_NAME).lstrip("_") or "run"


_TEMPLATE = "curve_page.html"
_DASHES = ("", "7 4", "2 3", "8 3 2 3", "10 3 2 3 2 3")


_NAMES = ("background", "ink", "muted", "faint")
# CSS variables, with their values on a light and on a dark page.
_COLORS = [(name, getattr(LIGHT, name), getattr(DARK, name)) for name in _NAMES]
_COLORS += [(f"line-{place}", *shades) for place, shades in enumerate(zip(LIGHT.lines, DARK.lines, strict=True))]


class _Shown(NamedTuple):
    metric: str
    title: str
    svg: str


def page_of_panels(
    names: Sequence[str],
    panels: Sequence[Panel],
    look: Look,
    rows: Sequence[Mapping[str, Any]],
    *,
    theme: ThemeName | None = None,
) -> str:
    """The page as HTML.

    Args:
        names: of the runs.
        look: its theme must be the light one.
        rows: of the table of final and best values.
        theme: None: the page follows the reader's setting.
    """
    shown, values = [], {}
    for panel in panels:
        svg, area = _svg(panel, look)
        shown.append(_Shown(panel.metric, panel.title, svg))
        values[panel.metric] = area | {"curves": [_points(curve) for curve in panel.curves]}
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = resources.files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
    data = {"names": list(names), "panels": values, "x": look.x_label}
    return environment.from_string(template).render(
        runs=[(name, run % len(LIGHT.lines), _DASHES[run % len(LINE_STYLES)]) for run, name in enumerate(names)],
        panels=shown,
        rows=rows,
        theme=theme,
        colors=_COLORS,
        # Without this character, nothing in the data can end the script.
        data=json.dumps(data).replace("<", "\\u003c"),
    )


def _svg(panel: Panel, look: Look) -> tuple[str, dict[str, Any]]:
    """The picture of a panel, and where its axes lie in it: shares of its width, and the range of x."""
    with drawing_settings():
        figure = single_figure(panel, look)
        svg = svg_text(figure, panel.metric, transparent=True)
        [axes] = figure.axes
        box, limits = axes.get_position(), axes.get_xlim()
    svg = inline_svg(svg, {light: f"--{name}" for name, light, _ in _COLORS})
    return svg, {"left": box.x0, "right": box.x1, "range": list(limits)}


def _points(curve: PlottedCurve) -> dict[str, Any]:
    values = [value if math.isfinite(value) else None for value in curve.ys]
    return {"run": curve.run, "kind": curve.kind, "x": curve.xs, "y": values}
