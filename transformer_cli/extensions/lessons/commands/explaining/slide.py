"""A picture for slides: the cross-attention of a sentence, all its layers and heads, and the search in numbers."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformer_cli.evaluation.picture_fonts import readable_labels
from transformer_cli.extensions.lessons.explaining.explanation import (
    ExplainedSentence,
    LineExplanation,
)
from transformer_cli.process.escaping import on_one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = 12.8, 7.2  # inches: 16 to 9
_MAX_LABEL = 18
_MAX_TITLE = 90


def png_of(figure: "Figure") -> bytes:
    """The picture as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def draw_slide(explanation: LineExplanation) -> "Figure":
    """The first sentence of a line: attention of the layer that aligns words, beside all layers and heads."""
    from matplotlib.figure import Figure

    sentence = explanation.sentences[0]
    hypothesis = sentence.hypotheses[0]
    pieces = [token.piece for token in sentence.source.tokens]
    written = [token.piece for token in hypothesis.tokens]
    titles = [_label(text, _MAX_TITLE) for text in (sentence.source.text, hypothesis.text)]
    texts = [*(_label(piece, _MAX_LABEL) for piece in (*pieces, *written)), *titles]
    labels, families = readable_labels(texts)
    of_source, of_target = labels[: len(pieces)], labels[len(pieces) : -2]
    figure = Figure(figsize=_SIZE, dpi=150, layout="constrained")
    figure.suptitle(f"{labels[-2]}\n{labels[-1]}", fontfamily=families)
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.25, 1))
    left, right = halves
    _draw_mean(left, sentence, of_source, of_target, families)
    upper, lower = right.subfigures(2, 1, height_ratios=(1.5, 1))
    _draw_heads(upper, sentence)
    _draw_probabilities(lower, sentence, of_target, families)
    return figure


def _draw_mean(
    figure: Any,
    sentence: ExplainedSentence,
    of_source: Sequence[str],
    of_target: Sequence[str],
    families: Sequence[str],
) -> None:
    layer = sentence.attention.aligning_layer
    weights = sentence.attention.cross.values[layer].mean(0)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_title(f"cross-attention of layer {layer}, mean over heads", fontsize=10)
    axes.set_xticks(range(len(of_source)), of_source, rotation=60, ha="right")
    axes.set_yticks(range(len(of_target)), of_target)
    _use_fonts(axes, families)
    if weights.size <= 200:
        for row, column in zip(*weights.nonzero(), strict=True):
            value = float(weights[row, column])
            if value >= 0.05:
                color = "white" if value > 0.6 else "black"
                axes.text(
                    column, row, f"{value:.2f}", ha="center", va="center", color=color, fontsize=7
                )


def _draw_heads(figure: Any, sentence: ExplainedSentence) -> None:
    weights = sentence.attention.cross.values
    num_layers, num_heads = weights.shape[:2]
    figure.suptitle(
        "cross-attention: layers from top to bottom, heads from left to right", fontsize=10
    )
    pictures = figure.subplots(num_layers, num_heads, squeeze=False)
    for layer, of_layer in enumerate(pictures):
        for head, axes in enumerate(of_layer):
            axes.imshow(weights[layer, head], cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            if head == 0:
                axes.set_ylabel(f"{layer}", rotation=0, va="center", labelpad=10)
            if layer == 0:
                axes.set_title(f"{head}", fontsize=9)


def _draw_probabilities(
    figure: Any, sentence: ExplainedSentence, of_target: Sequence[str], families: Sequence[str]
) -> None:
    axes = figure.add_subplot()
    values = [token.probability for token in sentence.hypotheses[0].tokens]
    axes.bar(range(len(values)), values, color="tab:blue")
    axes.set_ylim(0.0, 1.0)
    axes.set_title("probability of each token", fontsize=10)
    axes.set_xticks(range(len(values)), of_target, rotation=60, ha="right", fontsize=8)
    _use_fonts(axes, families)


def _use_fonts(axes: Any, families: Sequence[str]) -> None:
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(families)


def _label(text: str, length: int) -> str:
    """A text for matplotlib, where a dollar sign without a backslash would begin a formula."""
    return on_one_line(text.strip(), length).replace("$", r"\$") or "␣"
