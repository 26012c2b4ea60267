"""Warnings about a training that diverges, forgets or learns nothing."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import TrainingConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.preparation import frequency_loss
from transformer_cli.process.errors import TrainingStoppedError
from transformer_cli.training.advice import Alarms, first_recorded_loss
from transformer_cli.training.callbacks import StepReport, TrainingReport
from transformer_cli.training.optimizers import learning_rate

from ..data.pair_list import PairList


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
def test_a_jump_is_told_and_noise_is_not(losses: list[float], is_told: bool, caplog: pytest.LogCaptureFixture) -> None:
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
)
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
        with pytest.raises(TrainingStoppedError, match=r"diverged: after 9 steps, .* guessing gives 7\.60") as ended:
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


def test_a_diverged_run_that_goes_on_is_measured_by_its_beginning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its first update after the resume is as bad as the last one before, and no measure."""
    alarms = Alarms(vocab_size=2000, first_loss=7.5)
    alarms.on_step(51, step_report(900.0))
    alarms.on_report(report(60, 890.0))
    assert "step 60: diverged" in caplog.text
    caplog.clear()
    of_wild_start = Alarms(vocab_size=2000, first_loss=60.0)
    of_wild_start.on_step(51, step_report(50.0))
    of_wild_start.on_report(report(60, 49.0))
    without_records = Alarms(vocab_size=2000)
    without_records.on_step(51, step_report(50.0))
    without_records.on_report(report(60, 49.0))
    assert caplog.text == ""


def test_the_first_recorded_loss_is_that_of_the_first_report(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert first_recorded_loss(folder) is None
    folder.metrics_file.write_text(
        '{"kind": "validation", "step": 1, "loss": 1.0}\n{"kind": "train", "step": 2, "loss": 7.5}\n'
        '{"kind": "train", "step": 4, "loss": 5.0}\n'
    )
    assert first_recorded_loss(folder) == 7.5


def warnings_of(losses: Mapping[int, float], caplog: pytest.LogCaptureFixture, **settings: Any) -> list[str]:
    """What the alarms say of the losses of a run, by their steps; the loss of the frequencies is 5.95."""
    epochs = settings.pop("epochs", {})
    stages = settings.pop("stages", ())
    training = TrainingConfig(max_steps=10_000, batch_sentences=8, **settings)
    alarms = Alarms(vocab_size=7000, training=training, frequency_loss=5.95, stages=stages)
    alarms.on_step(1, step_report(8.0))
    caplog.clear()
    for step, loss in losses.items():
        rate = learning_rate(step, training, d_model=64)
        one = report(step, loss)
        alarms.on_report(replace(one, learning_rate=rate, epoch=epochs.get(step, 0)))
    return [record.getMessage() for record in caplog.records]


# Of a run with learning_rate 0.3 on everyday sentences, and its loss for so many updates more.
FAR_TOO_HIGH = dict(
    zip(range(20, 600, 20), [6.52, 6.18, 6.29, 6.44, 6.26, 6.20, 6.11, 6.01, 6.17, 6.21, 6.12, 6.07] * 3, strict=False)
)
# Of a run of 15,000 pairs of Tatoeba with 300 updates of warm-up.
HEALTHY = dict(zip(range(50, 550, 50), [7.32, 5.31, 4.32, 3.30, 2.99, 2.44, 2.35, 2.05, 1.87, 2.03], strict=False))
# Of a model of width 16 on 274 pairs, which comes below the loss of the frequencies after 500 updates.
SLOW = dict(
    zip(range(50, 650, 50), [7.21, 6.96, 6.58, 6.31, 6.17, 6.06, 6.01, 5.98, 5.94, 5.90, 5.92, 5.91], strict=False)
)


def test_a_training_that_learns_nothing_is_told_once_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    [said] = warnings_of(FAR_TOO_HIGH, caplog, learning_rate=0.3, warmup_steps=50)
    assert "the training loss of the last 200 updates is 6.07 or more" in said
    assert "knows only how often each token occurs has 5.95" in said
    assert "far above 0.0007, the default: lower training.learning_rate" in said
    # Also where few reports are made.
    rare = {500: 6.2, 1000: 6.1, 1500: 6.15}
    assert len(warnings_of(rare, caplog, learning_rate=0.3, warmup_steps=50)) == 1
    # With a rate so far from the usual one the end of the warm-up is not awaited; with another one it is.
    [said] = warnings_of(FAR_TOO_HIGH, caplog, learning_rate=3.0, warmup_steps=4000)
    assert "lower training.learning_rate" in said
    assert warnings_of(FAR_TOO_HIGH, caplog, warmup_steps=4000) == []
    [said] = warnings_of(FAR_TOO_HIGH, caplog, learning_rate=1e-6, warmup_steps=0, schedule="constant")
    assert said.endswith("the learning rate is now 1e-06, far below 0.0007, the default: raise training.learning_rate")


@pytest.mark.parametrize("losses", [HEALTHY, SLOW], ids=["healthy", "slow"])
@pytest.mark.parametrize("warmup_steps", [0, 300])
def test_a_training_that_learns_is_not_told(
    losses: Mapping[int, float], warmup_steps: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert warnings_of(losses, caplog, warmup_steps=warmup_steps) == []


def test_a_training_that_forgets_slowly_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """No two reports differ by a jump."""
    rises = HEALTHY | {step: 2.0 + (step - 500) / 400 for step in range(550, 1500, 50)}
    [said] = warnings_of(rises, caplog, learning_rate=3e-3)
    assert "and it was 1.87 before, so the model forgets; lower training.learning_rate" in said
    # Where the weights of the corpora change, the text may be another one.
    epochs = {step: int(step > 800) for step in rises}
    assert warnings_of(rises, caplog, learning_rate=3e-3, stages={0, 1}, epochs=epochs) == []


def test_the_loss_of_the_frequencies_is_that_of_a_model_of_frequencies() -> None:
    pairs = [TokenPair([4, 3], [4, 4, 5, 3]), TokenPair([5, 3], [6, 3])]
    ids = torch.tensor([4, 4, 5, 3, 6, 3])
    shares = torch.bincount(ids) / len(ids)
    wanted = torch.nn.functional.nll_loss(shares.log().expand(len(ids), -1), ids)
    assert frequency_loss(PairList(pairs)) == pytest.approx(wanted.item())
