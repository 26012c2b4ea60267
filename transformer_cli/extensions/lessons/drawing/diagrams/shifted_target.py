"""A picture of the shifted target: what the decoder reads, what it may look at, and what it must predict."""

from typing import TYPE_CHECKING

import numpy as np

from transformer_cli.extensions.lessons.drawing.diagrams.blocks import Diagram
from transformer_cli.extensions.lessons.drawing.theme import SMALL, WIDTH, Theme
from transformer_cli.model.attention import causal_mask
from transformer_cli.text.sequence_format import SequenceFormat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = ("Le", "macch", "ine", "ros", "se", "sono", "qui", ".", "[EOS]")
_SOS = "[SOS]"
_LEFT = 1.15
_BOX = 0.62
_HEIGHT = 0.34
_READS, _PREDICTS = 0.75, 2.15
"""How high the lower edges of both rows of boxes are, in inches."""


def shifted() -> tuple[str, ...]:
    """What the decoder reads at each place, by the function that makes the batches of a training."""
    ids = np.arange(len(TARGET))[None]
    format_of_translation = SequenceFormat()
    made = format_of_translation.decoder_inputs(
        ids, np.ones_like(ids, dtype=np.bool_), sos_id=len(TARGET), pad_id=-1
    )
    return tuple((*TARGET, _SOS)[int(one)] for one in made[0])


def draw_shifted_target(theme: Theme) -> "Figure":
    """Two rows of boxes: what is read below, what must be predicted above; arrows show what place 3 may look at."""
    diagram = Diagram(3.2, theme)
    width = (WIDTH - _LEFT - 0.1) / len(TARGET)
    middles = [_LEFT + width * (place + 0.5) for place in range(len(TARGET))]
    for bottom, name, tokens in (
        (_READS, "reads", shifted()),
        (_PREDICTS, "must predict", TARGET),
    ):
        diagram.text((_LEFT - 0.1, bottom + _HEIGHT / 2), name, size=SMALL, ha="right")
        for x, token in zip(middles, tokens, strict=True):
            kind = "embedding" if bottom == _READS else "output"
            diagram.box((x - _BOX / 2, bottom), (_BOX, _HEIGHT), (token,), kind)
    diagram.text((_LEFT - 0.1, _READS - 0.25), "place", size=SMALL, ha="right", color=theme.muted)
    for place, x in enumerate(middles, start=1):
        diagram.text((x, _READS - 0.25), str(place), size=SMALL, color=theme.muted)
    shown = 2  # place 3
    visible = causal_mask(len(TARGET))[shown]
    end = (middles[shown], _PREDICTS - 0.04)
    for place in visible.nonzero().flatten().tolist():
        start = (middles[place], _READS + _HEIGHT)
        diagram.arrow(start, end, color=theme.lines[0])
    hidden = (middles[shown + 1] + middles[-1]) / 2
    diagram.text(
        (hidden, (_READS + _HEIGHT + _PREDICTS) / 2),
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
    diagram.text((0.1, 0.15), "[SOS] stands where no token has been written yet", ha="left", size=SMALL, color=theme.muted)  # fmt: skip
    return diagram.figure
