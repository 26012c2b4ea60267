"""Packed arrays: every number comes back to within half a step."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.extensions.lessons.explaining.explanation import Numbers, unpacked_numbers

shapes = st.lists(st.integers(0, 5), min_size=1, max_size=4)


@given(shapes, st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_numbers_come_back_to_within_half_a_step(shape: list[int], seed: int, high: float) -> None:
    values = np.random.default_rng(seed).uniform(-high, high, shape)
    packed = Numbers(values, -high, high).to_json()
    back = unpacked_numbers(json.loads(json.dumps(packed)))
    assert back.shape == values.shape
    np.testing.assert_allclose(back, values, atol=high / 255 * (1 + 1e-9), rtol=0)


def test_zero_and_one_come_back_exactly() -> None:
    values = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert unpacked_numbers(Numbers(values).to_json()).tolist() == values.tolist()


def test_a_number_beyond_the_bounds_is_packed_as_the_bound() -> None:
    assert unpacked_numbers(Numbers(np.array([1.0000001, -1e-9])).to_json()).tolist() == [1.0, 0.0]


def test_own_bounds_are_the_same_distance_from_zero() -> None:
    packed = Numbers.of(np.array([-0.5, 2.0])).to_json()
    assert (packed["low"], packed["high"]) == (-2.0, 2.0)
    assert Numbers.of(np.zeros((0, 3))).to_json()["high"] == 1.0
