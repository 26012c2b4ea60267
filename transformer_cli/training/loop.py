"""The training loop: update, report, validate, save, until the run is finished or asked to stop; how far a run has come; one update, with its objective.

One update, in the order in which it happens:

1.  The learning rate of this step is set; it is a pure function of the step and, for the schedule plateau, of
    a count that `Progress` holds (optimizers.py).
2.  Dropout's random numbers are seeded with (seed, step) and the number of the micro-batch, so no random state needs
    saving.
3.  `Updates` hands over the micro-batches of the update: sentence pairs as padded token ids. A thread
    has prepared them ahead of time (data/updates.py).
4.  For each micro-batch: its tensors go to the device; the objective runs the model forward and sums
    the loss over the target tokens (`train_step`, model/transformer.py, model/loss.py); the sum is divided
    by the number of target tokens of the whole update; the backward pass adds to the gradients. With
    `runtime.cuda_graphs`, a recording of all this is replayed (acceleration/recorded_passes.py).
5.  Several processes sum their gradients and losses (process_group.py). In float16 the losses were multiplied
    by a scale, and the gradients are now divided by it (optimizers.py). The gradient norm is measured, then
    clipped to `training.clip_norm`.
6.  The optimizer changes the weights, unless the gradient has a NaN or an infinity (optimizers.py). With
    `training.ema_decay`, the moving average of the weights follows (also optimizers.py). So far, all from the
    forward pass on stands in `train_step`; `UpdateRunner.run` calls it, again with smaller batches if memory was too small.
7.  `Progress` counts the step and takes over the position in the data; the `Meter` adds up losses on
    the device, and the CPU does not wait (callbacks.py).
8.  Every `log_every` steps the sums are read and reported; every `save_every` steps a checkpoint is written;
    every `validate_every` steps the model is validated, and for each new best score a checkpoint is written
    (run.py). Each of these calls the callbacks (callbacks.py).

If a save and a validation are due at the same step, the save comes first: a validation may take long, and a
process that is killed during it has lost nothing. The resumed run then does the validation again, with the same
result. If the validation is among the best, a checkpoint with its result replaces the one of this step. If not,
only the next checkpoint has its result, and a run that is killed before it does the validation again.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Tensor

from transformer_cli.acceleration import accelerated_loss
from transformer_cli.acceleration.cpu_training import with_tokens_in_all
from transformer_cli.acceleration.recorded_passes import RecordedPasses, recorder_on
from transformer_cli.checkpoint.limits import is_finished, is_validation_due, reaches_limit
from transformer_cli.checkpoint.run_folder import StateValues
from transformer_cli.config import Config, TrainingConfig
from transformer_cli.data.updates import AnyPosition, Batch, Position, StreamPosition, Updates
from transformer_cli.model import LossSums, SmoothedLabels, Transformer
from transformer_cli.model.layers import aligning_weights
from transformer_cli.model.loss import alignment_loss, likelihood_loss, r_drop_loss, simcut_loss
from transformer_cli.process.device import Machine, derive_seed, seed_generators
from transformer_cli.process.errors import ConfigError, TrainingStoppedError, TryAgainError, is_out_of_memory
from transformer_cli.text import Tokenizer
from transformer_cli.training.callbacks import Callbacks, Meter, StepReport
from transformer_cli.training.optimizers import MovingAverage, Optimizer, clear_start, learning_rate
from transformer_cli.training.process_group import ALONE, GradientSums, Processes, whole


@dataclass(frozen=True, slots=True)
class Experiment:
    """What stays the same from the first step to the last."""

    model: Transformer
    optimizer: Optimizer
    objective: "Objective"
    updates: Updates
    training: TrainingConfig
    machine: Machine
    runner: "UpdateRunner"
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
    state = _State(progress, meter, training, validate, save, callbacks, experiment.runner.processes)
    meter.start_lap()
    while True:
        is_at_end = reaches_limit(state.progress, training)
        is_save_due = state.progress.step % training.save_every == 0 or is_at_end
        must_validate = is_validation_due(state.progress, training)
        with meter.paused(is_long=is_save_due or must_validate):
            state.save_if(is_save_due)
            if must_validate:
                state.run_validation()
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
        report = experiment.runner.run(
            model,
            optimizer,
            experiment.objective,
            next(experiment.updates),
            seed=derive_seed(experiment.seed, "step", step),
            clip_norm=training.clip_norm,
        )
        if experiment.average is not None:
            experiment.average.update(step, report.is_finite)
        state.progress = replace(state.progress, step=step, position=experiment.updates.position)
        state.is_saved = False
        meter.add(report)
        callbacks.call("on_step", step, report)
        if step % training.log_every == 0 or reaches_limit(state.progress, training):
            scale = None if optimizer.scale is None else optimizer.scale.value()
            epoch = state.progress.position.epoch
            measured = meter.end_interval(step, epoch, report, learning_rate=rate, gradient_scale=scale)
            callbacks.call("on_report", measured)
            meter.start_lap()
        # Reading the count makes the CPU wait for a GPU, so with a GPU it is read rarely.
        is_free_to_read = experiment.machine.device.type == "cpu"
        if is_free_to_read or step % training.max_skipped_in_a_row == 0:
            in_a_row = int(meter.sums["num_skipped_in_a_row"].item())
            if in_a_row >= training.max_skipped_in_a_row:
                position = state.progress.position
                raise TrainingStoppedError(
                    f"step {step}: the last {in_a_row} updates had a gradient that is not finite "
                    f"(epoch {position.epoch}, batches up to {position.batch}); all were skipped",
                    hint="lower training.learning_rate or raise training.warmup_steps; the last checkpoint is intact",
                )


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

    def run_validation(self) -> None:
        """Validate; but not after a request to stop, when time may be short: the resumed run validates."""
        self.heed_callbacks()
        if self.is_stopped:
            return
        validated = self.validate(self.progress.step, self.heed_urgent_callbacks)
        if validated is None:
            self.is_stopped = True
            return
        self.progress, is_among_best = self.progress.after_validation(
            validated, keep_best=self.training.num_kept_best, plateau_patience=self.training.patience_of_plateau
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


# How far a run has come: steps, position in the data, best scores.
#
# A checkpoint holds these numbers. It holds no random states: the order of the data is a function of (seed,
# epoch), and dropout is seeded with (seed, step) before each update.


class Validated(NamedTuple):
    """The result of a validation; higher goodness is better, and the loss decides between equal values."""

    goodness: float
    """The value of `training.best_metric`, or its negative where lower is better."""
    loss: float
    """In nats per target token."""


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

    def after_validation(
        self, validated: Validated, *, keep_best: int, plateau_patience: int | None = None
    ) -> tuple[Self, bool]:
        """The progress after a validation at this step, and whether the validation is among the best; NaN never is.

        Among equal values of the metric the lowest loss is the best, and of equal losses the earliest; a loss that is
        NaN is the worst. For `patience` only the metric itself counts: a tie is no new best.

        Args:
            validated: the result of the validation.
            keep_best: how many of the best results are remembered.
            plateau_patience: after so many validations in a row without a new best, the learning rate falls; None:
                it depends on the step alone.
        """
        goodness = validated.goodness
        best = list(map(Validated, self.best_goodness, self.best_losses))
        is_best = not math.isnan(goodness) and goodness > max(self.best_goodness, default=-math.inf)
        if not math.isnan(goodness):  # sorting leaves the earliest of equal ones first
            best = sorted(
                [*best, validated],
                key=lambda one: (one.goodness, -math.inf if math.isnan(one.loss) else -one.loss),
                reverse=True,
            )
        kept = best[:keep_best]
        num_waited = 0 if is_best or plateau_patience is None else self.plateau_validations + 1
        has_dropped = plateau_patience is not None and num_waited >= plateau_patience
        progress = replace(
            self,
            validated_at=self.step,
            best_goodness=tuple(one.goodness for one in kept),
            best_losses=tuple(one.loss for one in kept),
            validations_without_best=0 if is_best else self.validations_without_best + 1,
            plateau_drops=self.plateau_drops + has_dropped,
            plateau_validations=0 if has_dropped else num_waited,
        )
        return progress, any(one is validated for one in kept)

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
        losses = state.numbers("best_losses", with_nan=True) if has_losses else [-math.inf] * len(best)
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


def micro_batches_of_an_update(progress: Progress, training: TrainingConfig, num_processes: int) -> int | None:
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


# One update of the weights: micro-batches in, report out; the objectives; and what stands around an update in one process.


def train_step(
    model: Transformer,
    optimizer: Optimizer,
    objective: "Objective",
    batches: Iterable[Batch],
    *,
    runner: "UpdateRunner",
    num_source_tokens: int,
    num_target_tokens: int,
    clip_norm: float | None,
) -> StepReport:
    """Sum the gradients of all micro-batches, of all processes; divide once by their target tokens; update once.

    Target tokens include [EOS], not padding. If the gradient is not finite (NaN or infinity), the weights stay as
    they are; `training.max_skipped_in_a_row` says after how many such updates the loop stops.

    Args:
        model: in training mode, on the device of `runner`.
        optimizer: of this model, with the learning rate of this update.
        objective: what is minimised.
        batches: those of this update that this process computes, on the device of `runner`.
        runner: calls this function; it has the precision of the machine, the other processes and the recorded passes.
        num_source_tokens: of this update, in all processes.
        num_target_tokens: of this update, in all processes.
        clip_norm: largest norm of the gradient over all parameters; None: no clipping.

    Source: Vaswani et al. 2017, section 5.
    """
    scale = optimizer.scale
    if runner.recorded is not None:
        losses = runner.recorded.sum_gradients(batches, num_target_tokens=num_target_tokens)
    else:
        optimizer.zero_grad()
        losses = []
        for batch in batches:
            with runner.machine.autocast():
                sums = objective(model, batch)
            # Divide by the tokens of the whole update: a mean of means would overweight short batches.
            loss = sums.objective / max(num_target_tokens, 1)
            if scale is not None:  # in float16
                loss = scale.scaled(loss)
            loss.backward()
            losses.append(LossSums(*(one.detach() for one in sums)))
    summed_losses = runner.summed(losses)
    if scale is not None:
        scale.unscale(optimizer.torch_optimizers)
    if model.config.start_embedding == "zero":
        clear_start(model)
    gradient_norm = optimizer.measure_and_clip(clip_norm)
    if runner.is_sharded:
        gradient_norm = whole(gradient_norm)
    is_finite = torch.isfinite(gradient_norm)
    # Without a target token the gradient is 0, but Adam's moments would still move the weights.
    if num_target_tokens:
        optimizer.step_if(is_finite)
    return StepReport(
        objective=summed_losses.objective,
        negative_log_likelihood=summed_losses.negative_log_likelihood,
        gradient_norm=gradient_norm,
        is_finite=is_finite,
        num_source_tokens=num_source_tokens,
        num_target_tokens=num_target_tokens,
        is_scale_too_large=None if scale is None else scale.adapt(is_finite),
    )


# Objectives: a model and a batch in, sums of losses out.


class Objective(Protocol):
    """What training minimises. It runs the model itself, once or as often as it needs to."""

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """Sums over the target tokens of a batch that lies on the model's device.

        The sums are not divided: the caller divides by the target tokens of the whole update.
        """


def build_objective(
    training: TrainingConfig, vocab_size: int, device: torch.device, *, is_compiled: bool = False
) -> Objective:
    """The objective that a config asks for.

    Args:
        training: names the objective and its settings.
        vocab_size: of the target.
        device: of the model; its fastest form of the loss is used.
        is_compiled: whether torch.compile makes kernels for the losses.
    """
    labels = SmoothedLabels.of(vocab_size, Tokenizer.pad_id, training.label_smoothing, training.smoothed_over)
    if training.r_drop is not None:
        loss = accelerated_loss(r_drop_loss, device, is_compiled=is_compiled)
        return RDrop(labels, training.r_drop, loss)
    if training.simcut is not None:
        loss = accelerated_loss(simcut_loss, device, is_compiled=is_compiled)
        return SimCut(labels, training.simcut.weight, loss)
    loss = accelerated_loss(likelihood_loss, device, is_compiled=is_compiled)
    if training.guided_alignment is not None:
        return GuidedAlignment(labels, training.guided_alignment, loss)
    return LabelSmoothedLikelihood(labels, loss)


@dataclass(frozen=True, slots=True)
class LabelSmoothedLikelihood:
    """Cross-entropy with smoothed labels.

    Source: Vaswani et al. 2017, section 5.4.
    """

    labels: SmoothedLabels
    loss: Callable[..., LossSums] = likelihood_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        decoder_output = model.decoder_output(
            batch.source_ids, _with_note(batch.padding_mask, batch), batch.decoder_input_ids
        )
        return self.loss(model.output, decoder_output, batch.target_ids, self.labels)


@dataclass(frozen=True, slots=True)
class GuidedAlignment:
    """Cross-entropy with smoothed labels, and `weight` times the `alignment_loss` of the attention that `model.alignment_head` names.

    Source: Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation", equation 8.
    """

    labels: SmoothedLabels
    weight: float
    loss: Callable[..., LossSums] = likelihood_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        noted: list[Tensor] = []
        decoder_output = model.decoder_output(
            batch.source_ids, batch.padding_mask, batch.decoder_input_ids, {model.config.aligning_layer: noted.append}
        )
        sums = self.loss(model.output, decoder_output, batch.target_ids, self.labels)
        if not noted or batch.alignment is None:  # LayerDrop skips the layer; a batch without links
            return sums
        weights = aligning_weights(noted[0], model.config)
        alignment_term = alignment_loss(weights, batch.alignment)
        return sums._replace(objective=sums.objective + self.weight * alignment_term)


@dataclass(frozen=True, slots=True)
class RDrop:
    """L(P) + L(Q) + alpha / 2 (KL(P || Q) + KL(Q || P)): a batch runs twice, with different dropout, and gives two predictions P and Q.

    L is the cross-entropy with smoothed labels; the sum is computed by `r_drop_loss` of model/loss.py. Both runs are one
    forward pass over a batch that holds each row twice: dropout draws another mask for the copy. The gradient is about
    twice that of one run; the reported likelihood is the mean of both.

    Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", section 2.1.
    """

    labels: SmoothedLabels
    alpha: float
    loss: Callable[..., LossSums] = r_drop_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        decoded = _decoded_twice(model, batch)
        return self.loss(model.output, decoded, batch.target_ids, self.labels, self.alpha)


@dataclass(frozen=True, slots=True)
class SimCut:
    """L(P) + weight KL(P || Q): P is the prediction of a batch, and Q that of its copy, whose embeddings are cut.

    L is the cross-entropy with smoothed labels; the sum is computed by `simcut_loss` of model/loss.py. The model cuts the copy
    (`model.layers.TokenCutoff`), which stands behind the batch in one forward pass; dropout draws another mask for it, too.

    Source: Gao et al. 2022, "Bi-SimCut: A Simple Strategy for Boosting Neural Machine Translation", section 3.
    """

    labels: SmoothedLabels
    weight: float
    loss: Callable[..., LossSums] = simcut_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        decoded = _decoded_twice(model, batch)
        return self.loss(model.output, decoded, batch.target_ids, self.labels, self.weight)


def _decoded_twice(model: Transformer, batch: Batch) -> Tensor:
    """(2 B, T, D): the decoder's output for each row of a batch, and then for each row once more."""
    mask = batch.padding_mask
    return model.decoder_output(
        _twice(batch.source_ids),
        _with_note(None if mask is None else _twice(mask), batch),
        _twice(batch.decoder_input_ids),
    )


