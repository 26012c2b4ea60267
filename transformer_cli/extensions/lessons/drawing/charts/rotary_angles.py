"""A picture of rotary positions: two columns of a head are turned by an angle that grows with the position."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from transformer_cli.config import Config
from transformer_cli.extensions.lessons.drawing.theme import (
    SMALL,
    TIMES,
    Theme,
    grid,
    new_figure,
    style,
    without_frame,
)
from transformer_cli.model.positions import rotate, rotation_at
from transformer_cli.process.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_TURNED = 7
NUM_POSITIONS = 64
STARTS = (0, 10, 40)
"""Positions of the query, for the product of a query and a key."""


def draw_rotary(config: Config, theme: Theme) -> "Figure":
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
    from matplotlib.patches import Circle

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
    rotation = rotation_at(0, NUM_POSITIONS, width, torch.zeros(1, dtype=torch.float64))
    angles = np.unwrap(np.arctan2(rotation.sines.numpy(), rotation.cosines.numpy()), axis=0)
    for pair, color in zip(_pairs(width), theme.lines, strict=False):
        label = f"{2 * pair}, {2 * pair + 1}"
        axes.plot(angles[:, pair], color=color, linewidth=2.0, label=label)
    axes.set_xlim(0, NUM_POSITIONS - 1)
    axes.set_ylim(0, NUM_POSITIONS - 1)
    axes.set_xlabel("position")
    axes.set_ylabel("angle in radians")
    style(axes, theme, title="later pairs of columns turn more slowly")
    grid(axes, theme)
    _legend(axes, theme, "columns")


def _draw_products(axes: Any, width: int, theme: Theme) -> None:
    """The product of the same query and key, both turned, by the distance of their positions."""
    for start, color, marker in zip(STARTS, theme.lines, ("o", "x", "+"), strict=False):
        vectors = turned(width, NUM_POSITIONS, start)
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
    axes.set_xlim(0, NUM_POSITIONS - 1)
    axes.set_xlabel("distance from query to key")
    axes.set_ylabel("query · key; 1 at distance 0")
    axes.text(
        0.97, 0.95, "the three curves lie\non one another", transform=axes.transAxes,
        ha="right", va="top", fontsize=SMALL, color=theme.muted,
    )  # fmt: skip
    style(axes, theme, title="only the distance counts")
    grid(axes, theme)
    _legend(axes, theme, "position of the query")


def _legend(axes: Any, theme: Theme, title: str) -> None:
    """A legend below the axes."""
    legend = axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=4,
        columnspacing=1.2,
        handlelength=1.6,
        fontsize=SMALL,
        title=title,
        title_fontsize=SMALL,
        labelcolor=theme.ink,
        frameon=False,
    )
    legend.get_title().set_color(theme.muted)
