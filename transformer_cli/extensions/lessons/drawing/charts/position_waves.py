"""A picture of the sinusoids: the vectors that are added to embeddings, some of their columns, and these as hands of clocks."""

from typing import TYPE_CHECKING, Any

import torch

from transformer_cli.config import Config
from transformer_cli.extensions.lessons.drawing.theme import (
    SMALL,
    TEXT,
    Theme,
    colormap,
    grid,
    new_figure,
    style,
    without_frame,
)
from transformer_cli.model.positions import SinusoidalPositions
from transformer_cli.process.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_POSITIONS = 100
CLOCKS = (0, 10, 20, 30)
"""The positions that have a clock."""
DASHES = ("-", "--", ":")
"""Of the fast, the middle and the slow hand."""


def encodings(d_model: int, *, in_halves: bool) -> Any:
    """(T, D) float64: what the module adds to embeddings of zeros."""
    zeros = torch.zeros(1, NUM_POSITIONS, d_model, dtype=torch.float64)
    return SinusoidalPositions(in_halves=in_halves)(zeros)[0].numpy()


def draw_sinusoids(config: Config, theme: Theme) -> "Figure":
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
        x=0.065, ha="left", fontsize=TEXT, color=theme.ink,
    )  # fmt: skip
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
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.22),
        ncols=3,
        fontsize=SMALL,
        frameon=False,
        labelcolor=theme.ink,
    )


def _draw_clock(axes: Any, position: int, d_model: int, theme: Theme) -> None:
    """Each pair of columns as a hand that ends at (sine, cosine): at position 0 it shows 12 o'clock."""
    from matplotlib.patches import Circle

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