def _with_note(mask: Tensor | None, batch: Batch) -> Tensor | None:
    """A mask of the sources of a batch, with the note for the twins of acceleration/ that each source has a token, if the CPU knows it."""
    return mask if mask is None or not batch.sources_have_tokens else with_tokens_in_all(mask)


def _twice(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows])


# What stands around an update in one process: its machine and memory, dropout's seeds, and the processes that train together.


@dataclass(slots=True)
class UpdateRunner:
    """What runs an update: the machine of this process, the processes that train together with it, its recordings, and what fits into memory.

    An update in parts has the tokens, the losses and the gradient of the whole update, except for rounding,
    because sums are divided by the tokens of all parts. With dropout it is another update: each part draws
    masks of its own.

    The size that fits is remembered for one session and is not saved: a resumed run may have more memory. So a
    run whose memory was too small cannot be repeated bit for bit.
    """

    machine: Machine
    processes: Processes = ALONE
    gradient_sums: GradientSums | None = None
    """With several processes."""
    recorded: RecordedPasses | None = None
    """With CUDA graphs (`are_recorded`)."""
    is_sharded: bool = False
    """With `runtime.sharding: full`; the processes exchange weights during an update, so all must run the same number of batches."""
    max_cells: int | None = None
    """The largest batch that fitted after a larger one did not, as `Batch.num_cells`; None: all batches fitted."""
    _has_gradients: bool = field(default=False, init=False)
    """Whether the running update has the gradients of all its batches."""

    def run(
        self,
        model: Transformer,
        optimizer: Optimizer,
        objective: Objective,
        micro_batches: Sequence[Batch],
        *,
        seed: int,
        clip_norm: float | None,
    ) -> StepReport:
        """One update, `train_step`; when memory is too small for its gradients, it starts again with each batch cut in two halves.

        Args:
            model, optimizer, objective, clip_norm: as in `train_step`.
            micro_batches: of this process, on the CPU; those larger than `max_cells` are cut before the first attempt.
            seed: of the update; it decides dropout's random numbers.

        Raises:
            TryAgainError: memory cannot hold a single sentence; or a process has ended.
        """
        num_source_tokens, num_target_tokens = self._num_tokens(micro_batches)
        batches, num_halvings, has_failed = micro_batches, 0, False
        if self.max_cells is not None:
            batches, num_halvings = _cut_to(self.max_cells, batches)
        while True:
            self._has_gradients = False
            if self.gradient_sums is not None:
                self.gradient_sums.begin(len(batches))
            try:
                report = train_step(
                    model,
                    optimizer,
                    objective,
                    self._seeded_on_device(batches, seed),
                    runner=self,
                    num_source_tokens=num_source_tokens,
                    num_target_tokens=num_target_tokens,
                    clip_norm=clip_norm,
                )
                break
            except (RuntimeError, MemoryError) as error:
                # With all gradients, weights and moments may have changed already.
                if self._has_gradients or not is_out_of_memory(error):
                    raise
                batches = self._halves_after(error, batches)
            # After the `except` block the exception is gone, and with it the last reference to the tensors.
            torch.cuda.empty_cache()
            num_halvings, has_failed = num_halvings + 1, True
        if has_failed:
            self.max_cells = max(batch.num_cells for batch in batches)
        if self.gradient_sums is not None:
            num_halvings = self.processes.maxima(num_halvings)[0]
        return replace(report, num_halvings=num_halvings)

    def summed(self, losses: Sequence[LossSums]) -> LossSums:
        """The sums of the losses of all batches, of all processes; with several processes, each gradient becomes its sum, too."""
        self._has_gradients = True
        sums = [torch.stack(parts).sum() for parts in zip(*losses, strict=True)]
        if self.gradient_sums is not None:
            sums = self.gradient_sums.finish(sums)
        return LossSums(*sums)

    def _num_tokens(self, micro_batches: Sequence[Batch]) -> tuple[int, int]:
        """The source and the target tokens of an update, in all processes."""
        num_source_tokens = sum(batch.num_source_tokens for batch in micro_batches)
        num_target_tokens = sum(batch.num_target_tokens for batch in micro_batches)
        if not self.processes.is_alone:
            num_source_tokens, num_target_tokens = self.processes.sums(num_source_tokens, num_target_tokens)
        return num_source_tokens, num_target_tokens

    def _seeded_on_device(self, batches: Iterable[Batch], seed: int) -> Iterator[Batch]:
        """Each batch, after its seed, on the device of the machine."""
        seeded = with_seeds_of_dropout(batches, seed)
        if self.machine.device.type == "cpu":  # where a batch is made
            return seeded
        return map(partial(Batch.to, device=self.machine.device), seeded)

    def _halves_after(self, error: Exception, batches: Sequence[Batch]) -> list[Batch]:
        """The batches in halves, because memory was too small for them."""
        if self.is_sharded:
            raise _out_of_memory("and with runtime.sharding: full, batches cannot be cut in halves") from error
        halves = [half for batch in batches for half in batch.halves()]
        if len(halves) == len(batches):
            raise _out_of_memory("even with a single sentence at a time") from error
        return halves


