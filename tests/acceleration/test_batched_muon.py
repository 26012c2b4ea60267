"""Muon for all matrices of one shape together: the results of PyTorch's form, with fewer operations."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from transformer_cli.acceleration import optimizers
from transformer_cli.acceleration.optimizers import (
    BatchedMuon,
    orthogonalised,
    precision_of_muon,
    step,
    without_tracer,
)

SHAPES = [(6, 4), (6, 4), (4, 6), (5, 5), (6, 4), (16, 40_000), (16, 40_000), (1, 3)]


def operations_module() -> ModuleType:
    """benchmarks/operations.py, which counts operations."""
    script = Path(__file__).parents[2] / "benchmarks" / "operations.py"
    spec = importlib.util.spec_from_file_location("operations", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def matrices(device: str = "cpu") -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(shape, device=device) for shape in SHAPES]


def give_gradients(parameters: list[Tensor], seed: int) -> None:
    torch.manual_seed(seed)
    for one in parameters:
        one.grad = torch.randn_like(one)


def build(parameters: list[Tensor]) -> BatchedMuon:
    without_tracer()
    optimizer = BatchedMuon(parameters, weight_decay=0.1)
    optimizer.param_groups[0]["lr"] = 0.05
    return optimizer


@pytest.mark.parametrize(
    ("is_emulated", "capability", "dtype"),
    [(False, (8, 0), torch.bfloat16), (True, (7, 5), torch.float16), (True, (6, 1), torch.float32)],
)
def test_a_gpu_that_imitates_bfloat16_multiplies_in_another_precision(
    is_emulated: bool,
    capability: tuple[int, int],
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: not is_emulated)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert precision_of_muon.__wrapped__(torch.device("cuda", 0)) == dtype


@pytest.mark.parametrize(("is_fast", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_a_cpu_that_is_slow_at_bfloat16_multiplies_in_float32(
    is_fast: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most processors of laptops: there, PyTorch multiplies bfloat16 fifty times as slowly as float32."""
    monkeypatch.setattr(optimizers, "has_fast_bfloat16", lambda _: is_fast)
    assert precision_of_muon.__wrapped__(torch.device("cpu")) == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_in_each_precision_the_singular_values_come_near_1_also_of_a_tiny_gradient(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1e-7 would be 0 in float16, if it were not normalised before."""
    monkeypatch.setattr(optimizers, "precision_of_muon", lambda _: dtype)
    torch.manual_seed(1)
    given = 1e-7 * torch.randn(3, 8, 5)
    made = orthogonalised(given, {"ns_coefficients": (3.4445, -4.775, 2.0315), "ns_steps": 5, "eps": 1e-12})
    assert made.dtype == dtype
    values = torch.linalg.svdvals(made.float())
    assert values.min() > 0.5
    assert values.max() < 1.5


@pytest.mark.long
def test_it_computes_what_pytorch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "precision_of_muon", lambda _: torch.bfloat16)  # as PyTorch
    ours, theirs = matrices(), matrices()
    of_ours = build(ours)
    of_theirs = torch.optim.Muon(theirs, lr=0.05, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for seed in range(4):
        for parameters, optimizer in ((ours, of_ours), (theirs, of_theirs)):
            give_gradients(parameters, seed)
            parameters[3].grad = None if seed == 2 else parameters[3].grad
            step(optimizer)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
        mine, their = of_ours.state[one], of_theirs.state[other]
        assert mine.keys() == their.keys()
        torch.testing.assert_close(mine["momentum_buffer"], their["momentum_buffer"])


@pytest.mark.long
def test_singular_vectors_stay_and_singular_values_come_near_to_one() -> None:
    torch.manual_seed(2)
    given = torch.randn(3, 8, 5)
    settings = build(matrices()).param_groups[0]
    made = orthogonalised(given, settings).float()
    left, values, right = torch.linalg.svd(given, full_matrices=False)
    expected = left @ right
    assert values.max() / values.min() > 3
    assert torch.linalg.svdvals(made).sub(1).abs().max() < 0.5
    cosine = (made * expected).sum((1, 2)) / (made.norm(dim=(1, 2)) * expected.norm(dim=(1, 2)))
    assert cosine.min() > 0.97


@pytest.mark.long
@pytest.mark.parametrize("num_updates_before", [0, 2])
def test_on_a_gpu_the_device_itself_skips_a_bad_update(num_updates_before: int) -> None:
    """The form that a GPU takes, run on the CPU: `is_bad` is a tensor that is never read."""
    parameters = matrices()[:2]
    optimizer = build(parameters)
    for seed in range(num_updates_before):
        give_gradients(parameters, seed)
        step(optimizer)
    before = [one.clone() for one in parameters]
    momenta = [optimizer.state[one].get("momentum_buffer", torch.zeros(6, 4)).clone() for one in parameters]
    for one in parameters:
        one.grad = torch.full_like(one, float("nan"))
    optimizer._update(parameters, optimizer.param_groups[0], torch.tensor(1.0))
    after = [optimizer.state[one]["momentum_buffer"] for one in parameters]
    assert all(torch.equal(one, other) for one, other in zip(parameters, before, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(after, momenta, strict=True))


def test_on_a_gpu_a_good_update_is_the_same() -> None:
    results = []
    for is_on_gpu in (False, True):
        parameters = matrices()[:2]
        optimizer = build(parameters)
        give_gradients(parameters, 0)
        if is_on_gpu:
            optimizer._update(parameters, optimizer.param_groups[0], torch.tensor(0.0))
        else:
            step(optimizer)
        results.append(torch.stack(parameters))
    assert torch.equal(*results)


@pytest.mark.long
def test_more_matrices_of_a_shape_need_no_more_operations() -> None:
    numbers = []
    for count in (2, 20):
        parameters = [torch.zeros(8, 8, device="meta") for _ in range(count)]
        optimizer = build(parameters)
        optimizer.found_inf = torch.zeros((), device="meta")
        for _ in range(2):
            give_gradients(parameters, 0)
            with operations_module().Trace() as operations:
                step(optimizer)
        numbers.append(len(operations.kernels))
    assert numbers[0] == numbers[1] < 60
