"""Where a run stands: all that a resumed run must know beside weights and moments."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from transformer_cli.config import LOWER_IS_BETTER, TrainingConfig
from transformer_cli.data.batches.updates import Position
from transformer_cli.errors import DataError
from transformer_cli.training.step import StepReport


@dataclass(frozen=True, slots=True)
class Progress:
    """The part that is made of plain numbers."""

    step: int = 0  # updates done, skipped ones included
    position: Position = Position(0, 0)  # the next batch  # noqa: RUF009 - frozen
    validated_at: int = 0  # step of the last validation; 0 before the first
    best_goodness: tuple[float, ...] = ()  # of the best validations, best first; higher is better
    validations_without_best: int = 0

    def after_step(self, position: Position) -> Self:
        """One more update done, `position` comes next."""
        return replace(self, step=self.step + 1, position=position)

    def after_validation(self, goodness: float, *, keep_best: int) -> Self:
        """The validation at this step is counted; a NaN is never among the best."""
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
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Back from JSON.

        Raises:
            DataError: keys or types are not those that were written.
        """
        try:
            numbers = {
                key: int(values[key])
                for key in ("step", "validated_at", "validations_without_best")
            }
            epoch, batch = map(int, values["position"])
            best = tuple(float(value) for value in values["best_goodness"])
            return cls(position=Position(epoch, batch), best_goodness=best, **numbers)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"state.json: not the state of a training run: {error!r}") from error


def goodness(value: float, metric: str) -> float:
    """A score with its sign turned where lower is better, so that higher is always better."""
    return -value if metric in LOWER_IS_BETTER else value


def reaches_limit(progress: Progress, training: TrainingConfig) -> bool:
    """Whether all steps or epochs are done."""
    return (training.max_steps is not None and progress.step >= training.max_steps) or (
        training.max_epochs is not None and progress.position.epoch >= training.max_epochs
    )


def is_out_of_patience(progress: Progress, training: TrainingConfig) -> bool:
    """Whether too many validations in a row brought no new best."""
    return training.patience is not None and progress.validations_without_best >= training.patience


def limits_reached(progress: Progress, training: TrainingConfig) -> list[str]:
    """Which settings have ended the run, as people write them."""
    reached = []
    if training.max_steps is not None and progress.step >= training.max_steps:
        reached.append(f"training.max_steps={training.max_steps}")
    if training.max_epochs is not None and progress.position.epoch >= training.max_epochs:
        reached.append(f"training.max_epochs={training.max_epochs}")
    if is_out_of_patience(progress, training):
        reached.append(f"training.patience={training.patience}")
    return reached


def is_finished(progress: Progress, training: TrainingConfig) -> bool:
    """Whether nothing is left to do, the last validation included."""
    is_at_end = reaches_limit(progress, training) and not is_validation_due(progress, training)
    return is_at_end or is_out_of_patience(progress, training)


def is_validation_due(progress: Progress, training: TrainingConfig) -> bool:
    """At the cadence and at the end, unless it was done at this step."""
    if progress.validated_at == progress.step:
        return False
    return progress.step % training.validate_every == 0 or reaches_limit(progress, training)


class Meter:
    """Sums since the last report, on the device; read only when a report is made."""

    LOSSES = ("objective", "negative_log_likelihood")
    FIELDS = (*LOSSES, "num_target_tokens", "num_skipped", "num_skipped_in_a_row")

    def __init__(self, device: torch.device) -> None:
        # float64 where there is one: sums over many steps, and exact in the state of a run.
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.sums: dict[str, Tensor] = {
            name: torch.zeros((), dtype=dtype, device=device) for name in self.FIELDS
        }
        # What went through the model in this process, skipped or not: for the speed.
        self.num_source_tokens_seen = 0
        self.num_target_tokens_seen = 0

    def add(self, report: StepReport) -> None:
        """Count one update; one whose gradient is not finite counts as skipped and no more."""
        is_skipped = ~report.is_finite
        for name in self.LOSSES:
            value = getattr(report, name).to(self.sums[name].dtype)
            self.sums[name] += torch.where(is_skipped, 0.0, value)
        self.sums["num_target_tokens"] += report.num_target_tokens * report.is_finite
        self.sums["num_skipped"] += is_skipped
        in_a_row = self.sums["num_skipped_in_a_row"]
        self.sums["num_skipped_in_a_row"] = (in_a_row + 1) * is_skipped
        self.num_source_tokens_seen += report.num_source_tokens
        self.num_target_tokens_seen += report.num_target_tokens

    def start_interval(self) -> None:
        """Forget what was reported; skipped updates are counted over the whole run."""
        for name in (*self.LOSSES, "num_target_tokens"):
            self.sums[name] = torch.zeros_like(self.sums[name])

    def to_json(self) -> dict[str, float]:
        return {name: value.item() for name, value in self.sums.items()}

    def restore(self, values: Mapping[str, float]) -> None:
        """Put back what `to_json` gave.

        Raises:
            DataError: keys or types are not those that were written.
        """
        try:
            for name in self.FIELDS:
                self.sums[name].fill_(float(values[name]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"state.json: not the state of a training run: {error!r}") from error
