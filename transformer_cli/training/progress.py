"""How far a run has come: steps, position in the data, best scores; and when it is finished.

A checkpoint holds these numbers. It holds no random states: the order of the data is a function of (seed,
epoch), and dropout is seeded with (seed, step) before each update.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

from transformer_cli.checkpoint.run_folder import StateValues
from transformer_cli.config import LOWER_IS_BETTER, TrainingConfig
from transformer_cli.data.updates import AnyPosition, Position, StreamPosition
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.process_group import Processes


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
            best.insert(self._place(validated), validated)
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
        return not math.isnan(validated.goodness) and self._place(validated) < keep_best

    def _place(self, validated: Validated) -> int:
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


def goodness(value: float, metric: str) -> float:
    """The score, or its negative where lower is better: higher goodness is always better."""
    return -value if metric in LOWER_IS_BETTER else value


def reaches_limit(progress: Progress, training: TrainingConfig) -> bool:
    """Whether all steps or epochs are done."""
    limits = {"training.max_steps", "training.max_epochs"}
    return not limits.isdisjoint(_limits_reached(progress, training))


def is_out_of_patience(progress: Progress, training: TrainingConfig) -> bool:
    """Whether `patience` validations in a row brought no new best score."""
    return "training.patience" in _limits_reached(progress, training)


def limits_reached(progress: Progress, training: TrainingConfig) -> list[str]:
    """The settings that ended the run, as a user writes them."""
    return [f"{name}={value}" for name, value in _limits_reached(progress, training).items()]


def _limits_reached(progress: Progress, training: TrainingConfig) -> dict[str, int]:
    counts = {
        "training.max_steps": (progress.step, training.max_steps),
        "training.max_epochs": (progress.position.epoch, training.max_epochs),
        "training.patience": (progress.validations_without_best, training.patience),
    }
    return {name: limit for name, (n, limit) in counts.items() if limit is not None and n >= limit}


def is_finished(progress: Progress, training: TrainingConfig) -> bool:
    """Whether the run is out of patience, or has done all its steps and the last validation."""
    is_at_end = reaches_limit(progress, training) and not is_validation_due(progress, training)
    return is_at_end or is_out_of_patience(progress, training)


def is_validation_due(progress: Progress, training: TrainingConfig) -> bool:
    """Whether to validate now: every `validate_every` steps and at the end, but never twice at one step."""
    if progress.validated_at == progress.step:
        return False
    return progress.step % training.validate_every == 0 or reaches_limit(progress, training)
