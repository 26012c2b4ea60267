"""The training loop: update, report, validate, save, until the run is finished or asked to stop.

One update, in the order in which it happens:

1.  The learning rate of this step is set; it is a pure function of the step and, for the schedule plateau, of
    a count that `Progress` holds (optimizers.py).
2.  Dropout's random numbers are seeded with (seed, step) and the number of the micro-batch, so no random state needs
    saving.
3.  `Updates` hands over the micro-batches of the update: sentence pairs as padded token ids. A thread
    has prepared them ahead of time (data/updates.py).
4.  For each micro-batch: its tensors go to the device; the objective runs the model forward and sums
    the loss over the target tokens (step.py, model/transformer.py, model/loss.py); the sum is divided
    by the number of target tokens of the whole update; the backward pass adds to the gradients. With
    `runtime.cuda_graphs`, a recording of all this is replayed (acceleration/recorded_passes.py).
5.  Several processes sum their gradients and losses (process_group.py). In float16 the losses were multiplied
    by a scale, and the gradients are now divided by it (optimizers.py). The gradient norm is measured, then
    clipped to `training.clip_norm`.
6.  The optimizer changes the weights, unless the gradient has a NaN or an infinity (optimizers.py). With
    `training.ema_decay`, the moving average of the weights follows (also optimizers.py).
7.  `Progress` counts the step and takes over the position in the data; the `Meter` adds up losses on
    the device, and the CPU does not wait (progress.py, callbacks.py).
8.  Every `log_every` steps the sums are read and reported; every `save_every` steps a checkpoint is written;
    every `validate_every` steps the model is validated, and for each new best score a checkpoint is written
    (session.py). Each of these calls the callbacks (callbacks.py).

If a save and a validation are due at the same step, the save comes first: a validation may take long, and a
process that is killed during it has lost nothing. The resumed run then does the validation again, with the same
result. If the validation is among the best, a checkpoint with its result replaces the one of this step. If it is
not, only the next checkpoint has its result; if the run is killed before that checkpoint, the resumed run does the
validation again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from transformer_cli.config import TrainingConfig
from transformer_cli.data.updates import AnyPosition, Updates
from transformer_cli.model import Transformer
from transformer_cli.process.device import Machine, seed_everything
from transformer_cli.process.errors import TrainingStoppedError
from transformer_cli.training.callbacks import Callbacks, Meter, TrainingReport
from transformer_cli.training.optimizers import MovingAverage, Optimizer, learning_rate
from transformer_cli.training.process_group import Processes
from transformer_cli.training.progress import (
    Progress,
    Validated,
    is_finished,
    is_validation_due,
    reaches_limit,
)
from transformer_cli.training.step import Objective, StepReport, Worker, train_step


@dataclass(frozen=True, slots=True)
class Experiment:
    """What stays the same from the first step to the last."""

    model: Transformer
    optimizer: Optimizer
    objective: Objective
    updates: Updates
    training: TrainingConfig
    machine: Machine
    worker: Worker
    seed: int
    average: MovingAverage | None = None

    @property
    def validated_model(self) -> Transformer:
        """The model that is validated and that translates: the moving average of the weights, if there is one."""
        return self.model if self.average is None else self.average.model


def run_loop(
    experiment: Experiment,
    progress: Progress,
    meter: Meter,
    *,
    validate: Callable[[int, Callable[[], bool]], Validated | None],
    save: Callable[[Progress, Meter], None],
    callbacks: Callbacks,
) -> Progress:
    """Train from `progress` until the run is finished or asked to stop; save at the end.

    Args:
        experiment: model, optimizer and data.
        progress: how far the run has come.
        meter: sums since the last report; a resumed run continues them.
        validate: validates at a step. Between batches it calls its second argument; if this returns True, it
            stops and returns None.
        save: writes a checkpoint.
        callbacks: are told what happens, and may ask to stop.

    Raises:
        TrainingStoppedError: too many updates in a row had a gradient that is not finite.
    """
    training, model, optimizer = experiment.training, experiment.model, experiment.optimizer
    state = _State(
        progress, meter, training, validate, save, callbacks, experiment.worker.processes
    )
    meter.start_lap()
    while True:
        is_at_end = reaches_limit(state.progress, training)
        is_save_due = state.progress.step % training.save_every == 0 or is_at_end
        must_validate = is_validation_due(state.progress, training)
        with meter.paused(is_long=is_save_due or must_validate):
            state.save_if(is_save_due)
            state.validate_if(must_validate)
            state.save_if(state.ends_here())
        if state.is_saved and state.ends_here():
            return state.progress
        step = state.progress.step + 1
        model.train()
        optimizer.learning_rate = learning_rate(
            step, training, d_model=model.config.d_model, num_drops=state.progress.plateau_drops
        )
        seed_everything(experiment.seed, "step", step)
        report = train_step(
            model,
            optimizer,
            experiment.objective,
            next(experiment.updates),
            worker=experiment.worker,
            clip_norm=training.clip_norm,
        )
        if experiment.average is not None:
            experiment.average.update(step, report.is_finite)
        state.after_step(experiment.updates.position)
        meter.add(report)
        callbacks.on_step(step, report)
        if step % training.log_every == 0 or reaches_limit(state.progress, training):
            callbacks.on_report(_training_report(experiment, state.progress, meter, report))
            meter.start_interval()
        # Reading the count makes the CPU wait for a GPU, so with a GPU it is read rarely.
        is_free_to_read = experiment.machine.device.type == "cpu"
        if is_free_to_read or step % training.max_skipped_in_a_row == 0:
            _stop_if_hopeless(state.progress, meter, training)


@dataclass(slots=True)
class _State:
    """The progress of a run, with the saves and validations between two updates."""

    progress: Progress
    meter: Meter
    training: TrainingConfig
    validate: Callable[[int, Callable[[], bool]], Validated | None]
    save: Callable[[Progress, Meter], None]
    callbacks: Callbacks
    processes: Processes
    is_saved: bool = True
    is_stopped: bool = False  # a callback stopped the run during a validation

    def after_step(self, position: AnyPosition) -> None:
        self.progress = self.progress.after_step(position)
        self.is_saved = False

    def save_if(self, is_due: bool) -> None:
        if is_due and not self.is_saved:
            self.save(self.progress, self.meter)
            self.is_saved = True

    def validate_if(self, is_due: bool) -> None:
        """Validate; but not after a request to stop, when time may be short: the resumed run validates."""
        if not is_due or self.must_stop():
            return
        validated = self.validate(self.progress.step, self.must_stop_now)
        if validated is None:
            self.is_stopped = True
            return
        keep_best = self.training.num_kept_best
        is_among_best = self.progress.is_among_best(validated, keep_best=keep_best)
        self.progress = self.progress.after_validation(
            validated, keep_best=keep_best, plateau_patience=self.training.patience_of_plateau
        )
        self.is_saved = False
        self.save_if(is_among_best)

    def must_stop(self) -> bool:
        """Whether a callback asks to stop, in any process; if one asks for a checkpoint, this writes it."""
        asked = self.callbacks.should_save(), self.callbacks.should_stop()
        wants_save, wants_stop = self.processes.any_of(*asked)
        self.save_if(wants_save)
        return wants_stop

    def must_stop_now(self) -> bool:
        """As `must_stop`, but between the batches of a validation; several processes then save after it."""
        if self.processes.is_alone:
            self.save_if(self.callbacks.should_save())
        return self.callbacks.should_stop_now()

    def ends_here(self) -> bool:
        return is_finished(self.progress, self.training) or self.is_stopped or self.must_stop()


def _training_report(
    experiment: Experiment, progress: Progress, meter: Meter, last: StepReport
) -> TrainingReport:
    means = meter.means()
    source_speed, target_speed = meter.tokens_per_second()
    scale = experiment.optimizer.scale
    return TrainingReport(
        step=progress.step,
        epoch=progress.position.epoch,
        objective=means["objective"],
        loss=means["negative_log_likelihood"],
        learning_rate=experiment.optimizer.learning_rate,
        gradient_norm=last.gradient_norm.item(),
        target_tokens_per_second=target_speed,
        source_tokens_per_second=source_speed,
        num_skipped=int(meter.sums["num_skipped"].item()),
        num_target_tokens=int(meter.sums["num_target_tokens"].item()),
        gradient_scale=None if scale is None else scale.value(),
    )


def _stop_if_hopeless(progress: Progress, meter: Meter, training: TrainingConfig) -> None:
    in_a_row = int(meter.sums["num_skipped_in_a_row"].item())
    if in_a_row >= training.max_skipped_in_a_row:
        raise TrainingStoppedError(
            f"step {progress.step}: the last {in_a_row} updates had a gradient that is not finite "
            f"(epoch {progress.position.epoch}, batches up to {progress.position.batch}); all were skipped",
            hint="lower training.learning_rate or raise training.warmup_steps; the last checkpoint is intact",
        )
