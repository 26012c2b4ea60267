"""A picture of the three residual wirings: pre-norm, post-norm, and the residual of the normed output."""

from typing import TYPE_CHECKING

from transformer_cli.config import Config
from transformer_cli.config.model import NormPlacement
from transformer_cli.extensions.lessons.drawing.diagrams.blocks import Diagram
from transformer_cli.extensions.lessons.drawing.diagrams.wirings import WIRINGS, Wiring, wiring_of
from transformer_cli.extensions.lessons.drawing.theme import MAX_NAME, SMALL, TITLE, Theme
from transformer_cli.process.escaping import on_one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES: dict[NormPlacement, str] = {
    "pre": "Xiong et al. 2020",
    "post": "the paper",
    "residual_of_normed": "Hello Transformer",
}
_TEXTS = {
    "sublayer": ("f: the sub-layer", "attention or feed-forward"),
    "norm": ("norm",),
    "dropout": ("dropout",),
}
_KINDS = {"sublayer": "attention", "norm": "norm", "dropout": "plain"}
_WIDTH, _LEFT, _BOX, _HIGH = 2.54, 0.1, (1.86, 0.42), 4.75
_PITCH = 0.64


def draw_residuals(config: Config, theme: Theme) -> "Figure":
    """The wirings side by side; that of the config has a thick border."""
    diagram = Diagram(_HIGH, theme)
    for number, placement in enumerate(WIRINGS):
        left = _LEFT + number * (_WIDTH + 0.09)
        is_chosen = placement == config.model.norm_placement
        border = theme.lines[1] if is_chosen else None
        diagram.panel((left, 0.42), (_WIDTH, _HIGH - 0.52), color=border)
        middle = left + _WIDTH / 2
        diagram.text((middle, _HIGH - 0.32), placement, size=TITLE, weight="bold")
        diagram.text((middle, _HIGH - 0.58), _NAMES[placement], size=SMALL, color=theme.muted)
        if is_chosen:
            used = f"norm_placement of {on_one_line(config.name, MAX_NAME)}"
            diagram.text((middle, 0.2), used, size=SMALL, color=theme.lines[1], weight="bold")
        _draw(diagram, wiring_of(placement), middle)
    return diagram.figure


def _draw(diagram: Diagram, wiring: Wiring, x: float) -> None:
    """One wiring, from x at the bottom to the output at the top."""
    width, height = _BOX
    diagram.text((x, 0.6), "x", weight="bold")
    fork = below = 0.86
    diagram.line((x, 0.7), (x, fork))
    side = x + width / 2 + 0.18
    y = 1.02
    for step in wiring.branch:
        diagram.arrow((x, below), (x, y))
        diagram.box((x - width / 2, y), _BOX, _TEXTS[step], _KINDS[step])
        below, y = y + height, y + _PITCH
    center = y + 0.06
    radius = diagram.sum((x, center))
    diagram.arrow((x, below), (x, center - radius))
    diagram.arrow((x, fork), (side, fork), (side, center), (x + radius, center))
    below, y = center + radius, center + 0.38
    for step in wiring.after_sum:
        diagram.arrow((x, below), (x, y))
        diagram.box((x - width / 2, y), _BOX, _TEXTS[step], _KINDS[step])
        below, y = y + height, y + _PITCH
    diagram.arrow((x, below), (x, below + 0.26))
    formula = wiring.formula.replace("sublayer", "f")
    diagram.text((x, _HIGH - 0.84), formula, size=SMALL, family="monospace")
