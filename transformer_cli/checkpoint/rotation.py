"""The checkpoints that are kept: the newest and the best."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli.config import LOWER_IS_BETTER, TrainingConfig


class Scored(NamedTuple):
    """The step of a checkpoint, its score, and its loss on the same text, which decides between equal scores."""

    step: int
    score: float | None
    loss: float = math.inf


@dataclass(frozen=True, slots=True)
class Retention:
    """How many of the newest checkpoints are kept, and how many of the best by a metric."""

    keep_last: int = 2
    keep_best: int = 1
    metric: str = "loss"

    @classmethod
    def of(cls, training: TrainingConfig) -> "Retention":
        """The retention that a config asks for."""
        return cls(training.keep_last, training.keep_best, training.best_metric)

    def superfluous(self, checkpoints: Iterable[Scored]) -> set[int]:
        """The steps whose checkpoints are neither among the newest nor among the best."""
        checkpoints = list(checkpoints)
        newest = sorted((checkpoint.step for checkpoint in checkpoints), reverse=True)
        best = best_first(checkpoints, self.metric)
        kept = {*newest[: self.keep_last], *best[: self.keep_best]}
        return set(newest) - kept


def best_first(checkpoints: Iterable[Scored], metric: str) -> list[int]:
    """The steps that have a score, the best first; equal scores are sorted by loss, then by step."""
    sign = 1 if metric in LOWER_IS_BETTER else -1
    scored = (
        (sign * one.score, one.loss, one.step) for one in checkpoints if one.score is not None
    )
    return [step for *_, step in sorted(scored)]
