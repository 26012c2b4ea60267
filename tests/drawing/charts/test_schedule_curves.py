"""The curves of learning rates: values known from the paper and from the formulas."""

import pytest
from matplotlib.figure import Figure

from transformer_cli.drawing.pictures import draw_picture


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
