"""The colours, fonts and sizes of all drawings, on a light or on a dark background."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from transformer_cli.evaluation.curve_pictures import FAINT, INK, LINES, MUTED
from transformer_cli.extensions.lessons.drawing.pictures import ThemeName

WIDTH = 8.0
"""The width of a drawing in inches; shown 800 pixels wide, a text of 9 points is 12 pixels high."""
DPI = 160
TITLE, TEXT, SMALL = 13.0, 10.0, 9.0
"""Sizes of texts in points."""
MAX_NAME = 28
"""The most characters of the name of a config."""
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours that people with any colour vision can tell apart; no drawing tells by colour alone."""

    background: str
    ink: str
    """Of texts and arrows."""
    muted: str
    """Of texts of second rank."""
    faint: str
    """Of grids and borders."""
    panel: str
    """The background of a group of boxes."""
    hidden: str
    """Of masked cells and padding."""
    lines: tuple[str, ...]
    """Of curves and filled cells; the first is used where one is enough."""
    boxes: dict[str, str]
    """The background of a box, by what the box does."""
    diverging: tuple[str, str, str]
    """Of the values -1, 0 and 1."""


# On dark, the lines are lighter shades of the palette of Okabe and Ito.
LIGHT = Theme(
    background="#ffffff",
    ink=INK,
    muted=MUTED,
    faint=FAINT,
    panel="#f3f5f8",
    hidden="#e4e8ee",
    lines=LINES,
    boxes={
        "attention": "#ffdfb5",
        "feed_forward": "#c5e4f7",
        "recurrence": "#e2d8f3",
        "norm": "#f4f0b8",
        "embedding": "#f6d3e1",
        "output": "#cfe9d8",
        "plain": "#ffffff",
    },
    diverging=("#b2470a", "#f7f7f5", "#005a8f"),
)
DARK = Theme(
    background="#12171f",
    ink="#eef2f7",
    muted="#a9b4c2",
    faint="#39434f",
    panel="#1b222c",
    hidden="#2a323d",
    lines=("#56b4e9", "#ff9350", "#2fcf9f", "#e79ac4", "#e8c33d", "#8fd0f5", "#a9b4c2"),
    boxes={
        "attention": "#70471a",
        "feed_forward": "#1d4f70",
        "recurrence": "#473a6b",
        "norm": "#55511a",
        "embedding": "#66334a",
        "output": "#20553b",
        "plain": "#242c37",
    },
    diverging=("#ff9350", "#1a2029", "#56b4e9"),
)
THEMES: dict[ThemeName, Theme] = {"light": LIGHT, "dark": DARK}


def new_figure(height: float, theme: Theme, *, layout: Any = "constrained") -> Figure:
    """An empty figure of this height in inches."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout=layout, facecolor=theme.background)
    if layout == "constrained":
        engine: Any = figure.get_layout_engine()
        engine.set(w_pad=0.1, h_pad=0.1, wspace=0.04, hspace=0.05)
    return figure


def style(axes: Axes, theme: Theme, *, title: str = "") -> None:
    """Give axes the colours of a theme: few lines, a pale grid, small labels."""
    axes.set_facecolor(theme.background)
    axes.set_title(title, fontsize=TEXT, color=theme.ink, loc="left")
    axes.tick_params(colors=theme.muted, labelsize=SMALL, labelcolor=theme.muted)
    for side, spine in axes.spines.items():
        spine.set_color(theme.faint)
        spine.set_visible(side in ("left", "bottom"))
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(theme.muted)
        label.set_fontsize(SMALL)


def grid(axes: Axes, theme: Theme) -> None:
    """A pale grid behind the curves."""
    axes.grid(visible=True, color=theme.faint, linewidth=0.6)
    axes.set_axisbelow(True)


def without_frame(axes: Axes) -> None:
    """Remove the frame and the marks of the axes."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)


def colormap(colors: Sequence[str]) -> Any:
    """A colour map that runs through these colours."""
    return LinearSegmentedColormap.from_list("drawing", list(colors))
