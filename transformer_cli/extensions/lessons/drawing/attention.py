"""Pictures of attention: the shifted target, the masks, and the steps of one query with their numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from transformer_cli.config import load_config
from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.lessons.drawing.diagrams import Diagram
from transformer_cli.extensions.lessons.drawing.theme import (
    SMALL,
    TEXT,
    TIMES,
    WIDTH,
    Theme,
    colormap,
    new_figure,
    style,
    without_frame,
)
from transformer_cli.extensions.lessons.explaining.explainer import Explainer
from transformer_cli.model import Transformer
from transformer_cli.model.layers import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    padding_mask,
)
from transformer_cli.text.languages import plain_code
from transformer_cli.text.tokenizer import SequenceFormat

TARGET = ("Le", "macch", "ine", "ros", "se", "sono", "qui", ".", "[EOS]")
_SOS = "[SOS]"
_BOXES_LEFT = 1.15
_BOX_WIDTH = 0.62
_BOX_HEIGHT = 0.34
_READS, _PREDICTS = 0.75, 2.15
"""How high the lower edges of both rows of boxes are, in inches."""


def shifted() -> tuple[str, ...]:
    """What the decoder reads at each place, by the function that makes the batches of a training."""
    ids = np.arange(len(TARGET))[None]
    format_of_translation = SequenceFormat()
    made = format_of_translation.decoder_inputs(ids, np.ones_like(ids, dtype=np.bool_), sos_id=len(TARGET), pad_id=-1)
    return tuple((*TARGET, _SOS)[int(one)] for one in made[0])


def draw_shifted_target(theme: Theme) -> Figure:
    """Two rows of boxes: what is read below, what must be predicted above; arrows show what place 3 may look at."""
    diagram = Diagram(3.2, theme)
    width = (WIDTH - _BOXES_LEFT - 0.1) / len(TARGET)
    middles = [_BOXES_LEFT + width * (place + 0.5) for place in range(len(TARGET))]
    for bottom, name, tokens in (
        (_READS, "reads", shifted()),
        (_PREDICTS, "must predict", TARGET),
    ):
        diagram.text((_BOXES_LEFT - 0.1, bottom + _BOX_HEIGHT / 2), name, size=SMALL, ha="right")
        for x, token in zip(middles, tokens, strict=True):
            kind = "embedding" if bottom == _READS else "output"
            diagram.box((x - _BOX_WIDTH / 2, bottom), (_BOX_WIDTH, _BOX_HEIGHT), (token,), kind)
    diagram.text((_BOXES_LEFT - 0.1, _READS - 0.25), "place", size=SMALL, ha="right", color=theme.muted)
    for place, x in enumerate(middles, start=1):
        diagram.text((x, _READS - 0.25), str(place), size=SMALL, color=theme.muted)
    shown = 2  # place 3
    visible = causal_mask(len(TARGET))[shown]
    end = (middles[shown], _PREDICTS - 0.04)
    for place in visible.nonzero().flatten().tolist():
        start = (middles[place], _READS + _BOX_HEIGHT)
        diagram.arrow(start, end, color=theme.lines[0])
    hidden = (middles[shown + 1] + middles[-1]) / 2
    diagram.text(
        (hidden, (_READS + _BOX_HEIGHT + _PREDICTS) / 2),
        "place 3 may look at the places 1 to 3;\nthe causal mask hides all others",
        size=SMALL,
        color=theme.muted,
    )
    diagram.text(
        (0.1, 2.9),
        "The target, shifted by one place: each place reads the token before the one that it must predict",
        ha="left",
        size=SMALL + 0.5,
    )
    diagram.text(
        (0.1, 0.15), "[SOS] stands where no token has been written yet", ha="left", size=SMALL, color=theme.muted
    )
    return diagram.figure


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


def draw_masks(theme: Theme) -> Figure:
    """The causal mask of a target sentence, and the padding mask of two source sentences in both of its places."""
    grids = grids_of_masks()
    figure = new_figure(6.6, theme)
    panels: Any = figure.subplots(2, 3)
    _say_how_to_read(panels[1, 0], theme)
    for axes, grid in zip((panels[0, 0], panels[0, 1], panels[1, 1], panels[0, 2], panels[1, 2]), grids, strict=True):
        _draw_mask(axes, grid, theme)
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


def _say_how_to_read(axes: Axes, theme: Theme) -> None:
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
        0.0,
        0.95,
        "\n".join(lines),
        transform=axes.transAxes,
        va="top",
        linespacing=1.5,
        fontsize=SMALL,
        color=theme.ink,
    )


def _draw_mask(axes: Axes, grid: Grid, theme: Theme) -> None:
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
    axes.set_xticks(range(len(grid.columns)), grid.columns, rotation=50, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(grid.rows)), grid.rows)


SENTENCE = "The red cars are here."
_MACHINE = "runtime.device=cpu", "runtime.precision=float32"
"""A run may have been trained on another one."""
MAX_SHOWN = 16
"""How many numbers of a vector are shown."""
WANTED = 0.6
"""Of all heads and positions that one is shown whose largest weight is nearest to this: neither one source alone nor all."""
_SEED = 3
_NAMES = 3.3  # the width of the column of names, in cells
_NUMBERS = 2.6  # and of a column of numbers


@dataclass(frozen=True, slots=True, eq=False)
class OneQuery:
    """What one head of cross-attention computes at one position."""

    title: str
    pieces: tuple[str, ...]
    """That are read."""
    asks: str
    """The token that this position predicts."""
    query: Tensor
    """(K,)"""
    keys: Tensor
    """(C, K)"""
    values: Tensor
    """(C, K)"""
    scores: Tensor
    """(C,): query times key, divided by the square root of K."""
    weights: Tensor
    """(C,): their softmax."""
    result: Tensor
    """(K,): the sum of the values times their weights."""


def draw_attention_steps(run: Path | None, theme: Theme) -> Figure:
    """The steps of attention for one query: of a run, or of a small untrained model without one."""
    one = _query_of_untrained() if run is None else query_of_run(run)
    num_shown = min(MAX_SHOWN, len(one.query))
    num_rows = len(one.pieces)
    figure = new_figure((num_rows + 8.5) * 0.25, theme, layout=None)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    width = _NAMES + 2 * num_shown + 2 * _NUMBERS + 2
    axes.set_xlim(0.0, width)
    axes.set_ylim(num_rows + 4.9, -3.6)
    axes.axis("off")
    axes.text(0.0, -3.1, one.title, fontsize=TEXT, color=theme.ink, va="center")
    _draw_steps(axes, one, num_shown, theme)
    return figure


def query_of_run(run: Path) -> OneQuery:
    """Cross-attention of the layer from which words are aligned, in a run that translates `SENTENCE`."""
    translator = load_run(str(run), _MACHINE, command="explain").translator
    if translator.pipeline.direction is None:
        directions = translator.pipeline.data.directions
        number = next((number for number, one in enumerate(directions) if plain_code(one.source) == "en"), 0)
        translator = translator.in_direction(number)
    explained = Explainer.of(translator).explain(SENTENCE, num_best=1)
    sentence = explained.sentences[0]
    engine: Any = translator.engine
    ids = torch.tensor([[token.id for token in sentence.source.tokens]])
    read = torch.tensor([[token.id for token in sentence.decoder_input]])
    pieces = tuple(token.piece.strip() for token in sentence.source.tokens)
    predicted = tuple(token.piece.strip() for token in sentence.hypotheses[0].tokens)
    layer = sentence.attention.aligning_layer
    return _chosen(engine.model, layer, (ids, read), (pieces, predicted))


def _query_of_untrained() -> OneQuery:
    config = load_config("copy.yaml", ["model.d_model=32", "model.num_heads=2"]).model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        model = Transformer(config, 20, 20).eval()
    pieces = ("The", "red", "cars", "are", "here", ".", "[EOS]")
    ids = torch.arange(4, 4 + len(pieces))[None]
    predicted = tuple(f"token {place}" for place in range(1, 5))
    return _chosen(model, 0, (ids, ids[:, : len(predicted)]), (pieces, predicted), "untrained, ")


def _chosen(
    model: Transformer,
    layer: int,
    ids: tuple[Tensor, Tensor],
    names: tuple[tuple[str, ...], tuple[str, ...]],
    note: str = "",
) -> OneQuery:
    """The head and the position whose largest weight is nearest to `WANTED`."""
    attention = model.decoder.layers[layer].cross_attention
    assert isinstance(attention, MultiHeadAttention)
    x, context = _inputs_of(model, attention, ids)
    with torch.inference_mode():
        queries, keys, values = heads_of(attention, x, context)  # (H, T, K), (H, C, K) twice
        weights = attention_weights(queries[None], keys[None], None)[0]  # (H, T, C)
        far = (weights.amax(-1) - WANTED).abs()
        head, place = divmod(int(far.flatten().argmin()), far.size(1))
        query, head_values = queries[head, place], values[head]
        scores = keys[head] @ query / math.sqrt(len(query))
        result = weights[head, place] @ head_values
    pieces, predicted = names
    title = f"Attention of one query: cross-attention, {note}layer {layer}, head {head}"
    return OneQuery(
        title, pieces, predicted[place], query, keys[head], head_values, scores, weights[head, place], result
    )


def heads_of(attention: MultiHeadAttention, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The queries (H, T, K), keys and values (both H, C, K) of cross-attention for one sentence."""
    queries = attention.query(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
    keys, values = attention.keys_and_values(context)
    group = attention.num_heads // attention.num_kv_heads
    repeated = (one[0].repeat_interleave(group, dim=0).float() for one in (keys, values))
    return (attention.query_norm(queries)[0].float(), *repeated)


def _inputs_of(model: Transformer, attention: MultiHeadAttention, ids: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """What this module gets in a forward pass of the model: (1, T, D) and (1, C, D)."""
    seen: list[Any] = []
    hook = attention.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[:2]))
    try:
        with torch.inference_mode():
            model(ids[0], None, ids[1])
    finally:
        hook.remove()
    [(x, context)] = seen
    return x, context


