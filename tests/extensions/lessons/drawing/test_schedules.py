"""Pictures of learning rates: the curves are those of `learning_rate`."""

from typing import Any, get_args

import pytest
from matplotlib.figure import Figure

from transformer_cli.config import load_config
from transformer_cli.config.schema import ScheduleName
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.extensions.lessons.drawing.schedules import exact_rate_in_words, rate_in_words
from transformer_cli.extensions.lessons.drawing.theme import LIGHT
from transformer_cli.training.optimizers import learning_rate


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


@pytest.mark.long
def test_the_numbers_at_the_axis_are_not_rounded() -> None:
    figure = draw_picture("schedule", config="en-it.yaml")
    figure.draw_without_rendering()
    axis = figure.get_axes()[0].yaxis
    shown = {label.get_text(): tick for tick, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)}
    assert {"1.75e-3", "1.25e-3", "2.0e-3", "0"} <= set(shown)
    for text, tick in shown.items():
        assert float(text) == pytest.approx(tick)


@pytest.mark.long
def test_the_text_at_the_peak_stands_above_the_curve() -> None:
    figure = draw_picture("schedule", config="en-it.yaml")
    figure.draw_without_rendering()
    (text,) = figure.get_axes()[0].texts
    peak = figure.get_axes()[0].transData.transform((200, 2e-3))
    assert text.get_window_extent().y0 > peak[1]


KINDS = get_args(ScheduleName)
PEAK, LAST = 7e-4, 20_000


def curves(*overrides: str, config: str | None = None) -> dict[str, dict[int, float]]:
    """The curve of each panel that is not pale, as a map from steps to learning rates."""
    found = {}
    for axes in draw_picture("schedules", config=config, overrides=overrides).get_axes():
        lines: list[Any] = [line for line in axes.get_lines() if line.get_color() != LIGHT.faint]
        for line in lines:
            found[str(line.get_label())] = dict(zip(*line.get_data(), strict=True))
    return found


@pytest.mark.long
def test_every_kind_of_schedule_has_a_panel_with_its_name() -> None:
    titles = [axes.get_title("left").split("\n")[0] for axes in draw_picture("schedules").get_axes()]
    assert titles[: len(KINDS)] == [*KINDS]
    assert [*curves()] == [*KINDS]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "step", "rate"),
    [
        ("noam", 4000, 512**-0.5 * 4000**-0.5),
        ("inverse_sqrt", LAST, PEAK * (4000 / LAST) ** 0.5),
        ("cosine", LAST, 0.0),
        ("linear", LAST, 0.0),
        ("constant", LAST, PEAK),
        ("warmup_stable_decay", LAST, 0.0),
        ("plateau", LAST, PEAK / 8),
    ],
)
def test_a_curve_has_the_value_of_its_formula(kind: str, step: int, rate: float) -> None:
    assert curves()[kind][step] == pytest.approx(rate, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "noam"])
def test_the_warm_up_ends_at_the_peak(kind: str) -> None:
    assert curves()[kind][4000] == pytest.approx(PEAK)


@pytest.mark.long
def test_the_curve_of_the_kind_of_a_config_is_that_of_its_training() -> None:
    config = load_config("en-it.yaml")
    drawn = curves(config="en-it.yaml")["cosine"]
    expected = {step: learning_rate(int(step), config.training, d_model=256) for step in drawn}
    assert drawn == pytest.approx(expected)


def test_the_lowest_learning_rate_of_a_config_is_kept() -> None:
    drawn = curves("training.min_learning_rate=1e-4", config="en-it.yaml")
    assert drawn["linear"][1500] == pytest.approx(1e-4)
    assert drawn["cosine"][1500] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("rate", "words", "exact"),
    [
        (7e-4, "7.0e-4", "7.0e-4"),
        (1.75e-3, "1.8e-3", "1.75e-3"),
        (1.0, "1.0", "1.0"),
        (20.0, "2.0e1", "2.0e1"),
        (0, "0", "0"),
    ],
)
def test_a_learning_rate_is_written_as_people_write_it(rate: float, words: str, exact: str) -> None:
    assert (rate_in_words(rate), exact_rate_in_words(rate)) == (words, exact)
