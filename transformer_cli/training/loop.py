"""The training loop: update, report, validate, save, until the run is finished or asked to stop; how far a run has come.

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
    the device, and the CPU does not wait (callbacks.py).
8.  Every `log_every` steps the sums are read and reported; every `save_every` steps a checkpoint is written;
    every `validate_every` steps the model is validated, and for each new best score a checkpoint is written
    (run.py). Each of these calls the callbacks (callbacks.py).

If a save and a validation are due at the same step, the save comes first: a validation may take long, and a
process that is killed during it has lost nothing. The resumed run then does the validation again, with the same
result. If the validation is among the best, a checkpoint with its result replaces the one of this step. If it is
not, only the next checkpoint has its result; if the run is killed before that checkpoint, the resumed run does the
validation again.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

from transformer_cli.checkpoint.run_folder import StateValues
from transformer_cli.config import TrainingConfig
from transformer_cli.data.updates import AnyPosition, Position, StreamPosition, Updates
from transformer_cli.model import Transformer
from transformer_cli.process.device import Machine, derive_seed
from transformer_cli.process.errors import ConfigError, TrainingStoppedError
from transformer_cli.training.callbacks import Callbacks, Meter, TrainingReport
from transformer_cli.training.optimizers import MovingAverage, Optimizer, learning_rate
from transformer_cli.training.process_group import Processes
from transformer_cli.training.step import Objective, StepReport, UpdateRunner, train_step


@dataclass(frozen=True, slots=True)
class Experiment:
    """What stays the same from the first step to the last."""

    model: Transformer
    optimizer: Optimizer
    objective: Objective
    updates: Updates
    training: TrainingConfig
    machine: Machine
    runner: UpdateRunner
    seed: int
    average: MovingAverage | None = None


def run_loop(
    experiment: Experiment,
    progress: "Progress",
    meter: Meter,
    *,
    validate: "Callable[[int, Callable[[], bool]], Validated | None]",
    save: "Callable[[Progress, Meter], None]",
    callbacks: Callbacks,
) -> "Progress":
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
        progress, meter, training, validate, save, callbacks, experiment.runner.processes
    )
    meter.start_lap()
    while True:
        is_at_end = reaches_limit(state.progress, training)
        is_save_due = state.progress.step % training.save_every == 0 or is_at_end
        must_validate = is_validation_due(state.progress, training)
        with meter.paused(is_long=is_save_due or must_validate):
            state.save_if(is_save_due)
            state.validate_if(must_validate)
            state.heed_callbacks()
            is_done = state.is_stopped or is_finished(state.progress, training)
            state.save_if(is_done)
        if is_done:
            return state.progress
        step = state.progress.step + 1
        if not model.training:  # after a validation; to ask each module again would take 0.3 ms
            model.train()
        optimizer.learning_rate = rate = learning_rate(
            step, training, d_model=model.config.d_model, num_drops=state.progress.plateau_drops
        )
        report = train_step(
            model,
            optimizer,
            experiment.objective,
            next(experiment.updates),
            runner=experiment.runner,
            seed=derive_seed(experiment.seed, "step", step),
            clip_norm=training.clip_norm,
        )
        if experiment.average is not None:
            experiment.average.update(step, report.is_finite)
        state.progress = state.progress.after_step(experiment.updates.position)
        state.is_saved = False
        meter.add(report)
        callbacks.call("on_step", step, report)
        if step % training.log_every == 0 or reaches_limit(state.progress, training):
            measured = _training_report(experiment, state.progress, meter, report, rate)
            callbacks.call("on_report", measured)
            meter.start_interval()
        # Reading the count makes the CPU wait for a GPU, so with a GPU it is read rarely.
        is_free_to_read = experiment.machine.device.type == "cpu"
        if is_free_to_read or step % training.max_skipped_in_a_row == 0:
            _stop_if_hopeless(state.progress, meter, training)


@dataclass(slots=True)
class _State:
    """The progress of a run, with the saves and validations between two updates."""

    progress: "Progress"
    meter: Meter
    training: TrainingConfig
    validate: "Callable[[int, Callable[[], bool]], Validated | None]"
    save: "Callable[[Progress, Meter], None]"
    callbacks: Callbacks
    processes: Processes
    is_saved: bool = True
    is_stopped: bool = False  # a callback asked to stop, in any process

    def save_if(self, is_due: bool) -> None:
        if is_due and not self.is_saved:
            self.save(self.progress, self.meter)
            self.is_saved = True

    def validate_if(self, is_due: bool) -> None:
        """Validate; but not after a request to stop, when time may be short: the resumed run validates."""
        if not is_due:
            return
        self.heed_callbacks()
        if self.is_stopped:
            return
        validated = self.validate(self.progress.step, self.heed_urgent_callbacks)
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

    def heed_callbacks(self) -> None:
        """Ask the callbacks of all processes; write a checkpoint if one wants it, and note if one wants to stop."""
        asked = (any(self.callbacks.call(name)) for name in ("should_save", "should_stop"))
        wants_save, wants_stop = self.processes.any_of(*asked)
        self.save_if(wants_save)
        self.is_stopped |= wants_stop

    def heed_urgent_callbacks(self) -> bool:
        """As `heed_callbacks`, between the batches of a validation; returns whether the validation must end now.

        Several processes do not talk here: they save after the validation.
        """
        if self.processes.is_alone:
            self.save_if(any(self.callbacks.call("should_save")))
        return any(self.callbacks.call("should_stop_now"))


def _training_report(
    experiment: Experiment, progress: "Progress", meter: Meter, last: StepReport, rate: float
) -> TrainingReport:
    means = meter.means()
    source_speed, target_speed = meter.tokens_per_second()
    scale = experiment.optimizer.scale
    return TrainingReport(
        step=progress.step,
        epoch=progress.position.epoch,
        objective=means["objective"],
        loss=means["negative_log_likelihood"],
        learning_rate=rate,
        gradient_norm=last.gradient_norm.item(),
        target_tokens_per_second=target_speed,
        source_tokens_per_second=source_speed,
        num_skipped=int(meter.sums["num_skipped"].item()),
        num_target_tokens=int(meter.sums["num_target_tokens"].item()),
        gradient_scale=None if scale is None else scale.value(),
    )


def _stop_if_hopeless(progress: "Progress", meter: Meter, training: TrainingConfig) -> None:
    in_a_row = int(meter.sums["num_skipped_in_a_row"].item())
    if in_a_row >= training.max_skipped_in_a_row:
        raise TrainingStoppedError(
            f"step {progress.step}: the last {in_a_row} updates had a gradient that is not finite "
            f"(epoch {progress.position.epoch}, batches up to {progress.position.batch}); all were skipped",
            hint="lower training.learning_rate or raise training.warmup_steps; the last checkpoint is intact",
        )


# How far a run has come: steps, position in the data, best scores; and when it is finished.
#
# A checkpoint holds these numbers. It holds no random states: the order of the data is a function of (seed,
# epoch), and dropout is seeded with (seed, step) before each update.


class Validated(NamedTuple):
    """The result of a validation; higher goodness is better, and the loss decides between equal values."""

    goodness: float
    """The value of `training.best_metric`, or its negative where lower is better."""
    loss: float
    """In nats per target token."""

    @property
    def rank(self) -> tuple[float, float]:
        """Higher is better; a loss that is NaN is the worst."""
        return self.goodness, -math.inf if math.isnan(self.loss) else -self.loss


@dataclass(frozen=True, slots=True)
class Progress:
    """Plain numbers, which a checkpoint holds beside weights and moments."""

    step: int = 0  # updates done, skipped ones included
    position: AnyPosition = Position(0, 0)  # of the next batch  # noqa: RUF009 - frozen
    validated_at: int = 0  # step of the last validation; 0 before the first
    best_goodness: tuple[float, ...] = ()  # `goodness` of the best validations, best first
    best_losses: tuple[float, ...] = ()  # of the same validations
    validations_without_best: int = 0
    plateau_drops: int = 0  # how often the learning rate has fallen, with schedule plateau
    # Validations in a row without a new best score since then, with schedule plateau.
    plateau_validations: int = 0
    # Micro-batches of one update, over all processes; None: training.update_tokens decides it, or an earlier version
    # made the checkpoint and did not record the number, which was training.accumulate.
    num_micro_batches: int | None = None

    def after_step(self, position: AnyPosition) -> Self:
        """After one more update; `position` is that of the next batch."""
        return replace(self, step=self.step + 1, position=position)

    def after_validation(
        self, validated: Validated, *, keep_best: int, plateau_patience: int | None = None
    ) -> Self:
        """After a validation at this step; NaN is never among the best.

        Among equal values of the metric the lowest loss is the best, and of equal losses the earliest. For
        `patience` only the metric itself counts: a tie is no new best.

        Args:
            validated: the result of the validation.
            keep_best: how many of the best results are remembered.
            plateau_patience: after so many validations in a row without a new best, the learning rate falls; None:
                it depends on the step alone.
        """
        goodness = validated.goodness
        best = list(map(Validated, self.best_goodness, self.best_losses))
        is_best = not math.isnan(goodness) and goodness > max(self.best_goodness, default=-math.inf)
        if not math.isnan(goodness):
            best.insert(self._rank(validated), validated)
        kept = best[:keep_best]
        num_waited = 0 if is_best or plateau_patience is None else self.plateau_validations + 1
        has_dropped = plateau_patience is not None and num_waited >= plateau_patience
        return replace(
            self,
            validated_at=self.step,
            best_goodness=tuple(one.goodness for one in kept),
            best_losses=tuple(one.loss for one in kept),
            validations_without_best=0 if is_best else self.validations_without_best + 1,
            plateau_drops=self.plateau_drops + has_dropped,
            plateau_validations=0 if has_dropped else num_waited,
        )

    def is_among_best(self, validated: Validated, *, keep_best: int) -> bool:
        """Whether the validation of this step, which is not counted yet, is one of the best."""
        return not math.isnan(validated.goodness) and self._rank(validated) < keep_best

    def _rank(self, validated: Validated) -> int:
        """How many of the remembered validations are at least as good."""
        best = map(Validated, self.best_goodness, self.best_losses)
        return sum(one.rank >= validated.rank for one in best)

    def known_to_all(self, processes: Processes) -> Self:
        """This progress with the position in all parts of a stream; all processes call this together."""
        if not isinstance(self.position, StreamPosition):
            return self
        return replace(self, position=self.position.known_to_all(processes.maxima))

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        if isinstance(self.position, StreamPosition):
            values["position"] = self.position.numbers()
        return values

    @classmethod
    def from_json(cls, values: StateValues | Mapping[str, Any]) -> Self:
        """Back from JSON.

        Raises:
            DataError: a value is missing, or cannot be that of a training run.
        """
        state = values if isinstance(values, StateValues) else StateValues(values, "state.json")
        step = state.count("step")
        numbers = state.counts("position", least=2)
        # A streamed corpus adds the number of a buffer and two numbers for each corpus, for each of its parts.
        if len(numbers) in (3, 4):
            raise state.refusal("position", f"has {len(numbers)} values instead of 2")
        epoch, batch, *stream = numbers
        if epoch > step or (batch and not step):
            raise state.refusal("position", f"is [{epoch}, {batch}] after {step} steps")
        best = state.numbers("best_goodness")
        # Earlier checkpoints do not have these losses: then the earlier validation wins each tie.
        has_losses = "best_losses" in state.values
        losses = (
            state.numbers("best_losses", with_nan=True) if has_losses else [-math.inf] * len(best)
        )
        if len(losses) != len(best):
            raise state.refusal("best_losses", f"has {len(losses)} values instead of {len(best)}")
        # Earlier checkpoints do not have these counts: they know one process, and no schedule plateau.
        drops, waited = (
            state.count(name, most=step + 1) if name in state.values else 0
            for name in ("plateau_drops", "plateau_validations")
        )
        is_recorded = state.values.get("num_micro_batches") is not None
        return cls(
            step=step,
            position=StreamPosition.of(numbers) if stream else Position(epoch, batch),
            validated_at=state.count("validated_at", most=step),
            best_goodness=tuple(best),
            best_losses=tuple(losses),
            validations_without_best=state.count("validations_without_best", most=step + 1),
            num_micro_batches=state.count("num_micro_batches") if is_recorded else None,
            plateau_drops=drops,
            plateau_validations=waited,
        )


def micro_batches_of_an_update(
    progress: Progress, training: TrainingConfig, num_processes: int
) -> int | None:
    """The number of micro-batches of each update, over all processes; None if `training.update_tokens` decides it.

    A new run makes an update of `training.accumulate` batches of each process. A resumed run keeps the number that
    it has recorded, with any number of processes: so its updates stay the same.

    Raises:
        ConfigError: the run goes on, and the processes cannot share out the number that it has recorded.
    """
    if training.update_tokens is not None:
        return None
    if progress.num_micro_batches is None and progress.step == 0:
        return training.accumulate * num_processes
    recorded = progress.num_micro_batches or training.accumulate
    if recorded % num_processes and not is_finished(progress, training):
        fitting = [str(n) for n in range(1, recorded + 1) if recorded % n == 0]
        raise ConfigError(
            f"batches in each update of this run: {recorded}, which {num_processes} processes cannot share out equally",
            hint=f"numbers of processes that can go on: {', '.join(fitting[:20])}, with training.accumulate as it was; or start a new run: "
            "--set name=..., or --from-scratch",
        )
    return recorded


def checked_validation(values: StateValues, progress: Progress) -> dict[str, Any]:
    """The saved figures of the last validation; empty before the first.

    Raises:
        DataError: its step or its value is not that of a training run.
    """
    if values.values:
        values.count("step", most=progress.step)
        value = values.values.get("value")
        if not isinstance(value, float) or not math.isnan(value):
            values.number("value")
    return dict(values.values)


def reaches_limit(progress: Progress, training: TrainingConfig) -> bool:
    """Whether all steps or epochs are done."""
    limits = {"training.max_steps", "training.max_epochs"}
    return not limits.isdisjoint(limits_reached(progress, training))


def limits_reached(progress: Progress, training: TrainingConfig) -> dict[str, int]:
    """The settings that end the run now, with their values."""
    counts = {
        "training.max_steps": (progress.step, training.max_steps),
        "training.max_epochs": (progress.position.epoch, training.max_epochs),
        "training.patience": (progress.validations_without_best, training.patience),
    }
    return {name: limit for name, (n, limit) in counts.items() if limit is not None and n >= limit}


def is_finished(progress: Progress, training: TrainingConfig) -> bool:
    """Whether the run is out of patience, or has done all its steps and the last validation."""
    is_at_end = reaches_limit(progress, training) and not is_validation_due(progress, training)
    return is_at_end or "training.patience" in limits_reached(progress, training)


def is_validation_due(progress: Progress, training: TrainingConfig) -> bool:
    """Whether to validate now: every `validate_every` steps and at the end, but never twice at one step."""
    if progress.validated_at == progress.step:
        return False
    return progress.step % training.validate_every == 0 or reaches_limit(progress, training)
