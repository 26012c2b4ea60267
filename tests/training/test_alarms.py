"""Warnings about a training that diverges."""

import pytest
import torch

from transformer_cli.process.errors import TrainingStoppedError
from transformer_cli.training.advice import Alarms
from transformer_cli.training.callbacks import StepReport, TrainingReport


def report(step: int, loss: float, num_skipped: int = 0) -> TrainingReport:
    return TrainingReport(step, 0, loss, loss, 1e-3, 1.0, 100.0, 100.0, num_skipped, 100)


@pytest.mark.parametrize(
    ("losses", "is_told"),
    [
        ([9.0, 6.0, 4.0, 4.2], False),
        ([4.0, 6.1], True),
        ([4.0, 5.9], False),
        ([0.01, 0.9], False),
        ([0.01, 1.1], True),
        ([2.0, 2000.0], True),
        ([2.0, float("inf")], True),
        ([50.0], False),
    ],
)
def test_a_jump_is_told_and_noise_is_not(
    losses: list[float], is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    alarms = Alarms(vocab_size=10**6)
    for step, loss in enumerate(losses):
        alarms.on_report(report(step, loss))
    assert ("the training loss has jumped from" in caplog.text) is is_told


def test_a_loss_that_stays_high_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    alarms = Alarms(vocab_size=10**6)
    for step, loss in enumerate([2.0, 8.0, 8.0, 8.1]):
        alarms.on_report(report(step, loss))
    assert caplog.text.count("jumped from 2.00 to 8.00") == 1
    assert len(caplog.records) == 1


def test_a_report_with_skipped_updates_is_no_measure(caplog: pytest.LogCaptureFixture) -> None:
    """Skipped updates added tokens but no loss, so the loss of the next report seems to jump."""
    alarms = Alarms(vocab_size=10**6)
    for step, (loss, num_skipped) in enumerate([(4.0, 0), (0.0, 3), (4.0, 3), (4.0, 3)]):
        alarms.on_report(report(step, loss, num_skipped))
    assert caplog.text == ""
    alarms.on_report(report(9, 9.0, 3))
    assert "step 9: the training loss has jumped" in caplog.text


def step_report(loss: float) -> StepReport:
    """One update of 10 target tokens."""
    numbers = torch.tensor(10 * loss), torch.tensor(10 * loss), torch.tensor(1.0)
    return StepReport(*numbers, torch.tensor(True), num_source_tokens=10, num_target_tokens=10)


@pytest.mark.parametrize(
    ("first", "losses", "has_diverged"),
    [
        (7.5, [6.0, 3.0, 2.0], False),
        (7.5, [6.0, 900.0], True),
        (7.5, [6.0, float("inf")], True),
        (7.5, [6.0, float("nan")], True),
        (7.5, [900.0, 6.0], False),
        (7.5, [8.5], False),
        (7.5, [8.7], True),
        (60.0, [50.0, 40.0], False),
        (60.0, [50.0, 62.0], True),
    ],
    ids=["falls", "explodes", "inf", "NaN", "recovers", "short run", "worse than guessing", "wild start", "wilder end"],
)  # fmt: skip
def test_a_run_that_ends_worse_than_it_began_and_than_guessing_has_diverged(
    first: float, losses: list[float], has_diverged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Guessing among 2,000 entries costs log 2000 = 7.6 nats."""
    alarms = Alarms(vocab_size=2000)
    alarms.on_step(1, step_report(first))
    for number, loss in enumerate(losses):
        alarms.on_report(report(number, loss))
    if has_diverged:
        assert caplog.text.count("diverged") == 1
        with pytest.raises(TrainingStoppedError, match=r"diverged: after 9 steps, .* guessing gives 7\.60") as ended:  # fmt: skip
            alarms.require_convergence(9)
        assert "lower training.learning_rate" in str(ended.value)
    alarms.divergence = "" if has_diverged else alarms.divergence
    alarms.require_convergence(9)


def test_a_report_of_skipped_updates_alone_is_no_divergence() -> None:
    alarms = Alarms(vocab_size=2000)
    alarms.on_step(1, step_report(7.5))
    alarms.on_report(report(1, 5.0))
    alarms.on_report(report(2, float("nan"), num_skipped=3))
    alarms.require_convergence(2)
