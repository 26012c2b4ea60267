"""The adapter of optimizers: its state by name, and updates that a bad gradient must not reach."""

from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.errors import DataError
from transformer_cli.model.transformer import Transformer
from transformer_cli.training.optimizers import Optimizer


def training(**settings: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"max_steps": 100, "batch_sentences": 2, **settings})


GOOD = torch.tensor(True)


def stepped(optimizer_name: str) -> tuple[nn.Linear, Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = Optimizer(model, training(optimizer=optimizer_name))
    optimizer.learning_rate = 0.1
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().sum().backward()
        optimizer.step_if(GOOD)
    return model, optimizer


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_restored_optimizer_makes_the_same_next_update(name: str) -> None:
    model, optimizer = stepped(name)
    twin = nn.Linear(3, 2)
    twin.load_state_dict(model.state_dict())
    twin_optimizer = Optimizer(twin, training(optimizer=name))
    twin_optimizer.restore(optimizer.state())
    for one, its_optimizer in ((model, optimizer), (twin, twin_optimizer)):
        its_optimizer.learning_rate = 0.05
        its_optimizer.zero_grad()
        one(torch.ones(4, 3)).sum().backward()
        its_optimizer.step_if(GOOD)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True)
    )


def test_without_its_moments_the_next_update_differs() -> None:
    model, _ = stepped("adam")
    weights = model.weight.detach().clone()
    fresh = Optimizer(model, training())
    fresh.learning_rate = 0.05
    model(torch.ones(4, 3)).sum().backward()
    fresh.step_if(GOOD)
    kept_model, kept = stepped("adam")
    kept.learning_rate = 0.05
    kept_model(torch.ones(4, 3)).sum().backward()
    kept.step_if(GOOD)
    assert not torch.equal(model.weight, kept_model.weight)
    assert not torch.equal(model.weight, weights)


def test_weight_decay_touches_matrices_only() -> None:
    model = nn.Linear(3, 2)
    optimizer = Optimizer(model, training(optimizer="adamw", weight_decay=0.5)).torch_optimizer
    decayed = {id(p) for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    assert decayed == {id(model.weight)}


def test_foreign_tensors_are_refused() -> None:
    _, optimizer = stepped("adam")
    with pytest.raises(DataError, match=r"other\.weight\.exp_avg does not belong"):
        optimizer.restore({"other.weight.exp_avg": torch.zeros(2, 3)})
    with pytest.raises(DataError, match=r"weight\.exp_avg does not belong"):
        optimizer.restore({"weight.exp_avg": torch.zeros(9)})


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fused kernels that accept `found_inf` and ignore it, as those of PyTorch for Apple GPUs."""
    for name in ("_fused_adam_", "_fused_adamw_"):
        kernel = getattr(torch, name)

        def ignoring(*tensors: object, kernel: Any = kernel, **settings: object) -> None:
            kernel(*tensors, **{**settings, "found_inf": None})

        monkeypatch.setattr(torch, name, ignoring)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_kernel_that_ignores_found_inf_is_noticed(
    name: str, request: pytest.FixtureRequest
) -> None:
    """D1; tried, not looked up, so that it holds for every device and version of PyTorch."""
    assert Optimizer(nn.Linear(3, 2), training(optimizer=name)).decides_on_device
    request.getfixturevalue("metal")
    assert not Optimizer(nn.Linear(3, 2), training(optimizer=name)).decides_on_device


@pytest.mark.parametrize("is_metal", [False, True])
@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_an_update_with_a_bad_gradient_changes_nothing(
    name: str, is_metal: bool, request: pytest.FixtureRequest
) -> None:
    """D1; where the kernel ignores `found_inf`, as on Apple GPUs, the host decides."""
    if is_metal:
        request.getfixturevalue("metal")
    model, optimizer = stepped(name)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    moments = {name: value.clone() for name, value in optimizer.state().items()}
    optimizer.zero_grad()
    (model(torch.ones(4, 3)).sum() * float("nan")).backward()
    optimizer.step_if(torch.tensor(False))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(torch.equal(moments[name], value) for name, value in optimizer.state().items())
    optimizer.zero_grad()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step_if(GOOD)
    assert not torch.equal(before["weight"], model.weight)


@pytest.mark.parametrize("tying", ["none", "target-output", "all"])
@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_the_state_has_exactly_the_tensors_that_are_expected(kind: str, tying: str) -> None:
    """What a resumed run expects of a checkpoint is what PyTorch's optimizer really has."""
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(ModelConfig.model_validate({**sizes, "tie_embeddings": tying}), 9, 9)
    optimizer = Optimizer(model, training(optimizer=kind))
    ids = torch.tensor([[4, 3]])
    model(ids, torch.ones_like(ids, dtype=torch.bool), ids).sum().backward()
    optimizer.step_if(GOOD)
    found, expected = optimizer.state(), optimizer.expected_state()
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in found.items()} == {
        name: (tensor.shape, tensor.dtype) for name, tensor in expected.items()
    }
