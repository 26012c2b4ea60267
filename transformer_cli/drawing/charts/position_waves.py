"""A picture of the sinusoids: the vectors that are added to the embeddings, and some of their columns."""

from typing import TYPE_CHECKING, Any

import torch

from transformer_cli.config import Config
from transformer_cli.drawing.theme import SMALL, Theme, colormap, grid, new_figure, style
from transformer_cli.errors import ConfigError
from transformer_cli.model.positions import SinusoidalPositions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_POSITIONS = 100


def encodings(d_model: int, *, in_halves: bool) -> Any:
    """(T, D) float64: what the module adds to embeddings of zeros."""
    zeros = torch.zeros(1, NUM_POSITIONS, d_model, dtype=torch.float64)
    return SinusoidalPositions(in_halves=in_halves)(zeros)[0].numpy()


def draw_sinusoids(config: Config, theme: Theme) -> "Figure":
    """The encodings of the first positions, interleaved and in halves, and four columns as curves.

    Raises:
        ConfigError: the width is odd, so sines and cosines have no pairs.
    """
    d_model = config.model.d_model
    if d_model % 2:
        raise ConfigError(f"sinusoidal positions need an even d_model, not {d_model}")
    figure = new_figure(6.3, theme)
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.35, 1))
    upper, lower = halves
    for part in halves:
        part.set_facecolor(theme.background)
    left, right = upper.subplots(1, 2, sharey=True)
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
    bar = figure.colorbar(image, ax=[left, right], ticks=[-1, 0, 1], pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.muted, labelsize=SMALL, length=0)
    _draw_columns(lower.subplots(), d_model, theme)
    return figure


def _draw_columns(axes: Any, d_model: int, theme: Theme) -> None:
    """A sine and its cosine, and two slower sines, of interleaved columns."""
    values = encodings(d_model, in_halves=False)
    fast = d_model // 8 // 2 * 2
    columns = [fast, fast + 1, 2 * fast, 3 * fast]
    for column, color, dashes in zip(columns, theme.lines, ("-", "--", "-.", ":"), strict=False):
        kind = "cos" if column % 2 else "sin"
        label = f"column {column}: {kind}"
        axes.plot(values[:, column], color=color, linestyle=dashes, linewidth=2.0, label=label)
    axes.set_xlabel("position")
    axes.set_ylabel("value")
    axes.set_xlim(0, NUM_POSITIONS - 1)
    axes.set_ylim(-1.05, 1.05)
    style(axes, theme, title="four columns of sinusoidal")
    grid(axes, theme)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.22),
        ncols=4,
        fontsize=SMALL,
        frameon=False,
        labelcolor=theme.ink,
    )
