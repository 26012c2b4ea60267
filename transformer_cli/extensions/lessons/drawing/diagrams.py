"""Block diagrams: boxes, arrows and texts on a page, and stacks of them with residual connections."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from transformer_cli.config.schema import NormPlacement
from transformer_cli.extensions.lessons.drawing.theme import SMALL, TEXT, WIDTH, Theme, new_figure
from transformer_cli.model import layers

Point = tuple[float, float]
Side = Literal["left", "right"]

LINE = 1.4
_CORNER = 0.06
_RADIUS_OF_SUM = 0.1


class Diagram:
    """A page of boxes and arrows; each method draws one thing."""

    def __init__(self, height: float, theme: Theme) -> None:
        self.theme = theme
        self.figure: Figure = new_figure(height, theme, layout=None)
        self.axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.set_axis_off()
        self.axes.set_xlim(0.0, WIDTH)
        self.axes.set_ylim(0.0, height)

    def fit(self, height: float) -> None:
        """Give the page this height, in inches, once it is known what is drawn."""
        self.figure.set_size_inches(WIDTH, height)
        self.axes.set_ylim(0.0, height)

    def box(self, corner: Point, size: Point, lines: Sequence[str], kind: str = "plain") -> None:
        """A box with round corners; its first line is bold, the others are smaller.

        Args:
            corner: the lower left corner.
            size: width and height.
            lines: the texts, from top to bottom; none: an empty box.
            kind: a key of `Theme.boxes`.
        """
        self._rectangle(corner, size, self.theme.boxes[kind], self.theme.muted)
        (x, y), (width, height) = corner, size
        between = 0.17
        first = y + height / 2 + between * (len(lines) - 1) / 2
        for number, line in enumerate(lines):
            place = x + width / 2, first - number * between
            self.text(place, line, size=SMALL, weight="normal" if number else "bold")

    def panel(self, corner: Point, size: Point, *, color: str | None = None) -> None:
        """The background of a group of boxes; with a colour, its border is drawn."""
        self._rectangle(corner, size, self.theme.panel, color or self.theme.faint, zorder=0.5)

    def text(self, place: Point, text: str, *, size: float = TEXT, color: str | None = None, **style: Any) -> None:
        """A text, by default centred at its place."""
        style = {"ha": "center", "va": "center", "zorder": 4, **style}
        self.axes.text(*place, text, fontsize=size, color=color or self.theme.ink, **style)

    def arrow(self, *points: Point, dashed: bool = False, color: str | None = None) -> None:
        """A line through these points, with a head at the last one."""
        shade = color or self.theme.ink
        self.line(*points[:-1], points[-1], dashed=dashed, color=shade)
        head = FancyArrowPatch(
            points[-2],
            points[-1],
            arrowstyle="-|>",
            mutation_scale=12,
            linewidth=0.0,
            color=shade,
            shrinkA=0,
            shrinkB=0,
            zorder=2.5,
        )
        self.axes.add_patch(head)

    def line(self, *points: Point, dashed: bool = False, color: str | None = None) -> None:
        """A line through these points."""
        xs, ys = zip(*points, strict=True)
        line = Line2D(
            xs,
            ys,
            linewidth=LINE,
            linestyle=(0, (4, 2)) if dashed else "-",
            color=color or self.theme.ink,
            solid_joinstyle="round",
            zorder=2,
        )
        self.axes.add_line(line)

    def sum(self, place: Point) -> float:
        """A circle with a plus; returns its radius."""
        circle = Circle(
            place,
            _RADIUS_OF_SUM,
            facecolor=self.theme.background,
            edgecolor=self.theme.ink,
            linewidth=LINE,
            zorder=3,
        )
        self.axes.add_patch(circle)
        self.text(place, "+", size=11, weight="bold")
        return _RADIUS_OF_SUM

    def _rectangle(self, corner: Point, size: Point, face: str, edge: str, *, zorder: float = 3) -> None:
        rectangle = FancyBboxPatch(
            corner,
            *size,
            boxstyle=f"round,pad=0,rounding_size={_CORNER}",
            facecolor=face,
            edgecolor=edge,
            linewidth=1.0,
            zorder=zorder,
        )
        self.axes.add_patch(rectangle)


WIRINGS: tuple[NormPlacement, ...] = get_args(NormPlacement)


@dataclass(frozen=True, slots=True)
class Traced:
    """A value, and how it was computed."""

    formula: str
    steps: tuple[str, ...] = ()
    """The functions that were applied since x, or since the sum."""
    branch: tuple[str, ...] | None = None
    """The functions between x and the sum; None: there was no sum yet."""

    def __add__(self, other: "Traced") -> "Traced":
        if self.steps or self.branch is not None or other.branch is not None:
            raise ValueError(f"{self.formula} + {other.formula}: not the sum of x and a branch")
        return Traced(f"{self.formula} + {other.formula}", (), other.steps)

    def after(self, function: str) -> "Traced":
        """This value, and then a function of it."""
        return Traced(f"{function}({self.formula})", (*self.steps, function), self.branch)


@dataclass(frozen=True, slots=True)
class Wiring:
    """The order of norm, sub-layer, dropout and sum around one sub-layer."""

    placement: NormPlacement
    formula: str
    branch: tuple[str, ...]
    """The functions between x and the sum, in order."""
    after_sum: tuple[str, ...]
    """The functions after the sum."""


def wiring_of(placement: NormPlacement) -> Wiring:
    """The wiring that a model has with this `model.norm_placement`."""
    function: Any = getattr(layers, placement)
    steps = (lambda value, name=name: value.after(name) for name in ("sublayer", "norm", "dropout"))
    result: Traced = function(Traced("x"), *steps)
    assert result.branch is not None
    return Wiring(placement, result.formula, result.branch, result.steps)


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
