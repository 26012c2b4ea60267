"""Pictures of positions: the sinusoids that are added to embeddings, and the angles of rotary positions."""

import math
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from transformer_cli.config import Config
from transformer_cli.extensions.lessons.drawing.theme import (
    SMALL,
    TEXT,
    TIMES,
    Theme,
    colormap,
    grid,
    new_figure,
    style,
    without_frame,
)
from transformer_cli.model.layers import SinusoidalPositions, rotate, rotation_at
from transformer_cli.process.errors import ConfigError

NUM_POSITIONS = 100
CLOCKS = (0, 10, 20, 30)
"""The positions that have a clock."""
DASHES = ("-", "--", ":")
"""Of the fast, the middle and the slow hand."""


def encodings(d_model: int, *, in_halves: bool) -> Any:
    """(T, D) float64: what the module adds to embeddings of zeros."""
    zeros = torch.zeros(1, NUM_POSITIONS, d_model, dtype=torch.float64)
    return SinusoidalPositions(in_halves=in_halves)(zeros)[0].numpy()


def draw_sinusoids(config: Config, theme: Theme) -> Figure:
    """The encodings of the first positions in both orders, three columns as curves, and the same as hands of clocks.

    Raises:
        ConfigError: the width is odd, so sines and cosines have no pairs.
    """
    d_model = config.model.d_model
    if d_model % 2:
        raise ConfigError(f"sinusoidal positions need an even d_model, not {d_model}")
    figure = new_figure(8.8, theme)
    parts: Any = figure.subfigures(3, 1, height_ratios=(1.35, 1, 0.8))
    for part in parts:
        part.set_facecolor(theme.background)
    _draw_encodings(parts[0], d_model, theme)
    _draw_columns(parts[1].subplots(), d_model, theme)
    pairs = ", ".join(f"{column}-{column + 1}" for column in columns_of_hands(d_model))
    parts[2].suptitle(
        f"columns {pairs} as hands of a clock: a hand points to (sine, cosine)",
        x=0.065,
        ha="left",
        fontsize=TEXT,
        color=theme.ink,
    )
    for axes, position in zip(parts[2].subplots(1, len(CLOCKS)), CLOCKS, strict=True):
        _draw_clock(axes, position, d_model, theme)
    return figure


def columns_of_hands(d_model: int) -> list[int]:
    """The columns of the sines of three hands, from a fast to a slow one; fewer in a narrow model."""
    eighth = d_model // 8 // 2 * 2
    return sorted({eighth, 2 * eighth, 3 * eighth})


def _draw_encodings(part: Any, d_model: int, theme: Theme) -> None:
    """Two heat maps: sines and cosines side by side, and in halves."""
    left, right = part.subplots(1, 2, sharey=True)
    colors = colormap(theme.diverging)
    for axes, name, in_halves in (
        (left, "sinusoidal", False),
        (right, "sinusoidal_halves", True),
    ):
        values = encodings(d_model, in_halves=in_halves)
        image = axes.imshow(values, cmap=colors, vmin=-1, vmax=1, aspect="auto")
        axes.set_xlabel(f"column, d_model: {d_model}")
        style(axes, theme, title=f"model.positions: {name}")
    left.set_ylabel("position")
    left.yaxis.label.set_color(theme.muted)
    left.yaxis.label.set_fontsize(SMALL)
    bar = part.colorbar(image, ax=[left, right], ticks=[-1, 0, 1], pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.muted, labelsize=SMALL, length=0)


def _draw_columns(axes: Any, d_model: int, theme: Theme) -> None:
    """The sines of the three hands over the positions."""
    values = encodings(d_model, in_halves=False)
    for column, color, dashes in zip(columns_of_hands(d_model), theme.lines, DASHES, strict=False):
        label = f"column {column}"
        axes.plot(values[:, column], color=color, linestyle=dashes, linewidth=2.0, label=label)
    axes.set_xlabel("position")
    axes.set_ylabel("value")
    axes.set_xlim(0, NUM_POSITIONS - 1)
    axes.set_ylim(-1.05, 1.05)
    style(axes, theme, title="three columns of sinusoidal: each one is a slower wave")
    grid(axes, theme)
    _legend(axes, theme, below=0.22, ncols=3)


def _draw_clock(axes: Any, position: int, d_model: int, theme: Theme) -> None:
    """Each pair of columns as a hand that ends at (sine, cosine): at position 0 it shows 12 o'clock."""
    axes.add_patch(Circle((0, 0), 1.0, fill=False, edgecolor=theme.faint, linewidth=1.2))
    values = encodings(d_model, in_halves=False)[position]
    for column, color, dashes in zip(columns_of_hands(d_model), theme.lines, DASHES, strict=False):
        sine, cosine = values[column : column + 2]
        axes.plot([0, sine], [0, cosine], color=color, linestyle=dashes, linewidth=2.4)
    axes.set_aspect("equal")
    axes.set_xlim(-1.15, 1.15)
    axes.set_ylim(-1.15, 1.15)
    axes.set_xticks([])
    axes.set_yticks([])
    style(axes, theme)
    axes.set_title(f"position {position}", fontsize=SMALL, color=theme.ink)
    without_frame(axes)


