"""What a Figure shows, as plain text: equal for equal drawings, whatever the version of matplotlib or the fonts.

A test compares the pictures of the documents by it. A PNG file would not do: its bytes change with fonts and
with versions of matplotlib. The text has the texts, the data of lines rounded to 4 significant digits, images as
shape and digest, and the positions of boxes. It leaves out what a layout or a locator computes from the size of
fonts: the place of axes and the numbers at their ticks.
"""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUM_DIGITS = 4
MAX_POINTS = 25
"""Of a longer line, this many points are described: rounding of the others could differ between processors."""


def describe_figure(figure: "Figure") -> str:
    """One line of text for each thing that is drawn, in the order of drawing."""
    width, height = figure.get_size_inches()
    lines = [f"figure {numbers([width, height])} {color(figure.get_facecolor())}"]
    lines += _own_texts(figure)
    for number, axes in enumerate(figure.get_axes()):
        lines += [f"axes {number}", *(f"  {line}" for line in _parts_of_axes(axes))]
    return "\n".join(lines) + "\n"


def figure_digest(figure: "Figure") -> str:
    """The SHA-256 of the description, in hexadecimal digits."""
    return hashlib.sha256(describe_figure(figure).encode("utf-8")).hexdigest()


def numbers(values: Any) -> str:
    """Numbers rounded to 4 significant digits; 0 has no sign."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    return " ".join(_rounded(value) for value in flat.tolist())


def color(value: Any) -> str:
    """A colour as hexadecimal digits, its opacity included."""
    from matplotlib.colors import to_hex

    return to_hex(value, keep_alpha=True)


def _rounded(value: float) -> str:
    # Differences of floating-point numbers near 0, such as 1e-17, are drawn as 0.
    return "0" if abs(value) < 1e-12 else f"{value:.{NUM_DIGITS}g}"


def _own_texts(figure: Any) -> Iterator[str]:
    """The texts of a figure and of its parts that belong to no axes, and its legends."""
    texts = [text.get_text() for text in figure.texts]
    if title := figure.get_suptitle():  # one of these texts; it comes first
        texts.remove(title)
        texts.insert(0, title)
    yield from (f"text {text!r}" for text in texts)
    yield from map(_legend, figure.legends)
    for part in figure.subfigs:
        yield from _own_texts(part)


def _parts_of_axes(axes: "Axes") -> Iterator[str]:
    yield f"x {axes.get_xscale()} {numbers(axes.get_xlim())} {axes.get_xlabel()!r}"
    yield f"y {axes.get_yscale()} {numbers(axes.get_ylim())} {axes.get_ylabel()!r}"
    for place in ("left", "center", "right"):
        if title := axes.get_title(place):
            yield f"title {title!r}"
    yield from _fixed_ticks(axes)
    for line in axes.get_lines():
        yield f"line {line.get_label()!r} {color(line.get_color())} {_points(line.get_xydata())}"
    for image in axes.get_images():
        yield f"image {_image(image.get_array())} {numbers(image.get_extent())}"
    for patch in axes.patches:
        yield f"{type(patch).__name__} {color(patch.get_facecolor())} {_corners(patch)}"
    for collection in axes.collections:
        yield f"{type(collection).__name__} {_points_of_collection(collection)}"
    for text in axes.texts:
        yield f"text {text.get_text()!r} {numbers(text.get_position())}"
    legend = axes.get_legend()
    if legend is not None:
        yield _legend(legend)


def _legend(legend: Any) -> str:
    texts = [text.get_text() for text in (legend.get_title(), *legend.get_texts())]
    return f"legend {texts!r}"


def _fixed_ticks(axes: "Axes") -> Iterator[str]:
    """The ticks that the drawing itself has set; those of other locators depend on the size of fonts."""
    from matplotlib.ticker import FixedLocator

    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        locator: Any = axis.get_major_locator()
        places = getattr(locator, "locs", ()) if isinstance(locator, FixedLocator) else ()
        if len(places):
            labels = axis.get_major_formatter().format_ticks(list(places))
            yield f"ticks of {name} {numbers(places)} {labels!r}"


def _points(points: Any) -> str:
    if len(points) <= MAX_POINTS:
        return numbers(points)
    chosen = np.linspace(0, len(points) - 1, MAX_POINTS).round().astype(int)
    return f"{len(points)} points, such as {numbers(np.asarray(points)[chosen])}"


def _image(values: Any) -> str:
    array = np.asarray(values, dtype=np.float64)
    digest = hashlib.sha256(numbers(array).encode("ascii")).hexdigest()[:16]
    shape = " x ".join(map(str, array.shape))
    return f"{shape}, {numbers([array.min(), array.max(), array.mean()])}, {digest}"


def _corners(patch: Any) -> str:
    """The rectangle around a patch, in the coordinates of its axes; of an arrow, its two ends."""
    from matplotlib.patches import FancyArrowPatch

    if hasattr(patch, "get_bbox"):
        box = patch.get_bbox()
        return numbers([box.x0, box.y0, box.x1, box.y1])
    if isinstance(patch, FancyArrowPatch):
        start, end = patch._posA_posB  # type: ignore[attr-defined]
        return numbers([*start, *end])
    extent = patch.get_path().get_extents(patch.get_patch_transform())
    return numbers([extent.x0, extent.y0, extent.x1, extent.y1])


def _points_of_collection(collection: Any) -> str:
    paths = [path.vertices for path in collection.get_paths()]
    offsets = np.asarray(collection.get_offsets())
    parts = [*paths, offsets] if paths else [offsets]
    return _points(np.concatenate([np.asarray(part).reshape(-1, 2) for part in parts]))
