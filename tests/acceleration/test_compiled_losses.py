"""Losses that torch.compile turns into kernels: the sums and gradients of the plain losses, compiled once for all shapes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_cli.acceleration import losses
from transformer_cli.acceleration.losses import (
    Function,
    compiled,
    compiled_sum_loss,
    compiled_symmetric_divergence,
)
from transformer_cli.config.schema import SmoothedOver
from transformer_cli.model.loss import SmoothedLabels, sum_loss, symmetric_divergence

PAD, VOCABULARY = 1, 50
SHAPES = [(3, 5), (4, 7), (6, 2), (8, 9)]
AS_WRITTEN = pytest.param("as written")
COMPILED_ON_CPU = pytest.param("compiled on cpu", marks=pytest.mark.slow)
COMPILED_ON_GPU = pytest.param("compiled on cuda", marks=pytest.mark.gpu)
FORMS = pytest.mark.parametrize("form", [AS_WRITTEN, COMPILED_ON_CPU, COMPILED_ON_GPU])
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
TOLERANCES: dict[torch.dtype, dict[str, float]] = {
    torch.float64: {"rtol": 1e-10, "atol": 1e-12},
    torch.float32: {"rtol": 1e-5, "atol": 1e-6},
    torch.bfloat16: {"rtol": 1e-2, "atol": 1e-4},
}


def counters() -> Any:
    """What torch._dynamo counts; its import takes seconds."""
    from torch._dynamo.utils import counters

    return counters


@pytest.fixture
def device(form: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device; in the form "as written", Python runs the functions that are compiled otherwise."""
    if form == "as written":
        monkeypatch.setattr(losses, "compiled", lambda function: function)
    else:
        torch.compiler.reset()
        compiled.cache_clear()
        counters().clear()
    return form.split()[-1] if form != "as written" else "cpu"


def batch(shape: tuple[int, int], dtype: torch.dtype, device: str) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(sum(shape))
    logits = [3 * torch.randn(*shape, VOCABULARY, generator=generator) for _ in range(2)]
    ids = torch.randint(2, VOCABULARY, shape, generator=generator)
    ids[0, shape[1] // 2 + 1 :] = PAD
    return [one.to(device, dtype) for one in logits], ids.to(device)


def values_and_gradients(function: Callable[..., Any], logits: Sequence[Tensor]) -> list[Tensor]:
    inputs = [one.clone().requires_grad_() for one in logits]
    made = function(*inputs)
    values = [made] if isinstance(made, Tensor) else list(made)
    (0.37 * values[0]).backward()
    return [
        *(one.detach() for one in values),
        *(one.grad for one in inputs if one.grad is not None),
    ]


@FORMS
@DTYPES
@pytest.mark.parametrize("smoothed_over", ["vocabulary", "others"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.filterwarnings("ignore")  # of PyTorch itself
def test_the_loss_and_its_gradient_are_those_of_the_plain_form(
    form: str,
    device: str,
    dtype: torch.dtype,
    smoothed_over: SmoothedOver,
    label_smoothing: float,
) -> None:
    for shape in SHAPES:
        (logits, _), ids = batch(shape, dtype, device)

        def loss(one: Tensor, function: Function, ids: Tensor = ids) -> Any:
            labels = SmoothedLabels.of(VOCABULARY, PAD, label_smoothing, smoothed_over)
            return function(one, ids, labels)

        found, expected = (
            values_and_gradients(lambda one, f=function: loss(one, f), [logits])
            for function in (compiled_sum_loss, sum_loss)
        )
        assert [one.dtype for one in found] == [one.dtype for one in expected]
        torch.testing.assert_close(found, expected, **TOLERANCES[dtype])
    if form != "as written":
        assert counters()["stats"]["unique_graphs"] <= 2


@FORMS
@DTYPES
@pytest.mark.filterwarnings("ignore")  # of PyTorch itself
def test_the_divergence_and_its_gradients_are_those_of_the_plain_form(
    form: str, device: str, dtype: torch.dtype
) -> None:
    for shape in SHAPES:
        logits, ids = batch(shape, dtype, device)
        found, expected = (
            values_and_gradients(lambda p, q, f=function, ids=ids: f(p, q, ids != PAD), logits)
            for function in (
                compiled_symmetric_divergence,
                symmetric_divergence,
            )
        )
        assert [one.dtype for one in found] == [one.dtype for one in expected]
        torch.testing.assert_close(found, expected, **TOLERANCES[dtype])
    if form != "as written":
        assert counters()["stats"]["unique_graphs"] <= 2


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")  # of PyTorch itself
def test_on_a_gpu_no_tensor_of_float32_has_the_size_of_the_logits() -> None:
    logits = torch.randn(64, 64, 8192, device="cuda", dtype=torch.bfloat16).requires_grad_()
    ids = torch.randint(2, 8192, (64, 64), device="cuda")
    for _ in range(2):  # the first time, the kernels are compiled
        logits.grad = None
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        labels = SmoothedLabels.of(8192, PAD, 0.1, "vocabulary")
        sums = compiled_sum_loss(logits, ids, labels)
        sums.objective.backward()
        peak = torch.cuda.max_memory_allocated() - before
    assert peak < 1.5 * logits.nbytes, "one gradient in bfloat16, and numbers for each position"
