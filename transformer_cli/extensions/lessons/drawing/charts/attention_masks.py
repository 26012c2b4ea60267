"""A picture of the masks of the three kinds of attention; True means that a position may be read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.extensions.lessons.drawing.theme import (
    SMALL,
    Theme,
    new_figure,
    style,
    without_frame,
)
from transformer_cli.model.attention import causal_mask, padding_mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCES = (
    ("Where", "is", "the", "station", "?", "[EOS]"),
    ("Thank", "you", ".", "[EOS]", "[PAD]", "[PAD]"),
)
"""A batch of two source sentences; the second one is padded to the length of the first."""
DECODER_INPUTS = (
    ("[SOS]", "Dov'è", "la", "stazione", "?"),
    ("[SOS]", "Grazie", ".", "[PAD]", "[PAD]"),
)
"""What the decoder reads of their translations, padded too."""


class Grid(NamedTuple):
    """One panel."""

    title: str
    visible: Tensor
    """Bool, (positions that read, positions that are read)."""
    rows: Sequence[str]
    columns: Sequence[str]


def draw_masks(theme: Theme) -> "Figure":
    """The causal mask of a target sentence, and the padding mask of two source sentences in both of its places."""
    grids = grids_of_masks()
    figure = new_figure(6.6, theme)
    panels: Any = figure.subplots(2, 3)
    _say_how_to_read(panels[1, 0], theme)
    for axes, grid in zip(
        (panels[0, 0], panels[0, 1], panels[1, 1], panels[0, 2], panels[1, 2]), grids, strict=True
    ):
        _draw(axes, grid, theme)
        style(axes, theme)
        axes.set_title(grid.title, fontsize=SMALL, color=theme.ink, loc="left")
        without_frame(axes)
    return figure


def grids_of_masks() -> list[Grid]:
    """The causal mask, then for self-attention of the encoder and for cross-attention the mask of each sentence."""
    first = DECODER_INPUTS[0]
    causal = causal_mask(len(first))
    source_mask = torch.tensor([[piece != "[PAD]" for piece in source] for source in SOURCES])
    mask = padding_mask(source_mask)
    assert mask is not None
    grids = [Grid("causal_mask\nself-attention of the decoder", causal, first, first)]
    for title, readers in (
        ("self-attention of the encoder", SOURCES),
        ("cross-attention", DECODER_INPUTS),
    ):
        for number, (rows, columns) in enumerate(zip(readers, SOURCES, strict=True)):
            visible = mask[number, 0].expand(len(rows), len(columns))
            name = f"padding_mask, sentence {number + 1}\n{title}"
            grids.append(Grid(name, visible, rows, columns))
    return grids


def _say_how_to_read(axes: "Axes", theme: Theme) -> None:
    lines = (
        "A row reads,",
        "a column is read.",
        "",
        "1 = True: may be read",
        "0 = False: hidden",
        "",
        "Sentences 1 and 2 are one",
        "batch. Sentence 2 is the",
        "shorter one, so it is padded.",
        "",
        "What the rows of [PAD]",
        "compute is not used.",
    )
    axes.set_axis_off()
    axes.text(
        0.0, 0.95, "\n".join(lines), transform=axes.transAxes, va="top", linespacing=1.5,
        fontsize=SMALL, color=theme.ink,
    )  # fmt: skip


def _draw(axes: "Axes", grid: Grid, theme: Theme) -> None:
    from matplotlib.colors import ListedColormap

    colors = ListedColormap([theme.hidden, theme.lines[0]])
    axes.imshow(grid.visible.int().numpy(), cmap=colors, vmin=0, vmax=1)
    for edge in range(len(grid.rows) + 1):
        axes.axhline(edge - 0.5, color=theme.background, linewidth=1.5)
    for edge in range(len(grid.columns) + 1):
        axes.axvline(edge - 0.5, color=theme.background, linewidth=1.5)
    for row, column in torch.cartesian_prod(*map(torch.arange, grid.visible.shape)).tolist():
        is_visible = bool(grid.visible[row, column])
        axes.text(
            column,
            row,
            str(int(is_visible)),
            ha="center",
            va="center",
            fontsize=SMALL,
            color=theme.background if is_visible else theme.muted,
        )
    axes.set_xticks(
        range(len(grid.columns)), grid.columns, rotation=50, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(grid.rows)), grid.rows)
