import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import length_limits


@pytest.mark.parametrize(
    ("settings", "most", "limits"),
    [
        ({}, None, (1, 40)),  # twice the source, plus 20
        ({}, 30, (1, 30)),
        ({"max_length": 7}, None, (1, 7)),
        ({"max_length": 7}, 5, (1, 5)),
        ({"max_length": 99}, None, (1, 99)),
        ({"max_length_ratio": 1.5}, None, (1, 15)),
        ({"max_length_ratio": 1.59}, None, (1, 15)),
        ({"max_length_ratio": 0.01}, None, (1, 1)),
        ({"max_length_ratio": 9.0}, None, (1, 90)),
        ({"max_length": 12, "max_length_ratio": 1.5}, None, (1, 12)),
        ({"max_length": 20, "max_length_ratio": 1.5}, None, (1, 15)),
        ({"min_length": 5}, None, (5, 40)),
        ({"min_length": 50}, None, (40, 40)),
        ({"min_length_ratio": 0.5}, None, (5, 40)),
        ({"min_length_ratio": 0.51}, None, (6, 40)),
        ({"min_length": 5, "min_length_ratio": 0.8}, None, (8, 40)),
        ({"min_length": 9, "min_length_ratio": 0.8}, None, (9, 40)),
        ({"min_length_ratio": 0.5}, 3, (3, 3)),
    ],
)
def test_the_limits_of_a_source_of_ten_tokens(
    settings: dict[str, float], most: int | None, limits: tuple[int, int]
) -> None:
    assert length_limits(10, DecodingConfig.model_validate(settings), most=most) == limits


def test_a_forced_prefix_is_not_counted() -> None:
    options = DecodingConfig(max_length=7, min_length=5)
    assert length_limits(10, options, prefix_length=4) == (9, 11)
    assert length_limits(10, options, prefix_length=4, most=10) == (9, 10)


@given(
    source_length=st.integers(1, 500),
    max_ratio=st.floats(0.01, 10.0),
    share=st.floats(0.01, 1.0),
    most=st.integers(1, 600) | st.none(),
)
def test_the_smallest_number_is_never_above_the_largest(
    source_length: int, max_ratio: float, share: float, most: int | None
) -> None:
    options = DecodingConfig(max_length_ratio=max_ratio, min_length_ratio=max_ratio * share)
    limits = length_limits(source_length, options, most=most)
    assert 1 <= limits.smallest <= limits.largest <= (most or 5000)


@pytest.mark.parametrize(
    "settings",
    [{"min_length": 8, "max_length": 7}, {"min_length_ratio": 1.2, "max_length_ratio": 1.1}],
)
def test_limits_that_leave_no_room_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="is above max_length"):
        DecodingConfig.model_validate(settings)
