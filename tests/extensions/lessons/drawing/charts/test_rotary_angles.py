"""The picture of rotary positions: angles from the formula, and products that depend on distances only."""

import numpy as np
import pytest

from transformer_cli.extensions.lessons.drawing.charts.rotary_angles import NUM_POSITIONS, turned
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture

WIDTH = 64


def test_position_1_turns_the_first_pair_of_columns_by_1_radian() -> None:
    np.testing.assert_allclose(turned(WIDTH, 2)[1, :2], [np.cos(1.0), np.sin(1.0)])


def test_an_angle_is_that_of_the_formula() -> None:
    angles = draw_picture("rotary").get_axes()[2]
    for line in angles.get_lines():
        column = int(str(line.get_label()).split(",")[0])
        expected = np.arange(NUM_POSITIONS) * 10_000 ** (-column / WIDTH)
        np.testing.assert_allclose(np.asarray(line.get_ydata()), expected)


def test_vectors_keep_their_length() -> None:
    for circle in draw_picture("rotary").get_axes()[:2]:
        ends = np.array([line.get_xydata()[-1] for line in circle.get_lines()])  # type: ignore[index]
        np.testing.assert_allclose(np.hypot(*ends.T), 1.0)


def test_products_of_query_and_key_depend_on_their_distance_only() -> None:
    first, *others = (
        np.asarray(line.get_ydata()) for line in draw_picture("rotary").get_axes()[3].get_lines()
    )
    assert first[0] == pytest.approx(1.0)
    assert np.ptp(first) > 0.5
    for other in others:
        np.testing.assert_allclose(other, first)
