"""The loop: update, report, validate, save, until the run is finished or asked to stop."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from transformer_cli.config import TrainingConfig
from transformer_cli.data.batches.updates import Updates
from transformer_cli.errors import TrainingStoppedError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Machine, seed_everything
from transformer_cli.training.alarms import Alarms
from transformer_cli.training.optimizer import learning_rate, set_learning_rate
from transformer_cli.training.progress import (
    Meter,
    Progress,
    goodness,
    is_finished,
    is_validation_due,
    reaches_limit,
)
from transformer_cli.training.step import StepReport, train_step


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The training since the last report, per target token."""

    step: int
    epoch: int
    objective: float  # label-smoothed, in nats
    loss: float  # negative log-likelihood, in nats
    learning_rate: float
    gradient_norm: float  # of the last update, before clipping
    target_tokens_per_second: float
    source_tokens_per_second: float
    num_skipped: int  # updates of the whole run whose gradient was not finite


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the loop does to the world, handed in."""

    tick: Callable[
        [int], None
    ]  # a step is done: moves a progress bar, reads nothing from the device
    report: Callable[[TrainingReport], None]
    validate: Callable[[int], float]  # the value of best_metric at this step
    save: Callable[[Progress, Meter], None]
    is_stop_requested: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What stays the same from the first step to the last."""

    model: Transformer
    optimizer: torch.optim.Optimizer
    updates: Updates
    training: TrainingConfig
    machine: Machine
    seed: int


def train(experiment: Experiment, progress: Progress, meter: Meter, hooks: Hooks) -> Progress:
    """Train from `progress` until the run is finished or asked to stop; it always ends with a save.

    Raises:
        TrainingStoppedError: too many updates in a row had a gradient that is not finite.
    """
    training = experiment.training
    stopwatch, alarms = _Stopwatch(meter), Alarms()
    is_saved = True

    def ends_here() -> bool:
        return is_finished(progress, training) or hooks.is_stop_requested()

    while True:
        is_among_best = False
        # Whoever asks us to stop may not wait for long: a validation that is due comes after the resume.
        if is_validation_due(progress, training) and not hooks.is_stop_requested():
            with stopwatch.paused():
                value = goodness(hooks.validate(progress.step), training.best_metric)
            progress = progress.after_validation(value, keep_best=training.keep_best)
            is_among_best = value in progress.best_goodness
            is_saved = False
        is_save_due = progress.step % training.save_every == 0 or is_among_best
        if not is_saved and (is_save_due or ends_here()):
            with stopwatch.paused():
                hooks.save(progress, meter)
            is_saved = True
        if is_saved and ends_here():
            alarms.at_end()
            return progress
        report = _update(experiment, progress.step + 1)
        progress = progress.after_step(experiment.updates.position)
        is_saved = False
        meter.add(report)
        hooks.tick(progress.step)
        alarms.after_step(progress.step, report)
        if progress.step % training.log_every == 0 or reaches_limit(progress, training):
            figures = _training_report(experiment, progress, meter, report, stopwatch)
            hooks.report(figures)
            alarms.after_report(figures.step, figures.loss, num_skipped=figures.num_skipped)
            meter.start_interval()
            stopwatch.start_lap(meter)
        # To read the count costs a wait for an accelerator, so there it is read now and then.
        is_free_to_read = experiment.machine.device.type == "cpu"
        if is_free_to_read or progress.step % training.max_skipped_in_a_row == 0:
            _stop_if_hopeless(progress, meter, training)


def _update(experiment: Experiment, step: int) -> StepReport:
    training = experiment.training
    experiment.model.train()
    rate = learning_rate(step, training, d_model=experiment.model.config.d_model)
    set_learning_rate(experiment.optimizer, rate)
    # Dropout depends on the seed and the step alone, so a resumed run needs no saved random state.
    seed_everything(experiment.seed, "step", step)
    return train_step(
        experiment.model,
        experiment.optimizer,
        next(experiment.updates),
        experiment.machine,
        training,
    )


def _training_report(
    experiment: Experiment,
    progress: Progress,
    meter: Meter,
    last: StepReport,
    stopwatch: "_Stopwatch",
) -> TrainingReport:
    sums = {name: value.item() for name, value in meter.sums.items()}
    source_speed, target_speed = stopwatch.tokens_per_second(meter)
    num_tokens = sums["num_target_tokens"] or math.nan  # where all updates were skipped
    return TrainingReport(
        step=progress.step,
        epoch=progress.position.epoch,
        objective=sums["objective"] / num_tokens,
        loss=sums["negative_log_likelihood"] / num_tokens,
        learning_rate=experiment.optimizer.param_groups[0]["lr"],
        gradient_norm=last.gradient_norm.item(),
        target_tokens_per_second=target_speed,
        source_tokens_per_second=source_speed,
        num_skipped=int(sums["num_skipped"]),
    )


def _stop_if_hopeless(progress: Progress, meter: Meter, training: TrainingConfig) -> None:
    in_a_row = int(meter.sums["num_skipped_in_a_row"].item())
    if in_a_row >= training.max_skipped_in_a_row:
        raise TrainingStoppedError(
            f"step {progress.step}: the last {in_a_row} updates had a gradient that is not finite "
            f"(epoch {progress.position.epoch}, batches up to {progress.position.batch}); all were skipped",
            hint="lower training.learning_rate or raise training.warmup_steps; the last checkpoint is intact",
        )


class _Stopwatch:
    """Tokens per second of training since the last report of this process, pauses left out."""

    def __init__(self, meter: Meter) -> None:
        self.start_lap(meter)

    def start_lap(self, meter: Meter) -> None:
        self.lap_started_at = time.perf_counter()
        self.num_source_tokens = meter.num_source_tokens_seen
        self.num_target_tokens = meter.num_target_tokens_seen

    def tokens_per_second(self, meter: Meter) -> tuple[float, float]:
        """Of source and target."""
        seconds = max(time.perf_counter() - self.lap_started_at, 1e-9)
        return (
            (meter.num_source_tokens_seen - self.num_source_tokens) / seconds,
            (meter.num_target_tokens_seen - self.num_target_tokens) / seconds,
        )

    @contextmanager
    def paused(self) -> Iterator[None]:
        pause_started_at = time.perf_counter()
        yield
        self.lap_started_at += time.perf_counter() - pause_started_at
