"""The model of a config as a block diagram: figure 1 of the paper, with the names of the code."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from transformer_cli.config import Config, ModelConfig
from transformer_cli.drawing.blocks import Diagram, Point, Side
from transformer_cli.drawing.theme import SMALL, Theme
from transformer_cli.drawing.wirings import Wiring, wiring_of
from transformer_cli.model import Transformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import nn

_WIDTH = 2.5
_NORM, _BLOCK, _TALL = 0.3, 0.5, 0.66
"""Heights of boxes with one, two and three lines."""
_GAP = 0.17
_CENTERS: dict[str, float] = {"source": 2.1, "target": 5.72}
_BOTTOM = 0.75
_HEIGHT_WITHOUT_LAYERS = 5.0


@dataclass(frozen=True, slots=True)
class _SubLayer:
    """One sub-layer of the diagram: the name of its module, its further lines, and its kind of box."""

    name: str
    lines: tuple[str, ...]
    kind: str


@dataclass(slots=True)
class _Column:
    """The encoder or the decoder while it is drawn, from the bottom to the top."""

    diagram: Diagram
    x: float
    y: float
    """The top of the last box."""
    skip: Side
    """The side of the residual connections."""

    def add(self, lines: tuple[str, ...], kind: str, gap: float = _GAP) -> Point:
        """A box above the last one, with an arrow from it; returns the middle of the box."""
        height = {1: _NORM, 2: _BLOCK, 3: _TALL}[len(lines)]
        bottom = self.y + gap
        self.diagram.arrow((self.x, self.y), (self.x, bottom))
        self.diagram.box((self.x - _WIDTH / 2, bottom), (_WIDTH, height), lines, kind)
        self.y = bottom + height
        return self.x, bottom + height / 2

    def add_sublayer(self, sublayer: _SubLayer, wiring: Wiring, norm: str) -> Point:
        """A sub-layer with its norm and its residual connection; returns the middle of its box."""
        fork = self.y + 0.1
        self.diagram.line((self.x, self.y), (self.x, fork))
        self.y = fork
        place = (self.x, fork)
        for step in wiring.branch:
            if step == "norm":
                self.add((norm,), "norm")
            elif step == "sublayer":
                place = self.add((sublayer.name, *sublayer.lines), sublayer.kind)
        center = self.y + 0.25
        radius = self.diagram.sum((self.x, center))
        self.diagram.arrow((self.x, self.y), (self.x, center - radius))
        sign = 1 if self.skip == "right" else -1
        side, end = self.x + sign * (_WIDTH / 2 + 0.16), self.x + sign * radius
        self.diagram.arrow((self.x, fork), (side, fork), (side, center), (end, center))
        self.y = center + radius
        for step in wiring.after_sum:
            if step == "norm":
                self.add((norm,), "norm")
        return place


def draw_architecture(config: Config, theme: Theme) -> "Figure":
    """Encoder and decoder from the ids at the bottom to the logits at the top.

    What is drawn is read from a model that is built from the config, without memory for its weights.
    """
    with torch.device("meta"):
        model = Transformer(config.model, 8, 8)
    wiring = wiring_of(config.model.norm_placement)
    diagram = Diagram(_height(config.model, wiring), theme)
    encoder = _Column(diagram, _CENTERS["source"], _BOTTOM, "left")
    decoder = _Column(diagram, _CENTERS["target"], _BOTTOM, "right")
    _draw_tokenizers(diagram, config)
    embedded = [
        _draw_embedding(column, model, side)
        for column, side in ((encoder, "source"), (decoder, "target"))
    ]
    masks = {"self_attention": "padding_mask", "cross_attention": "padding_mask"}
    _draw_layers(encoder, model.encoder, wiring, masks)
    reads = _draw_layers(decoder, model.decoder, wiring, masks | {"self_attention": "causal_mask"})
    _draw_memory(diagram, encoder, reads["cross_attention"])
    output = decoder.add(("output", f"Projection: {config.model.d_model} → vocabulary"), "output")
    diagram.arrow((decoder.x, decoder.y), (decoder.x, decoder.y + 0.28))
    diagram.text((decoder.x, decoder.y + 0.4), "logits  (B, T, V)", size=SMALL)
    _draw_ties(diagram, config.model, embedded, output)
    _draw_facts(diagram, config, (encoder.x - _WIDTH / 2 - 0.3, decoder.y + 0.35))
    return diagram.figure
