"""The panels of all schedules: each curve has the values that its formula gives."""

from typing import Any, get_args

import pytest

from transformer_cli.config import load_config
from transformer_cli.config.training import ScheduleName
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.extensions.lessons.drawing.theme import LIGHT
from transformer_cli.training.schedules import learning_rate

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


def test_every_kind_of_schedule_has_a_panel_with_its_name() -> None:
    titles = [
        axes.get_title("left").split("\n")[0] for axes in draw_picture("schedules").get_axes()
    ]
    assert titles[: len(KINDS)] == [*KINDS]
    assert [*curves()] == [*KINDS]


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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "noam"])
def test_the_warm_up_ends_at_the_peak(kind: str) -> None:
    assert curves()[kind][4000] == pytest.approx(PEAK)


def test_the_curve_of_the_kind_of_a_config_is_that_of_its_training() -> None:
    config = load_config("en-it.yaml")
    drawn = curves(config="en-it.yaml")["cosine"]
    expected = {step: learning_rate(int(step), config.training, d_model=256) for step in drawn}
    assert drawn == pytest.approx(expected)


def test_the_lowest_learning_rate_of_a_config_is_kept() -> None:
    drawn = curves("training.min_learning_rate=1e-4", config="en-it.yaml")
    assert drawn["linear"][1500] == pytest.approx(1e-4)
    assert drawn["cosine"][1500] == pytest.approx(1e-4)
