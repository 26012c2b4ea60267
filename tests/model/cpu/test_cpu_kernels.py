"""The kernels for training on a CPU equal their plain forms, in results and gradients."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.model.attention import (
    MultiHeadAttention,
    attend_explicitly,
    attend_on_cpu,
    attention_for,
)
from transformer_cli.model.cpu.fused_prediction import MULTIPLE
from transformer_cli.model.cpu.fused_projections import project_on_cpu
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.loss import LossSums, parts, sum_loss
from transformer_cli.model.masks import Mask, causal_mask, padding_mask
from transformer_cli.model.prediction import LossHead
from transformer_cli.model.projection import Projection, project


def gradients_of(result: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    torch.manual_seed(7)
    return torch.autograd.grad(result, inputs, torch.randn(result.shape).to(result.dtype))


def heads(num_positions: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """(2, 3, positions, 4), which do not lie side by side in memory."""
    return torch.randn(2, num_positions, 12, dtype=dtype).unflatten(-1, (3, 4)).transpose(1, 2)


MASKS = {
    "none": None,
    "causal": causal_mask(5, torch.device("cpu")),
    "padding": padding_mask(torch.arange(5) < torch.tensor([[5], [2]]), torch.ones(1)),
    "nothing to read": padding_mask(torch.arange(5) < torch.tensor([[0], [2]]), torch.ones(1)),
    "without a bias": Mask(torch.rand(2, 1, 5, 5) < 0.5),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_attention_is_the_plain_form(mask: Mask | None) -> None:
    torch.manual_seed(1)
    inputs = [heads(5).requires_grad_() for _ in range(3)]
    found, expected = (
        attend(*inputs, mask, Dropout(0.0)) for attend in (attend_on_cpu, attend_explicitly)
    )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    for one, other in zip(
        gradients_of(found, *inputs), gradients_of(expected, *inputs), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-13)


def test_attention_with_dropout_has_the_gradient_of_finite_differences() -> None:
    torch.manual_seed(1)
    inputs = [heads(4).requires_grad_() for _ in range(3)]
    dropout = Dropout(0.5)

    def attend(*inputs: Tensor) -> Tensor:
        torch.manual_seed(3)  # the same values are dropped each time
        return attend_on_cpu(*inputs, causal_mask(4, torch.device("cpu")), dropout)

    assert torch.autograd.gradcheck(attend, inputs)


def test_attention_drops_the_weights_that_the_plain_form_drops() -> None:
    inputs = [heads(5) for _ in range(3)]
    results = []
    for attend in (attend_on_cpu, attend_explicitly):
        torch.manual_seed(1)
        results.append(attend(*inputs, None, Dropout(0.3)))
    torch.testing.assert_close(*results)


def test_attention_in_bfloat16_is_as_near_to_the_formula_as_the_plain_form() -> None:
    torch.manual_seed(1)
    inputs = [heads(5, torch.bfloat16).requires_grad_() for _ in range(3)]
    exact_inputs = [one.detach().double().requires_grad_() for one in inputs]
    exact = attend_explicitly(*exact_inputs, None, Dropout(0.0))
    for attend in (attend_on_cpu, attend_explicitly):
        found = attend(*inputs, None, Dropout(0.0))
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.double(), exact, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(("num_queries", "num_keys"), [(3, 0), (0, 3), (0, 0)])
def test_attention_without_positions_is_the_plain_form(num_queries: int, num_keys: int) -> None:
    inputs = [heads(num).requires_grad_() for num in (num_queries, num_keys, num_keys)]
    found, expected = (
        attend(*inputs, None, Dropout(0.0)) for attend in (attend_on_cpu, attend_explicitly)
    )
    assert torch.equal(found, expected)
    gradients = torch.autograd.grad(found.sum(), inputs)
    assert [one.shape for one in gradients] == [one.shape for one in inputs]


def test_joined_heads_are_a_view() -> None:
    found = attend_on_cpu(*(heads(5) for _ in range(3)), None, Dropout(0.0))
    joined = found.transpose(1, 2).flatten(2)
    assert joined.untyped_storage().data_ptr() == found.untyped_storage().data_ptr()


@pytest.mark.parametrize("has_bias", [True, False])
def test_projections_are_linear_layers(has_bias: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    layers = [Projection(4, width, bias=has_bias).double() for width in (5, 2)]
    parameters = [x, *(p for layer in layers for p in layer.parameters())]
    found = torch.cat(project(x, *layers), dim=-1)
    expected = torch.cat([F.linear(x, one.weight, one.bias) for one in layers], dim=-1)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-14)
    for one, other in zip(
        gradients_of(found, *parameters), gradients_of(expected, *parameters), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_projections_under_autocast_equal_linear_layers_under_autocast() -> None:
    torch.manual_seed(1)
    x, layer = torch.randn(6, 16, requires_grad=True), Projection(16, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, expected = layer(x), nn.Linear.forward(layer, x)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, expected)
    inputs = x, layer.weight, layer.bias
    for one, other in zip(
        gradients_of(found, *inputs), gradients_of(expected, *inputs), strict=True
    ):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)


def test_a_frozen_layer_gets_no_gradient_and_passes_one_on() -> None:
    x, layer = torch.randn(2, 4, requires_grad=True), Projection(4, 3)
    layer.weight.requires_grad_(False)
    (output,) = project_on_cpu(x, (layer,))
    output.sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(2, 4))
    torch.testing.assert_close(layer.bias.grad, torch.full((3,), 2.0))


def test_evaluation_uses_the_plain_form() -> None:
    x = torch.randn(2, 3, 4, 5)
    assert attention_for(x) is attend_on_cpu
    with torch.no_grad():
        assert attention_for(x) is attend_explicitly


@contextmanager
def only_plain_forms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for module in ("attention", "prediction", "projection"):
            patch.setattr(f"transformer_cli.model.{module}.trains_on_cpu", lambda x: False)
        yield


@pytest.mark.parametrize("settings", [{}, {"num_kv_heads": 1, "qk_norm": True}], ids=str)
def test_a_whole_attention_layer_is_its_plain_form(
    settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    layer = MultiHeadAttention(ModelConfig(d_model=12, num_heads=3, **settings)).double()
    x = torch.randn(2, 5, 12, dtype=torch.float64, requires_grad=True)
    context = torch.randn(2, 4, 12, dtype=torch.float64, requires_grad=True)
    for other in (x, context):
        inputs = [x, other, *layer.parameters()]
        found = layer(x, other, None)
        with only_plain_forms(monkeypatch):
            expected = layer(x, other, None)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
        for one, wanted in zip(
            gradients_of(found, *inputs), gradients_of(expected, *inputs), strict=True
        ):
            torch.testing.assert_close(one, wanted, rtol=1e-11, atol=1e-12)


PAD_ID = 1


def target_ids_with_padding(num_sentences: int, num_positions: int) -> Tensor:
    lengths = torch.arange(num_sentences).unsqueeze(-1) % (num_positions + 1)
    ids = torch.randint(2, 9, (num_sentences, num_positions))
    return ids.where(torch.arange(num_positions) < lengths, PAD_ID)


def loss_of_logits(layer: nn.Linear, x: Tensor, head: LossHead) -> LossSums:
    return sum_loss(
        F.linear(x, layer.weight, layer.bias),
        head.target_ids,
        pad_id=head.pad_id,
        label_smoothing=head.label_smoothing,
        smoothed_over=head.smoothed_over,
    )


@pytest.mark.parametrize("smoothed_over", ["vocabulary", "others"])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("num_sentences", [3, 40])  # fewer and more positions than MULTIPLE
def test_the_output_layer_with_its_loss_is_the_loss_of_its_logits(
    num_sentences: int, has_bias: bool, smoothed_over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr("transformer_cli.model.loss.MAX_PER_THREAD", 63)  # several parts
    target_ids = target_ids_with_padding(num_sentences, 4)
    assert len(list(parts(torch.empty(target_ids.numel(), 9)))) > 1
    head = LossHead(target_ids, PAD_ID, 0.1, smoothed_over)  # type: ignore[arg-type]
    layer = Projection(5, 9, bias=has_bias).double()
    x = torch.randn(num_sentences, 4, 5, dtype=torch.float64, requires_grad=True)
    found, expected = head(layer, x), loss_of_logits(layer, x, head)
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
    head = LossHead(target_ids_with_padding(20, 6), PAD_ID, 0.1)
    x, layer = torch.randn(20, 6, 16, requires_grad=True), Projection(16, 9)
    exact = loss_of_logits(layer.double(), x.double(), head)
    expected = torch.autograd.grad(exact.objective, (x, layer.weight))
    layer.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = head(layer, x)
    assert found.objective.dtype == torch.float32
    torch.testing.assert_close(found.objective.double(), exact.objective, rtol=1e-3, atol=0)
    for one, wanted in zip(
        torch.autograd.grad(found.objective, (x, layer.weight)), expected, strict=True
    ):
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
    LossHead(target_ids, PAD_ID, 0.1)(Projection(5, 9), torch.randn(10, 40, 5))
    assert num_rows == [2 * MULTIPLE]


def test_a_batch_of_padding_has_no_loss_and_no_gradient() -> None:
    x, layer = torch.randn(2, 3, 5, requires_grad=True), Projection(5, 9)
    sums = LossHead(torch.full((2, 3), PAD_ID), PAD_ID, 0.1)(layer, x)
    sums.objective.backward()
    assert sums.objective == sums.negative_log_likelihood == 0.0
    for one in (x, *layer.parameters()):
        assert torch.equal(one.grad, torch.zeros_like(one))


def test_a_frozen_output_layer_gets_no_gradient() -> None:
    x, layer = torch.randn(2, 3, 5, requires_grad=True), Projection(5, 9)
    layer.weight.requires_grad_(False)
    LossHead(torch.full((2, 3), 2), PAD_ID, 0.1)(layer, x).objective.backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
    assert x.grad is not None
