"""Panels with curves as one web page, which needs no network: it follows the theme of the reader."""

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

import jinja2
import matplotlib

from transformer_cli.extensions.lessons.drawing.curve_figure import (
    LINE_STYLES,
    Look,
    single_figure,
)
from transformer_cli.extensions.lessons.drawing.curves import Panel, PlottedCurve
from transformer_cli.extensions.lessons.drawing.pictures import ThemeName
from transformer_cli.extensions.lessons.drawing.theme import DARK, LIGHT, drawing_settings

_TEMPLATE = "curve_page.html"
_DASHES = ("", "7 4", "2 3", "8 3 2 3", "10 3 2 3 2 3")


_NAMES = ("background", "ink", "muted", "faint")
# CSS variables, with their values on a light and on a dark page.
_COLORS = [(name, getattr(LIGHT, name), getattr(DARK, name)) for name in _NAMES]
_COLORS += [
    (f"line-{place}", *shades)
    for place, shades in enumerate(zip(LIGHT.lines, DARK.lines, strict=True))
]


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
        runs=[
            (name, run % len(LIGHT.lines), _DASHES[run % len(LINE_STYLES)])
            for run, name in enumerate(names)
        ],
        panels=shown,
        rows=rows,
        theme=theme,
        colors=_COLORS,
        # Without this character, nothing in the data can end the script.
        data=json.dumps(data).replace("<", "\\u003c"),
    )


def _svg(panel: Panel, look: Look) -> tuple[str, dict[str, Any]]:
    """The picture of a panel, and where its axes lie in it: shares of its width, and the range of x."""
    buffer = io.StringIO()
    with drawing_settings():
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": panel.metric})
        figure = single_figure(panel, look)
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
        [axes] = figure.axes
        box, limits = axes.get_position(), axes.get_xlim()
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # In a page of HTML, the parser knows these names.
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    for name, light, _ in _COLORS:
        svg = svg.replace(light, f"var(--{name})")
    return svg, {"left": box.x0, "right": box.x1, "range": list(limits)}


def _points(curve: PlottedCurve) -> dict[str, Any]:
    values = [value if math.isfinite(value) else None for value in curve.ys]
    return {"run": curve.run, "kind": curve.kind, "x": curve.xs, "y": values}
