"""A picture of the masks of attention: causal, padding, and both; True means that a position may be read."""

from typing import TYPE_CHECKING

import torch

from transformer_cli.drawing.theme import SMALL, Theme, new_figure, style, without_frame
from transformer_cli.model.masks import causal_mask, padding_mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOKENS = ("[SOS]", "Dov'è", "la", "stazione", "?", "[PAD]", "[PAD]")
"""What the decoder reads of a sentence that is padded to the length of a longer one of its batch."""
NUM_REAL = 5


def draw_masks(theme: Theme) -> "Figure":
    """The causal mask, the padding mask of a sentence, and the positions that both let through."""
    num_tokens = len(TOKENS)
    causal = causal_mask(num_tokens, torch.device("cpu")).visible
    is_real = torch.arange(num_tokens)[None] < NUM_REAL
    mask = padding_mask(is_real, torch.zeros(1))
    assert mask is not None
    padding = mask.visible[0, 0].expand(num_tokens, num_tokens)
    figure = new_figure(3.55, theme)
    panels = figure.subplots(1, 3)
    for axes, (title, visible) in zip(
        panels,
        (
            ("causal_mask", causal),
            ("padding_mask", padding),
            ("both: causal & padding", causal & padding),
        ),
        strict=True,
    ):
        _draw(axes, visible, theme)
        style(axes, theme, title=title)
        without_frame(axes)
    panels[0].set_ylabel("position that reads")
    figure.supxlabel(
        "position that is read    (1 = True: may be read, 0 = False: hidden)",
        fontsize=SMALL,
        color=theme.muted,
    )
    for axes in panels[1:]:
        axes.set_yticks([])
    return figure


def _draw(axes: "Axes", visible: torch.Tensor, theme: Theme) -> None:
    from matplotlib.colors import ListedColormap

    colors = ListedColormap([theme.hidden, theme.lines[0]])
    num_tokens = len(visible)
    axes.imshow(visible.int().numpy(), cmap=colors, vmin=0, vmax=1)
    for edge in range(num_tokens + 1):
        axes.axhline(edge - 0.5, color=theme.background, linewidth=1.5)
        axes.axvline(edge - 0.5, color=theme.background, linewidth=1.5)
    for row in range(num_tokens):
        for column in range(num_tokens):
            is_visible = bool(visible[row, column])
            axes.text(
                column,
                row,
                str(int(is_visible)),
                ha="center",
                va="center",
                fontsize=SMALL,
                color=theme.background if is_visible else theme.muted,
            )
    axes.set_xticks(range(num_tokens), TOKENS, rotation=50, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(num_tokens), TOKENS)
