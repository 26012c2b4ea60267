"""A picture of label smoothing: the probability that each token gets, for both kinds of `smoothed_over`."""

from typing import Any, get_args

import torch
from matplotlib.figure import Figure

from transformer_cli.config import Config
from transformer_cli.config.schema import SmoothedOver
from transformer_cli.extensions.lessons.drawing.theme import (
    MAX_NAME,
    SMALL,
    Theme,
    new_figure,
    style,
    without_frame,
)
from transformer_cli.model.loss import SmoothedLabels
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.normalization import PAD, SPECIALS

SYMBOLS = (*SPECIALS, "la", "rosso", "rossa", "rossi", "rosse", "macchina")
TRUE_SYMBOL = "rossa"
_SENTENCES: dict[SmoothedOver, str] = {
    "vocabulary": "all tokens, the true one too",
    "others": "all but the true one and [PAD]",
}


def smoothed_probabilities(epsilon: float, smoothed_over: SmoothedOver) -> torch.Tensor:
    """(V,) float64: the label that the loss compares the prediction with."""
    labels = SmoothedLabels.of(len(SYMBOLS), SYMBOLS.index(PAD), epsilon, smoothed_over)
    probabilities = torch.full((len(SYMBOLS),), labels.symbol_weight, dtype=torch.float64)
    probabilities[SYMBOLS.index(TRUE_SYMBOL)] += labels.truth_weight
    probabilities[labels.pad_id] += labels.pad_weight
    return probabilities


def draw_label_smoothing(config: Config, theme: Theme) -> Figure:
    """The probabilities as bars, one panel for each kind; that of the config is named."""
    training = config.training
    figure = new_figure(4.0, theme)
    panels: Any = figure.subplots(1, 2, sharey=True)
    for axes, smoothed_over in zip(panels, get_args(SmoothedOver), strict=True):
        values = smoothed_probabilities(training.label_smoothing, smoothed_over)
        _draw(axes, values, theme)
        used = "   (of the config)" if smoothed_over == training.smoothed_over else ""
        style(axes, theme, title=f"smoothed_over: {smoothed_over}{used}")
        axes.set_xlabel(f"probability, spread over {_SENTENCES[smoothed_over]}")
        without_frame(axes)
    figure.suptitle(
        f"{on_one_line(config.name, MAX_NAME)}: label_smoothing {training.label_smoothing:g},"
        f" the true token is {TRUE_SYMBOL}, a vocabulary of {len(SYMBOLS)}",
        fontsize=SMALL,
        color=theme.muted,
    )
    return figure


def _draw(axes: Any, values: torch.Tensor, theme: Theme) -> None:
    colors = [theme.lines[1] if symbol == TRUE_SYMBOL else theme.lines[0] for symbol in SYMBOLS]
    axes.barh(range(len(SYMBOLS)), values.tolist(), color=colors, height=0.7)
    for row, value in enumerate(values.tolist()):
        axes.text(value + 0.015, row, f"{value:.4g}", va="center", fontsize=SMALL, color=theme.ink)
    axes.set_yticks(range(len(SYMBOLS)), SYMBOLS)
    axes.set_ylim(len(SYMBOLS) - 0.5, -0.5)
    axes.set_xlim(0, 1.16)
    axes.set_xticks([0, 0.5, 1.0], ["0", "0.5", "1"])
