"""The twins for training on a CPU equal their plain forms, in results and gradients."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration import losses
from transformer_cli.acceleration.cpu_training import (
    AttentionOnCpu,
    DropoutOnCpu,
    Mask,
    SsruOnCpu,
    added_mask,
    attend_on_cpu,
    project_on_cpu,
)
from transformer_cli.acceleration.losses import MULTIPLE, likelihood_loss_on_cpu, parts
from transformer_cli.config import ModelConfig
from transformer_cli.config.schema import SmoothedOver
from transformer_cli.model.layers import (
    SSRU,
    MultiHeadAttention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from transformer_cli.model.loss import SmoothedLabels, likelihood_loss


def gradients_of(result: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    torch.manual_seed(7)
    return torch.autograd.grad(result, inputs, torch.randn(result.shape).to(result.dtype))


def heads(num_positions: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """(2, 3, positions, 4), which do not lie side by side in memory."""
    return torch.randn(2, num_positions, 12, dtype=dtype).unflatten(-1, (3, 4)).transpose(1, 2)


MASKS = {
    "none": None,
    "causal": causal_mask(5),
    "padding": padding_mask(torch.arange(5) < torch.tensor([[5], [2]])),
    "nothing to read": padding_mask(torch.arange(5) < torch.tensor([[0], [2]])),
    "some": torch.rand(2, 1, 5, 5) < 0.5,
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("has_bias", [True, False])
def test_attention_is_the_plain_form(mask: Tensor | None, has_bias: bool) -> None:
    torch.manual_seed(1)
    inputs = [heads(5).requires_grad_() for _ in range(3)]
    made: Tensor | Mask | None = added_mask(mask) if has_bias and mask is not None else mask
    found = attend_on_cpu(*inputs, made, nn.Dropout(0.0))
    expected = scaled_dot_product_attention(*inputs, mask, nn.Dropout(0.0))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    for one, other in zip(gradients_of(found, *inputs), gradients_of(expected, *inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.long
def test_attention_with_dropout_has_the_gradient_of_finite_differences() -> None:
    torch.manual_seed(1)
    inputs = [heads(4).requires_grad_() for _ in range(3)]
    dropout = DropoutOnCpu(0.5)

    def attend(*inputs: Tensor) -> Tensor:
        torch.manual_seed(3)  # the same values are dropped each time
        return attend_on_cpu(*inputs, causal_mask(4), dropout)

    assert torch.autograd.gradcheck(attend, inputs)


def test_attention_drops_the_weights_that_the_plain_form_drops() -> None:
    inputs = [heads(5) for _ in range(3)]
    results = []
    for attend in (attend_on_cpu, scaled_dot_product_attention):
        torch.manual_seed(1)
        results.append(attend(*inputs, None, DropoutOnCpu(0.3)))
    torch.testing.assert_close(*results)


def test_attention_in_bfloat16_is_as_near_to_the_formula_as_the_plain_form() -> None:
    torch.manual_seed(1)
    inputs = [heads(5, torch.bfloat16).requires_grad_() for _ in range(3)]
    exact_inputs = [one.detach().double().requires_grad_() for one in inputs]
    exact = scaled_dot_product_attention(*exact_inputs, None, DropoutOnCpu(0.0))
    for attend in (attend_on_cpu, scaled_dot_product_attention):
        found = attend(*inputs, None, DropoutOnCpu(0.0))
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.double(), exact, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_an_ssru_in_bfloat16_is_as_near_to_the_formula_as_the_plain_form(length: int) -> None:
    torch.manual_seed(1)
    config = ModelConfig(d_model=16, num_heads=2)
    plain = SSRU(config)
    x = torch.randn(3, length, 16)
    exact = copy.deepcopy(plain).double()(x.double())
    twin = copy.deepcopy(plain)
    twin.__class__ = SsruOnCpu
    for one in (plain, twin):
        with torch.autocast("cpu", torch.bfloat16):
            found = one(x)
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.double(), exact, rtol=0.03, atol=0.03)
        gradients_of(found, *one.parameters())


@pytest.mark.parametrize(("num_queries", "num_keys"), [(3, 0), (0, 3), (0, 0)])
def test_attention_without_positions_is_the_plain_form(num_queries: int, num_keys: int) -> None:
    inputs = [heads(num).requires_grad_() for num in (num_queries, num_keys, num_keys)]
    found, expected = (
        attend(*inputs, None, DropoutOnCpu(0.0)) for attend in (attend_on_cpu, scaled_dot_product_attention)
    )
    assert torch.equal(found, expected)
    gradients = torch.autograd.grad(found.sum(), inputs)
    assert [one.shape for one in gradients] == [one.shape for one in inputs]


def test_joined_heads_are_a_view() -> None:
    found = attend_on_cpu(*(heads(5) for _ in range(3)), None, DropoutOnCpu(0.0))
    joined = found.transpose(1, 2).flatten(2)
    assert joined.untyped_storage().data_ptr() == found.untyped_storage().data_ptr()


@pytest.mark.parametrize("has_bias", [True, False])
def test_projections_are_linear_layers(has_bias: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    layers = [nn.Linear(4, width, bias=has_bias).double() for width in (5, 2)]
    parameters = [x, *(p for layer in layers for p in layer.parameters())]
    found = torch.cat(project_on_cpu(x, tuple(layers)), dim=-1)
    expected = torch.cat([F.linear(x, one.weight, one.bias) for one in layers], dim=-1)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-14)
    for one, other in zip(gradients_of(found, *parameters), gradients_of(expected, *parameters), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_projections_under_autocast_equal_linear_layers_under_autocast() -> None:
    torch.manual_seed(1)
    x, layer = torch.randn(6, 16, requires_grad=True), nn.Linear(16, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (found,), expected = project_on_cpu(x, (layer,)), layer(x)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, expected)
    inputs = x, layer.weight, layer.bias
    for one, other in zip(gradients_of(found, *inputs), gradients_of(expected, *inputs), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)


def test_the_plain_norm_leaves_the_residual_stream_in_bfloat16() -> None:
    """So it needs no twin. If autocast widens it one day, each bfloat16 run on a CPU computes something else."""
    x = torch.randn(2, 5, 16).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert nn.LayerNorm(16)(x).dtype == torch.bfloat16


def test_a_frozen_layer_gets_no_gradient_and_passes_one_on() -> None:
    x, layer = torch.randn(2, 4, requires_grad=True), nn.Linear(4, 3)
    layer.weight.requires_grad_(False)
    (output,) = project_on_cpu(x, (layer,))
    output.sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(2, 4))
    torch.testing.assert_close(layer.bias.grad, torch.full((3,), 2.0))


def test_evaluation_is_the_plain_form_bit_for_bit() -> None:
    torch.manual_seed(1)
    plain = MultiHeadAttention(ModelConfig(d_model=12, num_heads=3)).eval()
    twin = copy.deepcopy(plain)
    twin.__class__ = AttentionOnCpu
    x, visible = torch.randn(2, 5, 12), torch.rand(2, 1, 5, 5) < 0.5
    with torch.no_grad():
        for mask in (visible, added_mask(visible)):
            assert torch.equal(twin(x, x, mask), plain(x, x, visible))


@pytest.mark.parametrize("settings", [{}, {"num_kv_heads": 1, "qk_norm": True}], ids=str)
def test_a_whole_attention_layer_is_its_plain_form(settings: dict[str, object]) -> None:
    torch.manual_seed(1)
    layer = MultiHeadAttention(ModelConfig(d_model=12, num_heads=3, **settings)).double()
    twin = copy.deepcopy(layer)
    twin.__class__ = AttentionOnCpu
    x = torch.randn(2, 5, 12, dtype=torch.float64, requires_grad=True)
    context = torch.randn(2, 4, 12, dtype=torch.float64, requires_grad=True)
    for other in (x, context):
        found, expected = twin(x, other, None), layer(x, other, None)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
        for one, wanted in zip(
            gradients_of(found, x, other, *twin.parameters()),
            gradients_of(expected, x, other, *layer.parameters()),
            strict=True,
        ):
            torch.testing.assert_close(one, wanted, rtol=1e-11, atol=1e-12)


PAD_ID = 1


def target_ids_with_padding(num_sentences: int, num_positions: int) -> Tensor:
    lengths = torch.arange(num_sentences).unsqueeze(-1) % (num_positions + 1)
    ids = torch.randint(2, 9, (num_sentences, num_positions))
    return ids.where(torch.arange(num_positions) < lengths, PAD_ID)


def labels(epsilon: float = 0.1, smoothed_over: SmoothedOver = "vocabulary") -> SmoothedLabels:
    return SmoothedLabels.of(9, PAD_ID, epsilon, smoothed_over)


@pytest.mark.parametrize("smoothed_over", ["vocabulary", "others"])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("num_sentences", [3, 40])  # fewer and more positions than MULTIPLE
def test_the_output_layer_with_its_loss_is_the_loss_of_its_logits(
    num_sentences: int, has_bias: bool, smoothed_over: SmoothedOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr(losses, "MAX_PER_THREAD", 63)  # several parts
    target_ids = target_ids_with_padding(num_sentences, 4)
    assert len(list(parts(torch.empty(target_ids.numel(), 9)))) > 1
    layer = nn.Linear(5, 9, bias=has_bias).double()
    x = torch.randn(num_sentences, 4, 5, dtype=torch.float64, requires_grad=True)
    found, expected = (
        loss(layer, x, target_ids, labels(smoothed_over=smoothed_over))
        for loss in (likelihood_loss_on_cpu, likelihood_loss)
    )
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)
    assert not found.negative_log_likelihood.requires_grad
    inputs = x, *layer.parameters()
    for one, other in zip(
        torch.autograd.grad(found.objective / 3, inputs),
        torch.autograd.grad(expected.objective / 3, inputs),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_the_output_layer_with_its_loss_is_as_near_to_the_formula_in_bfloat16() -> None:
    torch.manual_seed(1)
    given = target_ids_with_padding(20, 6), labels()
    x, layer = torch.randn(20, 6, 16, requires_grad=True), nn.Linear(16, 9)
    exact = likelihood_loss(layer.double(), x.double(), *given)
    expected = torch.autograd.grad(exact.objective, (x, layer.weight))
    layer.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = likelihood_loss_on_cpu(layer, x, *given)
    assert found.objective.dtype == torch.float32
    torch.testing.assert_close(found.objective.double(), exact.objective, rtol=1e-3, atol=0)
    for one, wanted in zip(torch.autograd.grad(found.objective, (x, layer.weight)), expected, strict=True):
        torch.testing.assert_close(one.double(), wanted.double(), rtol=0.02, atol=0.02)


def test_logits_of_padding_are_computed_only_up_to_a_multiple(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    num_rows = []
    linear = F.linear

    def count(rows: Tensor, *others: Tensor) -> Tensor:
        num_rows.append(len(rows))
        return linear(rows, *others)

    monkeypatch.setattr(F, "linear", count)
    target_ids = torch.full((10, 40), PAD_ID)
    target_ids[:, :7] = 2  # 70 real positions of 400
    likelihood_loss_on_cpu(nn.Linear(5, 9), torch.randn(10, 40, 5), target_ids, labels())
    assert num_rows == [2 * MULTIPLE]


def test_a_batch_of_padding_has_no_loss_and_no_gradient() -> None:
    x, layer = torch.randn(2, 3, 5, requires_grad=True), nn.Linear(5, 9)
    sums = likelihood_loss_on_cpu(layer, x, torch.full((2, 3), PAD_ID), labels())
    sums.objective.backward()
    assert sums.objective == sums.negative_log_likelihood == 0.0
    for one in (x, *layer.parameters()):
        assert torch.equal(one.grad, torch.zeros_like(one))


def test_a_frozen_output_layer_gets_no_gradient() -> None:
    x, layer = torch.randn(2, 3, 5, requires_grad=True), nn.Linear(5, 9)
    layer.weight.requires_grad_(False)
    likelihood_loss_on_cpu(layer, x, torch.full((2, 3), 2), labels()).objective.backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
    assert x.grad is not None
