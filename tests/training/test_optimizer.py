"""Learning-rate curves and the optimizer's state by name."""

import math

import pytest
import torch
from torch import nn

from transformer_cli.config import TrainingConfig
from transformer_cli.errors import DataError
from transformer_cli.training.optimizer import (
    build_optimizer,
    learning_rate,
    optimizer_tensors,
    restore_optimizer,
    set_learning_rate,
)


def training(**settings: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"max_steps": 100, "batch_sentences": 2, **settings})


@pytest.mark.parametrize("step", [1, 399, 400, 401, 5000])
def test_noam_is_equation_3_of_the_paper(step: int) -> None:
    config = training(schedule="noam", warmup_steps=400, noam_factor=2.0)
    expected = 2.0 * 512**-0.5 * min(step**-0.5, step * 400**-1.5)
    assert learning_rate(step, config, d_model=512) == pytest.approx(expected, rel=1e-12)


def test_inverse_sqrt_rises_to_the_peak_and_falls_with_the_root() -> None:
    config = training(schedule="inverse_sqrt", learning_rate=1e-3, warmup_steps=100)
    assert learning_rate(50, config, d_model=8) == pytest.approx(5e-4)
    assert learning_rate(100, config, d_model=8) == pytest.approx(1e-3)
    assert learning_rate(400, config, d_model=8) == pytest.approx(5e-4)


def test_cosine_falls_from_the_peak_to_zero_at_the_last_step() -> None:
    config = training(schedule="cosine", learning_rate=1.0, warmup_steps=20)
    assert learning_rate(20, config, d_model=8) == pytest.approx(1.0)
    assert learning_rate(60, config, d_model=8) == pytest.approx(0.5 * (1 + math.cos(math.pi / 2)))
    assert learning_rate(100, config, d_model=8) == pytest.approx(0.0, abs=1e-7)


def test_constant_stays_at_the_peak_after_the_warm_up() -> None:
    config = training(schedule="constant", learning_rate=0.3, warmup_steps=0)
    assert [learning_rate(step, config, d_model=8) for step in (1, 10, 1000)] == [0.3, 0.3, 0.3]


def stepped(optimizer_name: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model, training(optimizer=optimizer_name))
    set_learning_rate(optimizer, 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().sum().backward()
        optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_restored_optimizer_makes_the_same_next_update(name: str) -> None:
    model, optimizer = stepped(name)
    twin = nn.Linear(3, 2)
    twin.load_state_dict(model.state_dict())
    twin_optimizer = build_optimizer(twin, training(optimizer=name))
    restore_optimizer(twin, twin_optimizer, optimizer_tensors(model, optimizer))
    for one, its_optimizer in ((model, optimizer), (twin, twin_optimizer)):
        set_learning_rate(its_optimizer, 0.05)
        its_optimizer.zero_grad()
        one(torch.ones(4, 3)).sum().backward()
        its_optimizer.step()
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True)
    )


def test_without_its_moments_the_next_update_differs() -> None:
    model, _ = stepped("adam")
    weights = model.weight.detach().clone()  # type: ignore[union-attr]
    fresh = build_optimizer(model, training())
    set_learning_rate(fresh, 0.05)
    model(torch.ones(4, 3)).sum().backward()
    fresh.step()
    kept_model, kept = stepped("adam")
    set_learning_rate(kept, 0.05)
    kept_model(torch.ones(4, 3)).sum().backward()
    kept.step()
    assert not torch.equal(model.weight, kept_model.weight)  # type: ignore[arg-type]
    assert not torch.equal(model.weight, weights)  # type: ignore[arg-type]


def test_weight_decay_touches_matrices_only() -> None:
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model, training(optimizer="adamw", weight_decay=0.5))
    decayed = {id(p) for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    assert decayed == {id(model.weight)}


def test_foreign_tensors_are_refused() -> None:
    model, optimizer = stepped("adam")
    with pytest.raises(DataError, match=r"other\.weight\.exp_avg does not belong"):
        restore_optimizer(model, optimizer, {"other.weight.exp_avg": torch.zeros(2, 3)})
    with pytest.raises(DataError, match=r"weight\.exp_avg does not belong"):
        restore_optimizer(model, optimizer, {"weight.exp_avg": torch.zeros(9)})
