"""The wirings: what is read from the functions of the model is what they compute."""

from typing import Any

import pytest

from transformer_cli.config.model import NormPlacement
from transformer_cli.extensions.lessons.drawing.diagrams.wirings import WIRINGS, Traced, wiring_of
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.model import layers

EXPECTED = {
    "pre": ("x + dropout(sublayer(norm(x)))", ("norm", "sublayer", "dropout"), ()),
    "post": ("norm(x + dropout(sublayer(x)))", ("sublayer", "dropout"), ("norm",)),
    "residual_of_normed": (
        "x + norm(dropout(sublayer(x)))",
        ("sublayer", "dropout", "norm"),
        (),
    ),
}


def test_there_are_three_wirings() -> None:
    assert {*WIRINGS} == {*EXPECTED}


@pytest.mark.parametrize("placement", WIRINGS)
def test_a_wiring_is_that_of_its_description(placement: NormPlacement) -> None:
    wiring = wiring_of(placement)
    assert (wiring.formula, wiring.branch, wiring.after_sum) == EXPECTED[placement]


@pytest.mark.parametrize("placement", WIRINGS)
def test_the_formula_computes_what_the_model_computes(placement: NormPlacement) -> None:
    steps: dict[str, Any] = {
        "sublayer": lambda value: 3 * value + 1,
        "norm": lambda value: value - 7,
        "dropout": lambda value: value * 0.5,
    }
    computed = getattr(layers, placement)(5.0, steps["sublayer"], steps["norm"], steps["dropout"])
    assert eval(wiring_of(placement).formula, steps | {"x": 5.0}) == computed


def test_a_sum_of_other_values_is_not_drawn_wrong() -> None:
    with pytest.raises(ValueError, match="not the sum of x and a branch"):
        _ = Traced("x").after("norm") + Traced("x")


@pytest.mark.parametrize("number", range(3))
def test_the_boxes_of_a_panel_stand_in_the_order_of_the_wiring(number: int) -> None:
    placement = WIRINGS[number]
    texts = draw_picture("residuals").get_axes()[0].texts
    [title] = [text for text in texts if text.get_text() == placement]
    middle = title.get_position()[0]
    names = {"f: the sub-layer": "sublayer", "norm": "norm", "dropout": "dropout", "+": "+"}
    column = [
        (text.get_position()[1], names[text.get_text()])
        for text in texts
        if text.get_position()[0] == middle and text.get_text() in names
    ]
    _, branch, after_sum = EXPECTED[placement]
    assert [name for _, name in sorted(column)] == [*branch, "+", *after_sum]


def test_the_wiring_of_the_config_is_marked() -> None:
    for placement in WIRINGS:
        figure = draw_picture("residuals", overrides=[f"model.norm_placement={placement}"])
        texts = {text.get_text(): text.get_position() for text in figure.get_axes()[0].texts}
        assert texts["norm_placement of wmt14-en-de-base"][0] == texts[placement][0]
