"""Learning-rate schedules against their formulas."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import TrainingConfig
from transformer_cli.training.optimizers import learning_rate


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


def rates(steps: range, **settings: object) -> list[float]:
    config = training(**settings)
    return [learning_rate(step, config, d_model=8) for step in steps]


@pytest.mark.long  # an optimizer of PyTorch imports its tracer
def test_linear_is_the_schedule_of_pytorch_with_a_warm_up() -> None:
    """`LinearLR` twice, one after the other; its step t is our update t."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 1e-9, 1.0, total_iters=20)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.25, total_iters=80)
    both = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[20])
    expected = []
    for _ in range(1, 111):
        optimizer.step()
        both.step()
        expected.append(optimizer.param_groups[0]["lr"])
    found = rates(range(1, 111), schedule="linear", learning_rate=2.0, warmup_steps=20, min_learning_rate=0.5)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.long  # an optimizer of PyTorch imports its tracer
def test_cosine_falls_to_the_lowest_rate_as_that_of_pytorch_does() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100, eta_min=0.5)
    expected = []
    for _ in range(100):
        optimizer.step()
        cosine.step()
        expected.append(optimizer.param_groups[0]["lr"])
    found = rates(range(1, 101), schedule="cosine", learning_rate=2.0, warmup_steps=0, min_learning_rate=0.5)
    assert found == pytest.approx(expected, rel=1e-6)


def test_warmup_stable_decay_rises_stays_and_falls() -> None:
    wsd = {"schedule": "warmup_stable_decay", "learning_rate": 1.0, "warmup_steps": 10}
    found = rates(range(1, 101), **wsd, decay_steps=20, min_learning_rate=0.1)
    assert found[:9] == pytest.approx([step / 10 for step in range(1, 10)])
    assert found[9:80] == [1.0] * 71
    assert found[80:] == pytest.approx([1.0 - 0.9 * step / 20 for step in range(1, 21)])
    assert rates(range(100, 101), **wsd, decay_steps=20) == [0.0]


@given(longer=st.integers(0, 1000), decay_steps=st.integers(1, 80), warmup_steps=st.integers(0, 20))
def test_a_longer_run_has_the_same_rates_up_to_the_decay(longer: int, decay_steps: int, warmup_steps: int) -> None:
    settings = {"schedule": "warmup_stable_decay", "decay_steps": decay_steps, "warmup_steps": warmup_steps}
    stable = range(1, 100 - decay_steps + 1)
    assert rates(stable, **settings) == rates(stable, **settings, max_steps=100 + longer)


def test_plateau_is_multiplied_at_each_drop_and_never_below_the_lowest_rate() -> None:
    config = training(schedule="plateau", learning_rate=0.8, warmup_steps=4, min_learning_rate=0.15)
    found = [learning_rate(9, config, d_model=8, num_drops=drops) for drops in range(4)]
    assert found == pytest.approx([0.8, 0.4, 0.2, 0.15])
    assert learning_rate(2, config, d_model=8, num_drops=1) == pytest.approx(0.4), "the warm-up"


@pytest.mark.parametrize(("optimizer", "peak"), [("adam", 7e-4), ("adamw", 7e-4), ("adafactor", 1e-2), ("muon", 7e-4)])
def test_the_peak_depends_on_the_optimizer(optimizer: str, peak: float) -> None:
    assert rates(range(9, 10), optimizer=optimizer, schedule="constant", warmup_steps=0) == [peak]
