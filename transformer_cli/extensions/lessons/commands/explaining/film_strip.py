"""A picture of how a run has learned: cross-attention, translation and confidence from validation to validation."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformer_cli.evaluation.picture_fonts import readable_labels
from transformer_cli.extensions.lessons.explaining.learning import Moment, WatchedSentence, films
from transformer_cli.process.escaping import on_one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def draw_film(run: str, moments: Sequence[Moment], attention: str) -> "Figure":
    """A row of heat maps for each sentence: rows are tokens of the translation, columns those of the source.

    Args:
        moments: those that are shown.
        attention: which attention the heat maps hold, in words.
    """
    from matplotlib.figure import Figure

    strips = films(moments)
    size = max(3.0, _FRAME_WIDTH * len(moments) + 0.4), _FRAME_HEIGHT * len(strips) + 0.7
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    steps = ", ".join(f"{moment.step:,}" for moment in moments)
    title = f"How {run} learned: {attention}, at steps {steps}"
    figure.suptitle(_plain(title, 200), x=0.008, ha="left", fontsize=11, wrap=True)
    rows: Any = figure.subfigures(len(strips), 1, squeeze=False)
    for [row], strip in zip(rows, strips, strict=True):
        _draw_strip(row, strip, [moment.step for moment in moments])
    return figure


def _draw_strip(
    figure: Any, strip: Sequence[tuple[int, WatchedSentence]], steps: Sequence[int]
) -> None:
    by_step = dict(strip)
    newest = strip[-1][1]
    length = max(40, _TITLE_OF_A_FRAME * len(steps))
    [title], families = readable_labels(
        [_plain(f"{newest.source}   (reference: {newest.target})", length)]
    )
    figure.suptitle(title, x=0.008, ha="left", fontsize=10, fontweight="bold", fontfamily=families)
    frames = figure.subplots(1, len(steps), squeeze=False)[0]
    for axes, step in zip(frames, steps, strict=True):
        if step in by_step:
            _draw_frame(axes, step, by_step[step])
        else:
            axes.set_axis_off()


def _draw_frame(axes: Any, step: int, sentence: WatchedSentence) -> None:
    axes.set_title(f"step {step:,}\nconfidence {sentence.confidence:.0%}", fontsize=9)
    translation = _plain(sentence.translation, 400) if sentence.translation.strip() else "(nothing)"
    said = textwrap.wrap(translation, _NARROW, max_lines=_LINES, placeholder=" …")
    written = [token.piece for token in sentence.tokens]
    pieces = [_plain(piece, _MAX_LABEL) for piece in (*written, *sentence.source_pieces)]
    labels, families = readable_labels([*pieces, *said])
    of_target, of_source = labels[: len(written)], labels[len(written) : len(pieces)]
    axes.set_xlabel("\n".join(labels[len(pieces) :]), fontsize=8, fontfamily=families)
    if sentence.attention is None:
        axes.text(0.5, 0.5, "too long to keep\nthe attention", ha="center", va="center", fontsize=8)
        axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
        return
    axes.imshow(sentence.attention, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    _name(axes.set_xticks, of_source, families, rotation=60, ha="right", rotation_mode="anchor")
    _name(axes.set_yticks, of_target, families)


def _name(set_ticks: Any, labels: Sequence[str], families: Sequence[str], **options: Any) -> None:
    """Write the tokens at the marks of an axis, as large as they fit; none if they are too many."""
    if len(labels) > _MAX_TOKENS:
        set_ticks([])
        return
    size = min(8.0, math.floor(130 / max(1, len(labels))))
    set_ticks(range(len(labels)), labels, fontsize=size, fontfamily=families, **options)


def _plain(text: str, length: int) -> str:
    """A text for matplotlib, where a dollar sign without a backslash would begin a formula."""
    return on_one_line(text.strip(), length).replace("$", r"\$") or "␣"
