"""The description of a figure: what changes it, and what does not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from transformer_cli.extensions.lessons.drawing.description import (
    MAX_POINTS,
    describe_figure,
    figure_digest,
    numbers,
)


def small_figure(change: Callable[[Figure, Any], None] = lambda *_: None) -> Figure:
    """A figure with a line, an image, a box, an arrow and a text, and a change of it."""
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot([0, 1, 2], [0.0, 0.5, 1.0], color="#ff0000", label="rate")
    left.text(0.5, 0.25, "half")
    left.add_patch(Rectangle((0, 0), 1, 2))
    left.add_patch(FancyArrowPatch((0, 0), (1, 1)))
    right.imshow(np.eye(3))
    change(figure, left)
    return figure


def test_the_description_holds_texts_data_images_and_boxes() -> None:
    text = describe_figure(small_figure())
    assert "line 'rate' #ff0000ff 0 0 1 0.5 2 1\n" in text
    assert "text 'half' 0.5 0.25\n" in text
    assert "image 3 x 3, 0 1 0.3333, " in text
    assert "Rectangle #1f77b4ff 0 0 1 2\n" in text
    assert "FancyArrowPatch #1f77b4ff 0 0 1 1\n" in text


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        lambda _, axes: axes.get_lines()[0].set_ydata([0.0, 0.5, 1.001]),
        lambda _, axes: axes.get_lines()[0].set_color("#ff0001"),
        lambda _, axes: axes.texts[0].set_text("third"),
        lambda _, axes: axes.texts[0].set_position((0.5, 0.5)),
        lambda _, axes: axes.patches[0].set_height(3),
        lambda _, axes: axes.patches[1].set_positions((0, 0), (1, 2)),
        lambda _, axes: axes.set_title("title"),
        lambda _, axes: axes.set_xlabel("steps"),
        lambda _, axes: axes.set_yscale("symlog"),
        lambda _, axes: axes.set_xlim(0, 7),
        lambda _, axes: axes.set_xticks([0, 1], ["a", "b"]),
        lambda _, axes: axes.legend(),
        lambda _, axes: axes.scatter([1], [1]),
        lambda figure, _: figure.suptitle("all"),
        lambda figure, _: figure.supxlabel("all"),
        lambda figure, _: figure.subfigures(1, 1).suptitle("part"),
        lambda figure, axes: figure.legend(handles=axes.get_lines(), loc="upper right"),
        lambda figure, _: figure.axes[1].images[0].set_data(np.eye(3)[::-1]),
        lambda figure, _: figure.set_facecolor("black"),
    ],
)
def test_each_visible_change_changes_the_description(change: Callable[[Figure, Any], None]) -> None:
    assert figure_digest(small_figure(change)) != figure_digest(small_figure())


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        lambda _, axes: axes.get_lines()[0].set_ydata([0.0, 0.5000001, 1.0]),
        lambda _, axes: axes.texts[0].set_fontfamily("serif"),
        lambda _, axes: axes.tick_params(labelsize=20),
        lambda figure, _: figure.set_layout_engine("tight"),
        lambda figure, _: figure.set_dpi(300),
    ],
)
def test_fonts_layout_and_rounding_do_not_change_the_description(
    change: Callable[[Figure, Any], None],
) -> None:
    assert figure_digest(small_figure(change)) == figure_digest(small_figure())


def test_numbers_have_4_significant_digits_and_0_no_sign() -> None:
    assert numbers([-0.0, 1e-17, 1234567.0, 0.000123456]) == "0 0 1.235e+06 0.0001235"


def test_a_long_line_is_described_by_some_of_its_points() -> None:
    figure = Figure()
    figure.subplots().plot(np.arange(1000))
    [line] = [line for line in describe_figure(figure).splitlines() if "  line" in line]
    assert "1000 points, such as 0 0 " in line
    assert line.endswith(" 999 999")
    assert len(line.partition("such as ")[2].split()) == 2 * MAX_POINTS
