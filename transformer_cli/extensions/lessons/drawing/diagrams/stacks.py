"""A stack of boxes in a block diagram: the encoder or the decoder, drawn from the bottom to the top."""

from dataclasses import dataclass

from transformer_cli.extensions.lessons.drawing.diagrams.blocks import Diagram, Point, Side
from transformer_cli.extensions.lessons.drawing.diagrams.wirings import Wiring
from transformer_cli.extensions.lessons.drawing.theme import SMALL, TEXT

BOX_WIDTH = 2.5
MARGIN = 0.32
"""From a box to the border of its group; the residual connection runs between them."""
_LINE, _PADDING = 0.17, 0.14
"""Heights of a line of text in a box, and of the space above and below all lines."""
_GAP = 0.19
_BETWEEN = 0.62
"""From the arrow of the queries to that of the keys, and from there to that of the values."""


@dataclass(frozen=True, slots=True)
class SubLayer:
    """One sub-layer: the name of its module, further lines, and the kind of its box."""

    name: str
    lines: tuple[str, ...]
    kind: str


@dataclass(slots=True)
class Stack:
    """What is drawn so far."""

    diagram: Diagram
    x: float
    """The middle."""
    y: float
    """The top of the last box."""
    skip: Side
    """The side of the residual connections."""

    def add(self, lines: tuple[str, ...], kind: str, gap: float = _GAP) -> Point:
        """Draw a box above the last one, with an arrow from it; returns the middle of the box."""
        height, bottom = _PADDING + _LINE * len(lines), self.y + gap
        self.diagram.arrow((self.x, self.y), (self.x, bottom))
        self.diagram.box((self.x - BOX_WIDTH / 2, bottom), (BOX_WIDTH, height), lines, kind)
        self.y = bottom + height
        return self.x, bottom + height / 2

    def add_attention(self, lines: tuple[str, ...], *, reads_memory: bool) -> Point:
        """Draw the box of an attention, with an arrow for its queries and, unless it reads the memory, for keys and values.

        Returns:
            The middle of the box.
        """
        fork, bottom = self.y + 0.1, self.y + 0.1 + _GAP + 0.06
        names = ("Q",) if reads_memory else ("Q", "K", "V")
        places = [self.x + (number - len(names) // 2) * _BETWEEN for number in range(len(names))]
        self.diagram.line((self.x, self.y), (self.x, fork))
        self.diagram.line((places[0], fork), (places[-1], fork))
        for name, place in zip(names, places, strict=True):
            self.diagram.arrow((place, fork), (place, bottom))
            self.diagram.text((place + 0.12, fork + 0.11), name, size=SMALL)
        self.y = fork
        return self.add(lines, "attention", gap=bottom - fork)

    def add_sublayer(self, sublayer: SubLayer, wiring: Wiring) -> Point:
        """Draw a sub-layer with its norm and its residual connection; returns the middle of its box.

        Dropout has no box: it would only repeat below each sum.
        """
        norm = f"{sublayer.name}_norm"
        fork = self.y + 0.14
        self.diagram.line((self.x, self.y), (self.x, fork))
        self.y = fork
        middle = (self.x, fork)
        for step in wiring.branch:
            if step == "norm":
                self.add((norm,), "norm")
            elif step == "sublayer" and sublayer.kind == "attention":
                lines = sublayer.name, *sublayer.lines
                middle = self.add_attention(lines, reads_memory=sublayer.name == "cross_attention")
            elif step == "sublayer":
                middle = self.add((sublayer.name, *sublayer.lines), sublayer.kind)
        self._add_sum(fork)
        for step in wiring.after_sum:
            if step == "norm":
                self.add((norm,), "norm")
        return middle

    def _add_sum(self, fork: float) -> None:
        center = self.y + 0.29
        radius = self.diagram.sum((self.x, center))
        self.diagram.arrow((self.x, self.y), (self.x, center - radius))
        sign = 1 if self.skip == "right" else -1
        side = self.x + sign * (BOX_WIDTH / 2 + MARGIN / 2)
        end = self.x + sign * radius
        self.diagram.arrow((self.x, fork), (side, fork), (side, center), (end, center))
        self.y = center + radius

    def frame(self, bottom: float, title: str) -> None:
        """Draw the border of a group of boxes from `bottom` up to here, with a title in its upper corner."""
        self.diagram.line((self.x, self.y), (self.x, self.y + 0.3))
        self.y += 0.3
        left, width = self.x - BOX_WIDTH / 2 - MARGIN, BOX_WIDTH + 2 * MARGIN
        self.diagram.panel((left, bottom), (width, self.y - bottom))
        style = {"ha": "left", "weight": "bold"}
        self.diagram.text((left + 0.1, self.y - 0.15), title, size=TEXT, **style)
