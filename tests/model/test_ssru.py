"""The SSRU equals a loop written from the formula of its paper, and is the same step by step."""

import pytest
import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import SSRU, cell_states
from transformer_cli.model.transformer import Transformer

from .naive import ssru as ssru_of_the_paper
from .samples import SMALL, sample, small_model

LENGTHS = [0, 1, 2, 3, 4, 5, 8, 13, 33]


def random_ssru(dtype: torch.dtype = torch.float64) -> SSRU:
    torch.manual_seed(1)
    return SSRU(ModelConfig.model_validate(SMALL)).to(dtype)


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_outputs_and_gradients_are_those_of_the_formula(length: int) -> None:
    ssru = random_ssru()
    x = torch.randn(2, length, 12, dtype=torch.float64, requires_grad=True)
    weights = {f"one.{name}": tensor for name, tensor in ssru.named_parameters()}
    expected = torch.stack([ssru_of_the_paper(weights, "one", row) for row in x])
    found = ssru(x)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    inputs = [x, *weights.values()]
    direction = torch.randn_like(found)
    gradients = (torch.autograd.grad(one, inputs, direction) for one in (found, expected))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
def test_step_by_step_it_is_the_same(length: int) -> None:
    ssru = random_ssru()
    x = torch.randn(3, length, 12, dtype=torch.float64)
    state: Tensor | None = None
    expected = ssru(x)
    for position in range(length):
        found, state = ssru.step(x[:, position : position + 1], state)
        torch.testing.assert_close(found[:, 0], expected[:, position], rtol=1e-12, atol=1e-13)


def test_a_state_never_depends_on_later_positions() -> None:
    forget, added = (torch.rand(2, 9, 4, dtype=torch.float64) for _ in range(2))
    whole = cell_states(forget, added)
    for length in range(10):
        assert torch.equal(cell_states(forget[:, :length], added[:, :length]), whole[:, :length])


def test_a_state_is_kept_over_thousands_of_positions() -> None:
    forget = torch.ones(1, 5000, 1)
    added = torch.zeros(1, 5000, 1)
    added[0, 0] = 0.75
    assert (cell_states(forget, added) == 0.75).all()


def test_in_bfloat16_the_state_is_float32() -> None:
    ssru = random_ssru(torch.bfloat16)
    found, state = ssru.step(torch.randn(2, 1, 12, dtype=torch.bfloat16), None)
    assert (found.dtype, state.dtype) == (torch.bfloat16, torch.float32)
    assert ssru(torch.randn(2, 3, 12, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_it_stands_in_place_of_the_self_attention_of_the_decoder_alone() -> None:
    names = set(small_model(decoder_layer="ssru").state_dict())
    usual = set(small_model().state_dict())
    new = {
        f"decoder.layers.{number}.{part}"
        for number in range(2)
        for part in (
            "ssru.input.weight",
            "ssru.forget_gate.weight",
            "ssru.forget_gate.bias",
            "ssru_norm.weight",
            "ssru_norm.bias",
        )
    }
    assert names - usual == new
    assert {name.split(".", 3)[3].split(".")[0] for name in usual - names} == {
        "self_attention",
        "self_attention_norm",
    }


def test_a_layer_has_two_matrices_and_a_bias_in_place_of_four_of_each() -> None:
    sizes = [
        sum(one.numel() for one in Transformer(ModelConfig(**SMALL, decoder_layer=kind), 9, 9).parameters())
        for kind in ("attention", "ssru")
    ]
    width, num_layers = 12, 2
    assert sizes[0] - sizes[1] == num_layers * (2 * width * width + 3 * width)


def test_cached_steps_equal_uncached_ones_in_a_beam() -> None:
    torch.manual_seed(1)
    model, batch = small_model(decoder_layer="ssru"), sample()
    source_ids, source_mask = batch.source_ids, batch.source_mask
    state = model.start_decoding(model.encode(source_ids, source_mask), source_mask)
    ids = torch.empty(3, 0, dtype=torch.int64)
    for rows in ([0, 0, 2, 1, 1], [4, 0, 1], [2, 2, 0, 1], [3], [0, 0]):
        last_ids = torch.randint(9, (len(ids),))
        ids = torch.cat([ids, last_ids[:, None]], dim=1)
        expected = model(source_ids, source_mask, ids)[:, -1].log_softmax(-1)
        torch.testing.assert_close(state.advance(last_ids), expected, rtol=0, atol=1e-9)
        state.select(torch.tensor(rows))
        ids, source_ids, source_mask = ids[rows], source_ids[rows], source_mask[rows]
