"""A picture of the padding of batches: sorted by length as training reads them, and in random order."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from transformer_cli.config import Config
from transformer_cli.data.order import (
    Budget,
    EpochOrder,
    Indices,
    epoch_order,
    padding_share,
)
from transformer_cli.data.preparation import PreparedData
from transformer_cli.extensions.lessons.drawing.theme import SMALL, TEXT, Theme, new_figure
from transformer_cli.storage import temporary_folder
from transformer_cli.training.initial_weights import data_of

NUM_BATCHES = 5
NUM_ROWS = 40
"""Of a batch, at most this many pairs are drawn: its first ones."""
_IN_WORDS = ("one", "two", "three", "four", "five")
TOKEN, PADDING = 1, 0


@dataclass(frozen=True, slots=True)
class BatchesInOrder:
    """Some batches of an order, and the share of padding in all its batches."""

    title: str
    padding_share: float
    indices: list[Indices]
    """The pairs of each of these batches."""
    batches: list[NDArray[np.int8]]
    """(B, S + gap + T) each: 1 for a token, 0 for padding, -1 between source and target."""
    shares: list[float]
    """The share of padding of each of these batches."""


def draw_batches(config: Config, theme: Theme) -> Figure:
    """The first batches in both orders; the corpus is prepared in a temporary folder unless a run has it."""
    with temporary_folder("tfm-draw-") as folder:
        orders = orders_of(data_of(config, folder / "data"))
    figure = new_figure(6.2, theme)
    parts: Any = figure.subfigures(2, 1)
    longest = max(batch.shape[1] for order in orders for batch in order.batches)
    for part, order in zip(parts, orders, strict=True):
        part.set_facecolor(theme.background)
        _draw(part, order, longest, theme)
    _say_colors(figure, theme)
    return figure


def orders_of(prepared: PreparedData) -> tuple[BatchesInOrder, BatchesInOrder]:
    """The batches that training reads, and batches of the same number of sentences in random order."""
    train, config = prepared.train, prepared.config
    by_length = epoch_order(train.lengths, train.corpus_sizes, config)
    num_batches = sum(1 for _ in by_length.batches(0))
    num_sentences = math.ceil(by_length.num_pairs() / num_batches)
    # A pool is sorted by length; a pool of one batch leaves the order of the batches random.
    shuffled = replace(by_length, budget=Budget(sentences=num_sentences), pool_size=num_sentences)
    return (
        _sample(shuffled, "random order", is_sorted=False),
        _sample(by_length, f"sorted by length ({_limit(config)})"),
    )


def _limit(config: Config) -> str:
    training = config.training
    if training.batch_tokens is None:
        return f"batch_sentences: {training.batch_sentences}"
    return f"batch_tokens: {training.batch_tokens}"


def _sample(order: EpochOrder, title: str, *, is_sorted: bool = True) -> BatchesInOrder:
    chosen = list(itertools.islice(order.batches(0), NUM_BATCHES))
    if not is_sorted:
        # `batches` sorts the pairs of a batch, which changes nothing about its padding.
        chosen = [np.random.default_rng(seed).permutation(one) for seed, one in enumerate(chosen)]
    batches, shares = [], []
    for indices in chosen:
        sides = [_cells(lengths) for lengths in order.lengths_of(indices, 0)]
        cells = np.concatenate([side.ravel() for side in sides])
        shares.append(float(1.0 - cells.mean()))
        gap = np.full((len(indices), 1), -1, np.int8)
        batches.append(np.hstack([sides[0], gap, sides[1]]))
    return BatchesInOrder(title, padding_share(order), chosen, batches, shares)


def _cells(lengths: NDArray[np.int64]) -> NDArray[np.int8]:
    """(B, longest): 1 where a sentence has a token, 0 where it is padded."""
    return (np.arange(lengths.max()) < lengths[:, None]).astype(np.int8)


def _draw(part: Any, order: BatchesInOrder, longest: int, theme: Theme) -> None:
    part.suptitle(
        f"{order.title}: {order.padding_share:.1%} padding in all batches, {_IN_WORDS[len(order.batches) - 1]} of them:",
        x=0.015,
        ha="left",
        fontsize=TEXT,
        color=theme.ink,
    )
    colors = ListedColormap([theme.background, theme.lines[1], theme.lines[0]])
    for axes, batch, share in zip(
        part.subplots(1, len(order.batches), squeeze=False)[0],
        order.batches,
        order.shares,
        strict=True,
    ):
        shown = batch[:NUM_ROWS]
        axes.imshow(shown, cmap=colors, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        for edge in range(1, len(shown)):
            axes.axhline(edge - 0.5, color=theme.background, linewidth=0.5)
        axes.set_xlim(-0.5, longest - 0.5)
        axes.set_ylim(NUM_ROWS - 0.5, -0.5)
        axes.set_axis_off()
        title = f"{len(batch)} pairs: {share:.1%}"
        axes.set_title(title, fontsize=SMALL, color=theme.muted, loc="left", pad=20)
        gap = int(np.flatnonzero(batch[0] < 0)[0])
        _name_sides(axes, max(gap + 0.5, 0.36 * longest), theme)


def _name_sides(axes: Any, left: float, theme: Theme) -> None:
    """The words source and target above a batch; that of the target begins at this column."""
    for word, column in (("source", -0.5), ("target", left)):
        axes.annotate(
            word,
            (column, 1.0),
            (0, 5),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=SMALL,
            color=theme.muted,
            annotation_clip=False,
        )


def _say_colors(figure: Figure, theme: Theme) -> None:
    """A legend below the batches."""
    colors = {"token": theme.lines[0], "padding": theme.lines[1]}
    figure.legend(
        handles=[Patch(color=color, label=label) for label, color in colors.items()],
        title=f"a row is a pair; of each batch, the first {NUM_ROWS} pairs are drawn",
        title_fontsize=SMALL,
        loc="outside lower center",
        ncols=2,
        fontsize=SMALL,
        frameon=False,
        labelcolor=theme.ink,
    ).get_title().set_color(theme.muted)
