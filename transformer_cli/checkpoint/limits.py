"""When a run is finished: how far it has come, and the limits of its training; without PyTorch."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from transformer_cli.checkpoint.run_folder import StateValues
from transformer_cli.config import TrainingConfig


class HowFar(Protocol):
    """The counts of a run that decide whether it is finished; those of `Progress` in training/loop.py, too."""

    @property
    def step(self) -> int:
        """Updates that are done."""

    @property
    def position(self) -> Sequence[Any]:
        """The place in the data; its first number is that of the epochs that are completed."""

    @property
    def validated_at(self) -> int:
        """The step of the last validation; 0 before the first."""

    @property
    def validations_without_best(self) -> int:
        """Validations in a row without a new best score."""


class Counts(NamedTuple):
    """The counts alone."""

    step: int
    position: Sequence[int]
    validated_at: int
    validations_without_best: int

    @classmethod
    def of(cls, progress: StateValues) -> "Counts":
        """Those of the part `progress` of a checkpoint.

        Raises:
            DataError: a value is missing, or cannot be that of a training run.
        """
        position = progress.counts("position", least=2)
        names = "validated_at", "validations_without_best"
        return cls(progress.count("step"), position, *map(progress.count, names))


def reaches_limit(run: HowFar, training: TrainingConfig) -> bool:
    """Whether all steps or epochs are done."""
    return not limits_reached(run, training).keys() <= {"training.patience"}


def limits_reached(run: HowFar, training: TrainingConfig) -> dict[str, int]:
    """The settings that end the run now, with their values."""
    counts = {
        "training.max_steps": (run.step, training.max_steps),
        "training.max_epochs": (run.position[0], training.max_epochs),
        "training.patience": (run.validations_without_best, training.patience),
    }
    return {name: limit for name, (n, limit) in counts.items() if limit is not None and n >= limit}


def is_finished(run: HowFar, training: TrainingConfig) -> bool:
    """Whether the run is out of patience, or has done all its steps and the last validation."""
    is_at_end = reaches_limit(run, training) and not is_validation_due(run, training)
    return is_at_end or "training.patience" in limits_reached(run, training)


def is_validation_due(run: HowFar, training: TrainingConfig) -> bool:
    """Whether to validate now: every `validate_every` steps and at the end, but never twice at one step."""
    if run.validated_at == run.step:
        return False
    return run.step % training.validate_every == 0 or reaches_limit(run, training)
