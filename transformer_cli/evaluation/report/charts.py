"""Charts: converts numbers to the coordinates of lines and axes in an SVG picture, which the page draws."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 640, 300
"""Of a chart, in units of the picture, which a browser scales to the page."""
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 16, 56
_NUM_TICKS = 5


class Series(NamedTuple):
    """The points of one line."""

    name: str
    points: list[tuple[float, float]]


class Tick(NamedTuple):
    """A mark of an axis."""

    position: float
    label: str


class Line(NamedTuple):
    """A line of a chart: its name, and its points for an SVG polyline."""

    name: str
    points: str
    markers: list[tuple[float, float]]
    """Its points, if they are few enough to be marked one by one."""


class Chart(NamedTuple):
    """A chart that is ready to be drawn."""

    title: str
    x_label: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def line_chart(
    title: str,
    x_label: str,
    series: Sequence[Series],
    *,
    y_range: tuple[float, float] | None = None,
    max_markers: int = 40,
) -> Chart | None:
    """A chart of several lines, from x = 0 on; None if no line has a point with finite numbers.

    Args:
        y_range: the lowest and the highest value of the vertical axis; None: those of the points.
        max_markers: a line of more points has no markers.
    """
    finite = [Series(one.name, list(_finite(one.points))) for one in series]
    kept = [one for one in finite if one.points]
    if not kept:
        return None
    xs = [x for one in kept for x, _ in one.points]
    ys = [y for one in kept for _, y in one.points]
    x_ticks = _ticks(min(0.0, *xs), max(xs))
    y_ticks = _ticks(*(y_range or (min(ys), max(ys))))

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + _share(x, x_ticks) * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - _share(y, y_ticks) * _inner_height(), 1)

    lines = []
    for one in kept:
        points = [place(x, y) for x, y in one.points]
        text = " ".join(f"{x},{y}" for x, y in points)
        lines.append(Line(one.name, text, points if len(points) <= max_markers else []))
    return Chart(
        title,
        x_label,
        lines,
        [Tick(place(x, y_ticks[0])[0], _number(x)) for x in x_ticks],
        [Tick(place(x_ticks[0], y)[1], _number(y)) for y in y_ticks],
    )


def _inner_height() -> int:
    return HEIGHT - TOP - BOTTOM


def _finite(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    return (point for point in points if all(map(math.isfinite, point)))


def _share(value: float, ticks: Sequence[float]) -> float:
    """Where a value lies on an axis: 0 at the first tick, 1 at the last."""
    return (value - ticks[0]) / (ticks[-1] - ticks[0])


def _ticks(lowest: float, highest: float) -> list[float]:
    """About five round numbers, the first one at or below `lowest`, the last one at or above `highest`."""
    if highest <= lowest:
        lowest, highest = lowest - 0.5, lowest + 0.5
    rough = (highest - lowest) / _NUM_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
