"""Positional encodings equal their formulas; rotation keeps lengths."""

import math

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import (
    LearnedPositions,
    SinusoidalPositions,
    build_positions,
    rotate,
    rotation_at,
)


@pytest.mark.parametrize("in_halves", [False, True])
@pytest.mark.parametrize("start", [0, 3, 600])
def test_sinusoids_are_those_of_the_paper_at_any_position(in_halves: bool, start: int) -> None:
    added = SinusoidalPositions(in_halves=in_halves)(torch.zeros(1, 4, 6, dtype=torch.float64), start)
    for t in range(4):
        angles = [(start + t) / 10_000 ** (2 * i / 6) for i in range(3)]
        sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
        pairs = [number for pair in zip(sines, cosines, strict=True) for number in pair]
        assert added[0, t].tolist() == pytest.approx(sines + cosines if in_halves else pairs, abs=1e-9)


def test_the_longest_wavelength_of_marian_is_10000_turns() -> None:
    module = build_positions(ModelConfig(d_model=6, num_heads=2, positions="sinusoidal_marian"))
    added = module(torch.zeros(1, 4, 6, dtype=torch.float64), 7)
    for t in range(4):
        angles = [(7 + t) * frequency for frequency in (1.0, 1e-2, 1e-4)]
        expected = [*map(math.sin, angles), *map(math.cos, angles)]
        assert added[0, t].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "positions",
    ["sinusoidal", "sinusoidal_halves", "sinusoidal_marian", "learned", "none", "rotary"],
)
def test_a_later_start_continues_where_the_first_positions_end(positions: str) -> None:
    module = build_positions(ModelConfig(d_model=8, num_heads=2, positions=positions, max_length=10))
    x = torch.randn(2, 6, 8)
    parts = torch.cat([module(x[:, :2]), module(x[:, 2:], 2)], dim=1)
    assert torch.equal(parts, module(x))


def test_learned_positions_have_a_row_for_each_position() -> None:
    positions = LearnedPositions(5, 3)
    assert torch.equal(positions(torch.zeros(1, 2, 3), 3)[0], positions.weight[3:5])


def test_products_of_rotated_vectors_depend_on_their_distance_only() -> None:
    torch.manual_seed(1)
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)

    def product(query_position: int, key_position: int) -> float:
        turned = (
            rotate(x, rotation_at(position, 1, 8, x)) for x, position in ((query, query_position), (key, key_position))
        )
        return math.prod(turned).sum().item()

    assert product(7, 4) == pytest.approx(product(1003, 1000), abs=1e-9)
    assert product(7, 4) != pytest.approx(product(7, 5), abs=1e-3)


def test_rotation_keeps_lengths_and_the_first_position() -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    turned = rotate(x, rotation_at(0, 5, 8, x))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, :, 0], x[:, :, 0])
    assert rotate(x.bfloat16(), rotation_at(0, 5, 8, x)).dtype == torch.bfloat16


def test_positions_first_seen_in_inference_mode_serve_training_too() -> None:
    width = 22  # no other test uses this width, so the cache has no entry for it
    with torch.inference_mode():
        rotation = rotation_at(0, 3, width, torch.zeros(1))
    x = torch.randn(1, 1, 3, width, requires_grad=True)
    rotate(x, rotation).sum().backward()
    assert x.grad is not None
