"""The prepared Transformer computes what the modules compute, in every order of rows."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transformer_cli.acceleration import biased_attention, prepared_transformer
from transformer_cli.acceleration.native_kernels import SWITCH, find_kernels
from transformer_cli.acceleration.prepared_transformer import (
    PreparedTransformer,
    prepare_linear,
    prepare_quantised,
)
from transformer_cli.config import ModelConfig
from transformer_cli.model.transformer import Transformer

SIZES: dict[str, Any] = {"d_model": 16, "num_heads": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2}
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "post-norm": {"norm_placement": "post"},
    "residual of normed": {"norm_placement": "residual_of_normed"},
    "rotary, gated, grouped": {"positions": "rotary", "activation": "swiglu", "num_kv_heads": 2},
    "normed queries": {"qk_norm": True, "norm": "rmsnorm", "attention_bias": False},
    "one head of keys": {"num_kv_heads": 1, "positions": "learned", "head_dim": 6},
    "SSRU": {"decoder_layer": "ssru"},
    "no biases": {"feed_forward_bias": False, "attention_bias": False, "output_bias": False},
}
# Rows of each step: from one for each of three sentences to any order, with repeated and dropped rows.
BEAM = [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 4], [0, 0, 5, 5], [3, 2, 1, 0], [1, 1, 2, 3]]
GREEDY = [[0, 1, 2], [0, 2], [1]]
IRREGULAR = [[0, 0, 1, 2, 2], [4, 1, 0, 0, 2, 3], [5, 0, 2], [0, 1, 2, 2]]
RETURNING = [[0, 0, 1, 1, 2, 2], [0, 2, 1, 3, 4, 5]]


@pytest.fixture(params=["kernels", "PyTorch"], autouse=True)
def with_and_without_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs twice: with the kernels in C, if there are any, and without them."""
    if request.param == "PyTorch":
        monkeypatch.setenv(SWITCH, "0")
    elif find_kernels() is None:
        pytest.skip("no compiled kernels for this processor")


def model_of(changes: dict[str, Any]) -> Transformer:
    torch.manual_seed(3)
    model = Transformer(ModelConfig.model_validate({**SIZES, **changes}), 11, 13).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def scores_of(model: Any, orders: list[list[int]], *, has_padding: bool = True) -> list[Tensor]:
    """The scores of each step; between two steps the rows move."""
    generator = torch.Generator().manual_seed(1)
    source_ids = torch.randint(4, 11, (3, 5), generator=generator)
    is_real = torch.arange(5) < torch.tensor([[5], [2], [4]])
    mask = is_real if has_padding else None
    with torch.inference_mode():
        state = model.start_decoding(model.encode(source_ids, mask), mask)
        ids, scores, size = torch.full((3,), 2), [], 3
        for rows in [None, *orders, *[None] * 6]:
            if rows is not None:
                state.select(torch.tensor(rows), keeps_sources=rows == [*range(size)])
                size = len(rows)
                ids = torch.randint(4, 13, (size,), generator=generator)
            scores.append(state.advance(ids))
    return scores


