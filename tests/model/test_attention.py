"""Attention one position at a time, and its fused twin."""

import math

import pytest
import torch
from torch import Tensor, nn

from transformer_cli.acceleration.accelerate import attend_fused
from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    rotation_at,
    scaled_dot_product_attention,
)

from .samples import SMALL


def heads(num_heads: int, num_positions: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(2, num_heads, num_positions, 4, dtype=dtype, requires_grad=True)


def partly_visible(device: str = "cpu") -> Tensor:
    """A mask (2, 1, 3, 5): the first query may see no position, the last query all positions."""
    visible = torch.rand(2, 1, 3, 5) < 0.5
    visible[:, :, 0] = False
    visible[:, :, 2] = True
    return visible.to(device)


def test_weights_are_a_softmax_over_what_is_visible() -> None:
    torch.manual_seed(1)
    queries, keys, mask = heads(2, 3), heads(2, 5), partly_visible()
    weights = attention_weights(queries, keys, mask)
    for b, h, q in torch.cartesian_prod(torch.arange(2), torch.arange(2), torch.arange(3)).tolist():
        scores = [(queries[b, h, q] @ keys[b, h, c]).item() / math.sqrt(4) for c in range(5)]
        powers = [math.exp(s) if mask[b, 0, q, c] else 0.0 for c, s in enumerate(scores)]
        total = sum(powers) or 1.0
        expected = torch.tensor([power / total for power in powers], dtype=torch.float64)
        torch.testing.assert_close(weights[b, h, q], expected)


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, attend_fused])
def test_a_position_whose_mask_is_all_false_returns_zeros_and_finite_gradients(attend) -> None:
    torch.manual_seed(1)
    queries, keys, values = heads(2, 3), heads(2, 5), heads(2, 5)
    gathered = attend(queries, keys, values, partly_visible(), nn.Dropout(0.0))
    assert torch.equal(gathered[:, :, 0], torch.zeros(2, 2, 4, dtype=torch.float64))
    gathered.square().sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (queries, keys, values))
    assert torch.equal(queries.grad[:, :, 0], torch.zeros(2, 2, 4, dtype=torch.float64))


@pytest.mark.parametrize("is_masked", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.bfloat16, 0.05)])
def test_the_fused_form_equals_the_explicit_one(is_masked: bool, dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(1)
    mask = partly_visible() if is_masked else None
    inputs = heads(2, 3, dtype), heads(2, 5, dtype), heads(2, 5, dtype)
    outputs, gradients = [], []
    for attend in (scaled_dot_product_attention, attend_fused):
        output = attend(*inputs, mask, nn.Dropout(0.0))
        outputs.append(output)
        gradients.append(torch.autograd.grad(output.square().sum(), inputs))
    torch.testing.assert_close(outputs[0], outputs[1], rtol=0, atol=tolerance)
    for explicit, fused in zip(*gradients, strict=True):
        torch.testing.assert_close(explicit, fused, rtol=0, atol=10 * tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_an_accelerator_the_fused_form_equals_the_explicit_one_too(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    mask = partly_visible("cuda")
    inputs = [heads(2, n, dtype).detach().cuda().requires_grad_() for n in (3, 5, 5)]
    explicit, fused = (
        attend(*inputs, mask, nn.Dropout(0.0)) for attend in (scaled_dot_product_attention, attend_fused)
    )
    torch.testing.assert_close(explicit, fused, rtol=0, atol=0.05)
    for gradient in torch.autograd.grad(fused.square().sum(), inputs):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_hidden_position_weighs_nothing_however_high_it_scores(dtype: torch.dtype) -> None:
    queries = torch.full((1, 1, 1, 4), 60.0, dtype=dtype)
    keys = torch.tensor([60.0, -60.0], dtype=dtype)[None, None, :, None].expand(1, 1, 2, 4)
    values = torch.tensor([1.0, 3.0], dtype=dtype)[None, None, :, None].expand(1, 1, 2, 4)
    mask = torch.tensor([[False, True]])
    for attend in (scaled_dot_product_attention, attend_fused):
        gathered = attend(queries, keys, values, mask, nn.Dropout(0.0))
        torch.testing.assert_close(gathered, torch.full_like(gathered, 3.0))


def test_grouped_queries_equal_full_heads_with_repeated_weights() -> None:
    torch.manual_seed(1)
    settings = {**SMALL, "num_heads": 4}
    grouped = MultiHeadAttention(ModelConfig(**settings, num_kv_heads=2)).double()
    full = MultiHeadAttention(ModelConfig(**settings)).double()
    state = grouped.state_dict()
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        state[name] = state[name].unflatten(0, (2, 3)).repeat_interleave(2, 0).flatten(0, 1)
    full.load_state_dict(state)
    x, mask = torch.randn(2, 5, 12, dtype=torch.float64), causal_mask(5)
    torch.testing.assert_close(grouped(x, x, mask), full(x, x, mask))


def test_weights_of_bfloat16_heads_are_computed_in_float32() -> None:
    torch.manual_seed(1)
    queries, keys = heads(2, 3, torch.bfloat16), heads(2, 50, torch.bfloat16)
    weights = attention_weights(queries, keys, torch.ones(3, 50, dtype=torch.bool))
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 3), rtol=0, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"num_kv_heads": 1, "qk_norm": True}])
def test_the_weights_for_pictures_are_those_that_gather(settings: dict[str, object]) -> None:
    torch.manual_seed(1)
    attention = MultiHeadAttention(ModelConfig(**{**SMALL, **settings}, attention_dropout=0.5)).double()
    x, context = torch.randn(2, 3, 12).double(), torch.randn(2, 5, 12).double()
    rotation = rotation_at(0, 5, 6, x)
    inputs = (
        x,
        context,
        torch.rand(2, 1, 3, 5) < 0.7,
        rotation._replace(sines=rotation.sines[:1], cosines=rotation.cosines[:1]),
    )
    weights = attention.weights(*inputs)
    assert weights.shape == (2, 2, 3, 5)
    values = attention.keys_and_values(context)[1]
    gathered = weights @ values.repeat_interleave(2 // values.size(1), dim=1)
    expected = attention.output(gathered.transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention.eval()(*inputs), expected)


@pytest.mark.long
def test_dropout_acts_on_the_weights() -> None:
    torch.manual_seed(1)
    queries, keys, values = heads(2, 3), heads(2, 5), heads(2, 5)
    for attend in (scaled_dot_product_attention, attend_fused):
        dropout = nn.Dropout(0.5)
        kept = attend(queries, keys, values, None, dropout.eval())
        assert torch.equal(kept, attend(queries, keys, values, None, dropout.eval()))
        draws = torch.stack([attend(queries, keys, values, None, dropout.train()) for _ in range(1000)])
        assert not torch.equal(draws[0], draws[1])
        torch.testing.assert_close(draws.mean(0), kept, rtol=0, atol=0.2)
