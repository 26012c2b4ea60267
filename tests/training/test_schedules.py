"""Learning-rate schedules against their formulas."""

import math

import pytest

from transformer_cli.config import TrainingConfig
from transformer_cli.training.schedules import learning_rate


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
