"""Pictures of positions: the waves and the angles are those of the model."""

import numpy as np
import pytest

from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.extensions.lessons.drawing.positions import (
    CLOCKS,
    NUM_DISTANCES,
    columns_of_hands,
    encodings,
    turned,
)

D_MODEL = 128


def test_at_position_0_every_sine_is_0_and_every_cosine_1() -> None:
    image = np.asarray(draw_picture("sinusoids").get_axes()[0].get_images()[0].get_array())
    assert image.shape == (100, D_MODEL)
    np.testing.assert_array_equal(image[0, 0::2], 0.0)
    np.testing.assert_array_equal(image[0, 1::2], 1.0)


@pytest.mark.parametrize("column", [0, 1, 16, 17, 126, 127])
def test_a_column_is_the_wave_of_the_paper(column: int) -> None:
    positions = np.arange(100)
    angles = positions / 10_000 ** (column // 2 * 2 / D_MODEL)
    expected = np.cos(angles) if column % 2 else np.sin(angles)
    np.testing.assert_allclose(encodings(D_MODEL, in_halves=False)[:, column], expected, atol=1e-12)


def test_halves_have_the_same_waves_in_another_order() -> None:
    interleaved, halves = (encodings(D_MODEL, in_halves=each) for each in (False, True))
    np.testing.assert_array_equal(halves[:, :64], interleaved[:, 0::2])
    np.testing.assert_array_equal(halves[:, 64:], interleaved[:, 1::2])


def test_a_curve_is_the_column_that_its_label_names() -> None:
    values = encodings(D_MODEL, in_halves=False)
    curves = draw_picture("sinusoids").get_axes()[3].get_lines()
    assert [line.get_label() for line in curves] == ["column 16", "column 32", "column 48"]
    for line in curves:
        column = int(str(line.get_label()).removeprefix("column "))
        np.testing.assert_array_equal(line.get_ydata(), values[:, column])


def test_a_hand_of_a_clock_turns_by_the_angle_of_its_columns() -> None:
    clocks = draw_picture("sinusoids").get_axes()[-len(CLOCKS) :]
    for axes, position in zip(clocks, CLOCKS, strict=True):
        assert axes.get_title() == f"position {position}"
        for line, column in zip(axes.get_lines(), columns_of_hands(D_MODEL), strict=True):
            angle = position / 10_000 ** (column / D_MODEL)  # from 12 o'clock, clockwise
            end = np.asarray(line.get_xydata())[1]
            np.testing.assert_allclose(end, [np.sin(angle), np.cos(angle)], atol=1e-12)


WIDTH = 64


def test_position_1_turns_the_first_pair_of_columns_by_1_radian() -> None:
    np.testing.assert_allclose(turned(WIDTH, 2)[1, :2], [np.cos(1.0), np.sin(1.0)])


def test_an_angle_is_that_of_the_formula() -> None:
    angles = draw_picture("rotary").get_axes()[2]
    for line in angles.get_lines():
        column = int(str(line.get_label()).split(",")[0])
        expected = np.arange(NUM_DISTANCES) * 10_000 ** (-column / WIDTH)
        np.testing.assert_allclose(np.asarray(line.get_ydata()), expected)


def test_vectors_keep_their_length() -> None:
    for circle in draw_picture("rotary").get_axes()[:2]:
        ends = np.array([line.get_xydata()[-1] for line in circle.get_lines()])  # type: ignore[index]
        np.testing.assert_allclose(np.hypot(*ends.T), 1.0)


def test_products_of_query_and_key_depend_on_their_distance_only() -> None:
    first, *others = (np.asarray(line.get_ydata()) for line in draw_picture("rotary").get_axes()[3].get_lines())
    assert first[0] == pytest.approx(1.0)
    assert np.ptp(first) > 0.5
    for other in others:
        np.testing.assert_allclose(other, first)