def _draw_steps(axes: Axes, one: OneQuery, num_shown: int, theme: Theme) -> None:
    num_rows = len(one.pieces)
    keys_at = _NAMES
    scores_at = keys_at + num_shown
    weights_at = scores_at + _NUMBERS
    values_at = weights_at + _NUMBERS + 1.0
    strip = _Strips(axes, theme, num_shown)
    axes.text(keys_at - 0.3, -1.9, "query", ha="right", va="center", fontsize=SMALL, color=theme.ink)
    strip.draw(keys_at, -2.3, one.query, one.query)
    axes.text(
        scores_at + 0.5,
        -1.9,
        f'asks at the place that predicts "{one.asks}"',
        va="center",
        fontsize=SMALL,
        color=theme.ink,
    )
    headings = (
        (keys_at, "left", "keys"),
        (scores_at + _NUMBERS - 0.4, "right", "score"),
        (weights_at + _NUMBERS - 0.1, "right", "weight"),
        (values_at, "left", "values"),
    )
    for x, side, name in headings:
        axes.text(x, -0.55, name, ha=side, va="center", fontsize=SMALL, color=theme.muted)
    for row, piece in enumerate(one.pieces):
        _row(axes, row, (piece, float(one.scores[row]), float(one.weights[row])), theme)
        strip.draw(keys_at, row + 0.1, one.keys[row], one.keys)
        strip.draw(values_at, row + 0.1, one.values[row], one.values)
        right = values_at - 0.35
        axes.plot(
            [right, right],
            [row + 0.85, row + 0.85 - 0.7 * float(one.weights[row])],
            color=theme.lines[1],
            linewidth=4,
            solid_capstyle="butt",
        )
    axes.text(
        values_at - 0.3,
        num_rows + 0.9,
        f"sum of weight {TIMES} value",
        ha="right",
        va="center",
        fontsize=SMALL,
        color=theme.ink,
    )
    strip.draw(values_at, num_rows + 0.5, one.result, one.values)
    shown = "" if num_shown == len(one.query) else f", the first {num_shown} of {len(one.query)}"
    lines = (
        f"score = query {TIMES} key / sqrt({len(one.query)});  weight = softmax of the scores: together they are 1",
        f"a cell is a number of a vector{shown}: blue above 0, orange below 0, pale near 0",
    )
    for number, line in enumerate(lines):
        axes.text(0.0, num_rows + 2.6 + number, line, va="center", fontsize=SMALL, color=theme.muted)


