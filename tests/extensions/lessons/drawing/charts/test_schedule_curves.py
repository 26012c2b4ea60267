"""The curves of learning rates: values known from the paper and from the formulas."""

import pytest
from matplotlib.figure import Figure

from transformer_cli.extensions.lessons.drawing.pictures import draw_picture


def value_at(figure: Figure, step: int, axes: int = 0) -> float:
    """The learning rate at a step, read from the first line of the axes."""
    steps, rates = figure.get_axes()[axes].get_lines()[0].get_data()
    return float(dict(zip(steps, rates, strict=True))[step])


def test_the_schedule_of_the_paper_has_7e_4_at_step_4000() -> None:
    figure = draw_picture("schedule")
    assert value_at(figure, 4000) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert f"{value_at(figure, 4000):.1e}" == "7.0e-04"
    assert value_at(figure, 20_000) == pytest.approx(512**-0.5 * 20_000**-0.5)


def test_the_curve_of_a_config_ends_at_its_last_step() -> None:
    figure = draw_picture("schedule", config="en-it.yaml")
    assert value_at(figure, 200) == pytest.approx(2e-3)
    assert value_at(figure, 1500) == pytest.approx(0.0, abs=1e-12)


def test_the_numbers_at_the_axis_are_not_rounded() -> None:
    figure = draw_picture("schedule", config="en-it.yaml")
    figure.draw_without_rendering()
    axis = figure.get_axes()[0].yaxis
    shown = {
        label.get_text(): tick
        for tick, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    }
    assert {"1.75e-3", "1.25e-3", "2.0e-3", "0"} <= set(shown)
    for text, tick in shown.items():
        assert float(text) == pytest.approx(tick)


def test_the_text_at_the_peak_stands_above_the_curve() -> None:
    figure = draw_picture("schedule", config="en-it.yaml")
    figure.draw_without_rendering()
    (text,) = figure.get_axes()[0].texts
    peak = figure.get_axes()[0].transData.transform((200, 2e-3))
    assert text.get_window_extent().y0 > peak[1]
