"""Warnings about a training that diverges."""

import pytest

from transformer_cli.training.alarms import Alarms
from transformer_cli.training.meter import TrainingReport


def report(step: int, loss: float, num_skipped: int = 0) -> TrainingReport:
    return TrainingReport(step, 0, loss, loss, 1e-3, 1.0, 100.0, 100.0, num_skipped)


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