def build_runner(
    config: Config,
    model: Transformer,
    optimizer: Optimizer,
    objective: Objective,
    machine: Machine,
    processes: Processes,
) -> UpdateRunner:
    """The runner of updates that a config asks for; arguments as in `UpdateRunner.run`.

    Args:
        model: lies on the device of the machine already.
        processes: those that train together.
    """
    runner = UpdateRunner(machine, processes, is_sharded=config.runtime.sharding == "full")
    if not processes.is_alone:
        runner.gradient_sums = GradientSums(model.parameters_by_gradient(), processes)
    if machine.records_passes and config.runtime.cuda_graphs is not False:  # a run that began without goes on without
        record = recorder_on(machine.device)
        scaled = None if optimizer.scale is None else optimizer.scale.scaled
        runner.recorded = RecordedPasses(model, objective, machine, record, scaled=scaled)
    return runner


def with_seeds_of_dropout(batches: Iterable[Batch], seed_of_update: int) -> Iterator[Batch]:
    """Each batch; before the first part of a micro-batch, dropout is seeded.

    The seed depends on the update and the number of the micro-batch, so the number of processes does not matter.
    """
    number = None
    for batch in batches:
        if batch.number == number:
            pass  # the second half goes on with the random numbers of the first
        else:
            is_first = batch.number == 0
            seed_generators(seed_of_update if is_first else derive_seed(seed_of_update, "micro-batch", batch.number))
        number = batch.number
        yield batch


def _cut_to(max_cells: int, batches: Sequence[Batch]) -> tuple[Sequence[Batch], int]:
    """The batches in parts of at most `max_cells`, or of one sentence; and how often they were cut in two."""
    num_halvings = 0
    while True:
        parts = [part for batch in batches for part in (batch.halves() if batch.num_cells > max_cells else [batch])]
        if len(parts) == len(batches):
            return batches, num_halvings
        batches, num_halvings = parts, num_halvings + 1


def _out_of_memory(when: str) -> TryAgainError:
    return TryAgainError(
        f"out of memory, {when}", hint="lower training.batch_tokens or model.max_length, or close other programs"
    )
