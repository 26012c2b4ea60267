"""Block diagrams: boxes, arrows and texts on a page that is measured in inches from its lower left corner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from transformer_cli.extensions.lessons.drawing.theme import SMALL, TEXT, WIDTH, Theme, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    def text(
        self, place: Point, text: str, *, size: float = TEXT, color: str | None = None, **style: Any
    ) -> None:
        """A text, by default centred at its place."""
        style = {"ha": "center", "va": "center", "zorder": 4, **style}
        self.axes.text(*place, text, fontsize=size, color=color or self.theme.ink, **style)

    def arrow(self, *points: Point, dashed: bool = False, color: str | None = None) -> None:
        """A line through these points, with a head at the last one."""
        from matplotlib.patches import FancyArrowPatch

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
        from matplotlib.lines import Line2D

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
        from matplotlib.patches import Circle

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

    def _rectangle(
        self, corner: Point, size: Point, face: str, edge: str, *, zorder: float = 3
    ) -> None:
        from matplotlib.patches import FancyBboxPatch

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