NUM_TURNED = 7
NUM_DISTANCES = 64
STARTS = (0, 10, 40)
"""Positions of the query, for the product of a query and a key."""


def draw_rotary(config: Config, theme: Theme) -> Figure:
    """Turned vectors of two pairs of columns, the angles of some pairs, and the product of query and key.

    Raises:
        ConfigError: the heads have an odd width, so their columns have no pairs.
    """
    width = config.model.head_width
    if width % 2:
        raise ConfigError(f"rotary positions need an even head width, not {width}")
    figure = new_figure(7.0, theme)
    halves: Any = figure.subfigures(2, 1, height_ratios=(1, 1.1))
    upper, lower = halves
    for part in halves:
        part.set_facecolor(theme.background)
    slow = _pairs(width)[:2][-1]
    for axes, pair in zip(upper.subplots(1, 2), (0, slow), strict=True):
        _draw_circle(axes, width, pair, theme)
    left, right = lower.subplots(1, 2)
    _draw_angles(left, width, theme)
    _draw_products(right, width, theme)
    return figure


def turned(width: int, num_positions: int, start: int = 0) -> Tensor:
    """(T, K) float64: the vector 1, 0, 1, 0, ... as `rotate` turns it at each position."""
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(width // 2)
    x = x.expand(1, 1, num_positions, width)
    return rotate(x, rotation_at(start, num_positions, width, x))[0, 0]


def _pairs(width: int) -> list[int]:
    """Numbers of a few pairs of columns, from the fastest to slower ones."""
    return sorted({0, width // 16, width // 8, width // 4} - {width // 2})


def _draw_circle(axes: Any, width: int, pair: int, theme: Theme) -> None:
    vectors = turned(width, NUM_TURNED)[:, 2 * pair : 2 * pair + 2].numpy()
    axes.add_patch(Circle((0, 0), 1.0, fill=False, edgecolor=theme.faint, linewidth=1.2))
    for position, (x, y) in enumerate(vectors):
        color = theme.lines[0] if position else theme.lines[1]
        axes.plot([0, x], [0, y], color=color, linewidth=1.8)
        axes.plot([x], [y], "o", color=color, markersize=5)
        if math.hypot(*(vectors[position] - vectors[position - 1])) > 0.09 or not position:
            axes.text(1.16 * x, 1.16 * y, str(position), ha="center", va="center", color=theme.ink)
    angle = math.atan2(vectors[1, 1], vectors[1, 0])
    title = f"columns {2 * pair} and {2 * pair + 1}: angle = {angle:.3g} {TIMES} position"
    axes.set_aspect("equal")
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    style(axes, theme, title=title)
    without_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])


def _draw_angles(axes: Any, width: int, theme: Theme) -> None:
    rotation = rotation_at(0, NUM_DISTANCES, width, torch.zeros(1, dtype=torch.float64))
    angles = np.unwrap(np.arctan2(rotation.sines.numpy(), rotation.cosines.numpy()), axis=0)
    for pair, color in zip(_pairs(width), theme.lines, strict=False):
        label = f"{2 * pair}, {2 * pair + 1}"
        axes.plot(angles[:, pair], color=color, linewidth=2.0, label=label)
    axes.set_xlim(0, NUM_DISTANCES - 1)
    axes.set_ylim(0, NUM_DISTANCES - 1)
    axes.set_xlabel("position")
    axes.set_ylabel("angle in radians")
    style(axes, theme, title="later pairs of columns turn more slowly")
    grid(axes, theme)
    _titled_legend(axes, theme, "columns")


def _draw_products(axes: Any, width: int, theme: Theme) -> None:
    """The product of the same query and key, both turned, by the distance of their positions."""
    for start, color, marker in zip(STARTS, theme.lines, ("o", "x", "+"), strict=False):
        vectors = turned(width, NUM_DISTANCES, start)
        products = (vectors @ vectors[0] / (vectors[0] @ vectors[0])).numpy()
        axes.plot(
            products,
            color=color,
            marker=marker,
            markevery=(STARTS.index(start) * 3, 9),
            markersize=6,
            linewidth=1.4,
            label=str(start),
        )
    axes.set_xlim(0, NUM_DISTANCES - 1)
    axes.set_xlabel("distance from query to key")
    axes.set_ylabel("query · key; 1 at distance 0")
    axes.text(
        0.97,
        0.95,
        "the three curves lie\non one another",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=SMALL,
        color=theme.muted,
    )
    style(axes, theme, title="only the distance counts")
    grid(axes, theme)
    _titled_legend(axes, theme, "position of the query")


def _titled_legend(axes: Any, theme: Theme, title: str) -> None:
    options = {"title": title, "title_fontsize": SMALL, "columnspacing": 1.2, "handlelength": 1.6}
    legend = _legend(axes, theme, below=0.2, ncols=4, **options)
    legend.get_title().set_color(theme.muted)


def _legend(axes: Any, theme: Theme, *, below: float, **options: Any) -> Any:
    """A legend so far below the axes, as a share of their height."""
    style = {"fontsize": SMALL, "frameon": False, "labelcolor": theme.ink}
    return axes.legend(loc="upper center", bbox_to_anchor=(0.5, -below), **style, **options)