def _row(axes: Axes, row: int, shown: tuple[str, float, float], theme: Theme) -> None:
    piece, score, weight = shown
    right = axes.get_xlim()[1]
    scores_at = _NAMES + (right - _NAMES - 2 * _NUMBERS - 2) / 2
    for x, text in (
        (_NAMES - 0.3, piece[:9]),
        (scores_at + _NUMBERS - 0.4, f"{score:.2f}"),
        (scores_at + 2 * _NUMBERS - 0.1, f"{weight:.2f}"),
    ):
        axes.text(x, row + 0.5, text, ha="right", va="center", fontsize=SMALL, color=theme.ink)


@dataclass(frozen=True, slots=True)
class _Strips:
    """Draws vectors as rows of cells."""

    axes: Axes
    theme: Theme
    num_shown: int

    def draw(self, left: float, top: float, vector: Tensor, alike: Tensor) -> None:
        """The first numbers of a vector, from `left` to the right and 0.8 high; `alike` has the same scale of colours."""
        shown = vector[: self.num_shown].numpy()
        largest = float(alike.abs().max()) or 1.0
        self.axes.imshow(
            shown[None],
            extent=(left, left + self.num_shown, top + 0.8, top),
            cmap=colormap(self.theme.diverging),
            vmin=-largest,
            vmax=largest,
            aspect="auto",
            interpolation="nearest",
        )