@pytest.mark.parametrize("has_relu", [False, True])
@pytest.mark.parametrize("small_weight", [0, 2**17])
def test_a_linear_layer_of_any_size_and_with_any_number_of_rows_is_that_of_pytorch(
    small_weight: int, has_relu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small products are left to BLAS, and large ones to oneDNN with weights in a layout of its own."""
    monkeypatch.setattr(prepared_transformer, "_SMALL_WEIGHT", small_weight)
    monkeypatch.setattr(prepared_transformer, "_SMALL_PRODUCT", 40 * 24 * 3)
    layers = [nn.Linear(24, 16), nn.Linear(24, 24, bias=False)]
    product = prepare_linear(layers, torch.float32, scales=[0.5, 1.0], has_relu=has_relu)
    with torch.inference_mode():
        for num_rows in (1, 3, 4, 70):
            x = torch.randn(num_rows, 24)
            expected = torch.cat([0.5 * layers[0](x), layers[1](x)], dim=1)
            expected = expected.relu() if has_relu else expected
            torch.testing.assert_close(product(x), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.long
def test_scores_are_those_of_the_modules_with_weights_in_the_layout_of_onednn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prepared_transformer, "_SMALL_WEIGHT", 0)
    model = model_of({"decoder_layer": "ssru"})
    expected = scores_of(model, BEAM)
    found = scores_of(PreparedTransformer(model, torch.float32), BEAM)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "orders", [GREEDY, BEAM, IRREGULAR, RETURNING], ids=["greedy", "beam", "irregular", "returning"]
)
@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_scores_are_those_of_the_modules(
    changes: dict[str, Any], orders: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that caches grow.
    monkeypatch.setattr(biased_attention, "_ROOM_IN_CACHE", 3)
    monkeypatch.setattr(prepared_transformer, "_ROOM_IN_LISTS", 3)
    model = model_of({**changes, "max_length": 100})
    prepared = PreparedTransformer(model, torch.float32)
    for has_padding in (True, False):
        expected = scores_of(model, orders, has_padding=has_padding)
        found = scores_of(prepared, orders, has_padding=has_padding)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


def test_rows_that_move_within_their_sentence_need_not_be_said_twice() -> None:
    model = model_of({})
    prepared = PreparedTransformer(model, torch.float32)
    within = torch.tensor([1, 1, 2, 3, 5, 4])
    with torch.inference_mode():
        memory = model.encode(torch.randint(4, 11, (3, 5)), None)
        states = [prepared.start_decoding(memory, None) for _ in range(2)]
        for keeps_sources, state in zip((True, False), states, strict=True):
            state.advance(torch.full((3,), 2))
            state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
            state.advance(torch.arange(4, 10))
            state.select(within, keeps_sources=keeps_sources)
        first, second = (state.advance(torch.arange(4, 10)) for state in states)
    assert torch.equal(first, second)


def test_rows_of_a_sentence_that_are_apart_may_move_too() -> None:
    """Diverse beam search has the rows of each group side by side, so those of a sentence are apart."""
    model = model_of({})
    prepared = PreparedTransformer(model, torch.float32)
    with torch.inference_mode():
        memory = model.encode(torch.randint(4, 11, (2, 5)), None)
        states = [one.start_decoding(memory, None) for one in (model, prepared)]
        for state in states:
            state.advance(torch.full((2,), 2))
            state.select(torch.tensor([0, 0, 1, 1, 0, 0, 1, 1]))
            state.advance(torch.arange(4, 12))
            state.select(torch.tensor([1, 0, 2, 2, 4, 4, 7, 6]), keeps_sources=True)
        expected, found = (state.advance(torch.arange(4, 12)) for state in states)
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("decoder_layer", ["attention", "ssru"])
def test_in_bfloat16_only_products_are_rounded(decoder_layer: str) -> None:
    model = model_of({"decoder_layer": decoder_layer})
    prepared = PreparedTransformer(model, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = scores_of(model, BEAM)
    for ours, theirs in zip(scores_of(prepared, BEAM), expected, strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, atol=0.1, rtol=0.0)


@pytest.mark.parametrize("decoder_layer", ["attention", "ssru"])
def test_quantised_scores_are_close_and_do_not_depend_on_other_rows(decoder_layer: str) -> None:
    model = model_of({"d_model": 64, "d_ff": 128, "decoder_layer": decoder_layer})
    exact = PreparedTransformer(model, torch.float32)
    quantised = PreparedTransformer(model, torch.float32, is_quantised=True)
    ids = torch.randint(4, 11, (6, 5))
    scale = torch.tensor([1.0, 9.0, 1.0, 0.1, 30.0, 1.0])[:, None, None]
    first = torch.full((6,), 2)
    with torch.inference_mode():
        memory = exact.encode(ids, None)
        found = quantised.start_decoding(memory, None).advance(first)
        expected = exact.start_decoding(memory, None).advance(first)
        assert (found - expected).abs().max() < 0.3
        assert not torch.equal(found, expected)
        assert (found.argmax(-1) == expected.argmax(-1)).float().mean() > 0.6
        among_others = quantised.start_decoding(memory * scale, None).advance(first)
        for row in (0, 2, 5):  # those with the scale 1
            alone = quantised.start_decoding(memory[row : row + 1], None).advance(first[:1])
            torch.testing.assert_close(among_others[row], alone[0], atol=1e-5, rtol=1e-5)


def test_a_quantised_layer_is_within_half_a_step_of_each_scale() -> None:
    layers = [nn.Linear(32, 7), nn.Linear(32, 5)]
    x = torch.randn(9, 32) * torch.logspace(-3, 3, 9)[:, None]
    x[4] = 0.0
    with torch.inference_mode():
        found = prepare_quantised(layers, scales=[0.25, 1.0])(x)
        expected = torch.cat([0.25 * layers[0](x), layers[1](x)], dim=1)
    rows = x.abs().amax(1, keepdim=True) / 254  # half a step
    weights = torch.cat([0.25 * layers[0].weight, layers[1].weight]).detach()
    outputs = weights.abs().amax(1) / 254
    bound = rows * weights.abs().sum(1) + outputs * x.abs().sum(1, keepdim=True) + 32 * rows * outputs
    assert bool(((found - expected).abs() <= bound * 1.001 + 1e-6).all())
    torch.testing.assert_close(found[4], torch.cat([0.25 * layers[0].bias, layers[1].bias]).detach())
