"""Pictures of cross-attention: a slide of one sentence, and a film strip of how a run has learned."""

import io
import math
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import load_stored_config
from transformer_cli.evaluation.picture_fonts import readable_labels
from transformer_cli.extensions.lessons.explaining.explanation import (
    ExplainedSentence,
    LineExplanation,
)
from transformer_cli.extensions.lessons.explaining.learning import Moment, WatchedSentence, films
from transformer_cli.process.messages import on_one_line

_SIZE = 12.8, 7.2  # inches: 16 to 9
_MAX_SLIDE_LABEL = 18
_MAX_TITLE = 90


def png_of(figure: Figure) -> bytes:
    """The picture as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def draw_slide(explanation: LineExplanation) -> Figure:
    """The first sentence of a line: attention of the layer that aligns words, beside all layers and heads."""
    sentence = explanation.sentences[0]
    hypothesis = sentence.hypotheses[0]
    pieces = [token.piece for token in sentence.source.tokens]
    written = [token.piece for token in hypothesis.tokens]
    titles = [_label(text, _MAX_TITLE) for text in (sentence.source.text, hypothesis.text)]
    texts = [*(_label(piece, _MAX_SLIDE_LABEL) for piece in (*pieces, *written)), *titles]
    labels, families = readable_labels(texts)
    source_labels, target_labels = labels[: len(pieces)], labels[len(pieces) : -2]
    figure = Figure(figsize=_SIZE, dpi=150, layout="constrained")
    figure.suptitle(f"{labels[-2]}\n{labels[-1]}", fontfamily=families)
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.25, 1))
    left, right = halves
    _draw_mean(left, sentence, source_labels, target_labels, families)
    upper, lower = right.subfigures(2, 1, height_ratios=(1.5, 1))
    _draw_heads(upper, sentence)
    _draw_probabilities(lower, sentence, target_labels, families)
    return figure


def _draw_mean(
    figure: Any,
    sentence: ExplainedSentence,
    source_labels: Sequence[str],
    target_labels: Sequence[str],
    families: Sequence[str],
) -> None:
    layer = sentence.attention.aligning_layer
    weights = sentence.attention.cross.values[layer].mean(0)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_title(f"cross-attention of layer {layer}, mean over heads", fontsize=10)
    axes.set_xticks(range(len(source_labels)), source_labels, rotation=60, ha="right")
    axes.set_yticks(range(len(target_labels)), target_labels)
    _use_fonts(axes, families)
    if weights.size <= 200:
        for row, column in zip(*weights.nonzero(), strict=True):
            value = float(weights[row, column])
            if value >= 0.05:
                color = "white" if value > 0.6 else "black"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=color, fontsize=7)


def _draw_heads(figure: Any, sentence: ExplainedSentence) -> None:
    weights = sentence.attention.cross.values
    num_layers, num_heads = weights.shape[:2]
    figure.suptitle("cross-attention: layers from top to bottom, heads from left to right", fontsize=10)
    pictures = figure.subplots(num_layers, num_heads, squeeze=False)
    for layer, layer_axes in enumerate(pictures):
        for head, axes in enumerate(layer_axes):
            axes.imshow(weights[layer, head], cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            if head == 0:
                axes.set_ylabel(f"{layer}", rotation=0, va="center", labelpad=10)
            if layer == 0:
                axes.set_title(f"{head}", fontsize=9)


def _draw_probabilities(
    figure: Any, sentence: ExplainedSentence, target_labels: Sequence[str], families: Sequence[str]
) -> None:
    axes = figure.add_subplot()
    values = [token.probability for token in sentence.hypotheses[0].tokens]
    axes.bar(range(len(values)), values, color="tab:blue")
    axes.set_ylim(0.0, 1.0)
    axes.set_title("probability of each token", fontsize=10)
    axes.set_xticks(range(len(values)), target_labels, rotation=60, ha="right", fontsize=8)
    _use_fonts(axes, families)


def _use_fonts(axes: Any, families: Sequence[str]) -> None:
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(families)


def _label(text: str, length: int) -> str:
    """A text for matplotlib, where a dollar sign without a backslash would begin a formula."""
    return on_one_line(text.strip(), length).replace("$", r"\$") or "␣"


MAX_FRAMES = 8
_FRAME_WIDTH, _FRAME_HEIGHT = 2.5, 3.6  # inches, with the labels and the translation
_MAX_LABEL = 14
_MAX_TOKENS = 26  # with more, labels could not be read
_TITLE_OF_A_FRAME = 26  # characters of a title for each frame below it
_NARROW, _LINES = 26, 4  # of a translation: characters of a line, and lines


def chosen_moments(moments: Sequence[Moment]) -> list[Moment]:
    """The first and the last validation, and others that are evenly spread between them: at most eight."""
    last = len(moments) - 1
    if last < MAX_FRAMES:
        return list(moments)
    return [moments[round(place * last / (MAX_FRAMES - 1))] for place in range(MAX_FRAMES)]


def draw_film(run: str, moments: Sequence[Moment], attention: str) -> Figure:
    """A row of heat maps for each sentence: rows are tokens of the translation, columns those of the source.

    Args:
        moments: those that are shown.
        attention: which attention the heat maps hold, in words.
    """
    strips = films(moments)
    size = max(3.0, _FRAME_WIDTH * len(moments) + 0.4), _FRAME_HEIGHT * len(strips) + 0.7
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    steps = ", ".join(f"{moment.step:,}" for moment in moments)
    title = f"How {run} learned: {attention}, at steps {steps}"
    figure.suptitle(_label(title, 200), x=0.008, ha="left", fontsize=11, wrap=True)
    rows: Any = figure.subfigures(len(strips), 1, squeeze=False)
    for [row], strip in zip(rows, strips, strict=True):
        _draw_strip(row, strip, [moment.step for moment in moments])
    return figure


def _draw_strip(figure: Any, strip: Sequence[tuple[int, WatchedSentence]], steps: Sequence[int]) -> None:
    by_step = dict(strip)
    newest = strip[-1][1]
    length = max(40, _TITLE_OF_A_FRAME * len(steps))
    [title], families = readable_labels([_label(f"{newest.source}   (reference: {newest.target})", length)])
    figure.suptitle(title, x=0.008, ha="left", fontsize=10, fontweight="bold", fontfamily=families)
    frames = figure.subplots(1, len(steps), squeeze=False)[0]
    for axes, step in zip(frames, steps, strict=True):
        if step in by_step:
            _draw_frame(axes, step, by_step[step])
        else:
            axes.set_axis_off()


def _draw_frame(axes: Any, step: int, sentence: WatchedSentence) -> None:
    axes.set_title(f"step {step:,}\nconfidence {sentence.confidence:.0%}", fontsize=9)
    translation = _label(sentence.translation, 400) if sentence.translation.strip() else "(nothing)"
    said = textwrap.wrap(translation, _NARROW, max_lines=_LINES, placeholder=" …")
    written = [token.piece for token in sentence.tokens]
    pieces = [_label(piece, _MAX_LABEL) for piece in (*written, *sentence.source_pieces)]
    labels, families = readable_labels([*pieces, *said])
    target_labels, source_labels = labels[: len(written)], labels[len(written) : len(pieces)]
    axes.set_xlabel("\n".join(labels[len(pieces) :]), fontsize=8, fontfamily=families)
    if sentence.attention is None:
        axes.text(0.5, 0.5, "too long to keep\nthe attention", ha="center", va="center", fontsize=8)
        axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
        return
    axes.imshow(sentence.attention, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    _name(axes.set_xticks, source_labels, families, rotation=60, ha="right", rotation_mode="anchor")
    _name(axes.set_yticks, target_labels, families)


def _name(set_ticks: Any, labels: Sequence[str], families: Sequence[str], **options: Any) -> None:
    """Write the tokens at the marks of an axis, as large as they fit; none if they are too many."""
    if len(labels) > _MAX_TOKENS:
        set_ticks([])
        return
    size = min(8.0, math.floor(130 / max(1, len(labels))))
    set_ticks(range(len(labels)), labels, fontsize=size, fontfamily=families, **options)


def film_of_run(folder: RunFolder, moments: Sequence[Moment]) -> tuple[Figure, list[int]]:
    """The film of a run, and the steps that it shows."""
    chosen = chosen_moments(moments)
    figure = draw_film(folder.path.resolve().name, chosen, _kept_attention(folder))
    return figure, [moment.step for moment in chosen]


def _kept_attention(folder: RunFolder) -> str:
    """Which attention learning.jsonl holds, in words."""
    model = load_stored_config(folder.config_file).model
    last, head = model.decoder_layers - 1, model.alignment_head
    which = f"its head {head}" if isinstance(head, int) else "mean over its heads"
    return f"cross-attention of decoder layer {model.aligning_layer} (the layers are 0 to {last}), {which}"
