"""What engines share: the settings that each of them knows, and the length penalty."""

import pytest
import torch

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Request
from transformer_cli.decoding.engine import length_penalty, unknown_settings
from transformer_cli.decoding.search.beam import length_penalties


def test_settings_with_their_defaults_are_known_and_others_are_named() -> None:
    assert unknown_settings(DecodingConfig(), ()) == []
    options = DecodingConfig(beam_size=5, num_best=2, min_length=3)
    assert unknown_settings(options, {"num_best"}) == ["beam_size", "min_length"]


@pytest.mark.parametrize(
    ("request_", "is_free"),
    [
        (Request((4, 3)), True),
        (Request(()), False),
        (Request((4, 3), prefix=(5,)), False),
        (Request((4, 3), seed=7), False),
    ],
)
def test_a_request_is_free_if_it_is_a_source_alone(request_: Request, is_free: bool) -> None:
    assert request_.is_free == is_free


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5])
def test_the_length_penalty_is_that_of_the_formula(alpha: float) -> None:
    lengths = torch.arange(500, dtype=torch.float64)
    for kind, base in (("gnmt", (5 + lengths) / 6), ("average", lengths.clamp(min=1))):
        options = DecodingConfig.model_validate({"length_normalization": kind, "length_penalty": alpha})
        assert torch.equal(length_penalties(499, options, torch.zeros(1)), (base**alpha).float())
        assert length_penalty(7, kind, alpha) == pytest.approx(float(base[7]) ** alpha)
