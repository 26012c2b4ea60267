"""How far a run has come: steps, position in the data, best scores; and when it is finished.

A checkpoint holds these numbers. It holds no random states: the order of the data is a function of (seed,
epoch), and dropout is seeded with (seed, step) before each update.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from transformer_cli.checkpoint.state_values import StateValues
from transformer_cli.config import LOWER_IS_BETTER, TrainingConfig
from transformer_cli.data.batches.updates import Position


@dataclass(frozen=True, slots=True)
class Progress:
    """Plain numbers, which a checkpoint holds beside weights and moments."""

    step: int = 0  # updates done, skipped ones included
    position: Position = Position(0, 0)  # of the next batch  # noqa: RUF009 - frozen
    validated_at: int = 0  # step of the last validation; 0 before the first
    best_goodness: tuple[float, ...] = ()  # `goodness` of the best validations, best first
    validations_without_best: int = 0

    def after_step(self, position: Position) -> Self:
        """After one more update; `position` is that of the next batch."""
        return replace(self, step=self.step + 1, position=position)

    def after_validation(self, goodness: float, *, keep_best: int) -> Self:
        """After a validation at this step; NaN is never among the best."""
        is_best = not math.isnan(goodness) and goodness > max(self.best_goodness, default=-math.inf)
        known = self.best_goodness if math.isnan(goodness) else (*self.best_goodness, goodness)
        return replace(
            self,
            validated_at=self.step,
            best_goodness=tuple(sorted(known, reverse=True)[:keep_best]),
            validations_without_best=0 if is_best else self.validations_without_best + 1,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: StateValues | Mapping[str, Any]) -> Self:
        """Back from JSON.

        Raises:
            DataError: a value is missing, or cannot be that of a training run.
        """
        state = values if isinstance(values, StateValues) else StateValues(values, "state.json")
        step = state.count("step")
        epoch, batch = state.counts("position", length=2)
        if epoch > step or (batch and not step):
            raise state.refusal("position", f"is [{epoch}, {batch}] after {step} steps")
        return cls(
            step=step,
            position=Position(epoch, batch),
            validated_at=state.count("validated_at", most=step),
            best_goodness=tuple(state.numbers("best_goodness")),
            validations_without_best=state.count("validations_without_best", most=step + 1),
        )


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
