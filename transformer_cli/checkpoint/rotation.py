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
    """How many of the newest checkpoints are kept, and how many of the best by a metric.

    `num_regular` more are kept for an average at the end of the run: the newest whose step is a multiple of
    `save_every`. Checkpoints of other steps do not count, because an interruption saves at any step.
    """

    keep_last: int = 2
    keep_best: int = 1
    metric: str = "loss"
    num_regular: int = 0
    save_every: int = 1

    @classmethod
    def of(cls, training: TrainingConfig) -> "Retention":
        """The retention that a config asks for."""
        num_regular = (training.average_last or 0) if training.average_of == "last" else 0
        kept = training.keep_last, training.num_kept_best
        return cls(*kept, training.best_metric, num_regular, training.save_every)

    def superfluous(self, checkpoints: Iterable[Scored]) -> set[int]:
        """The steps whose checkpoints are neither among the newest nor among the best."""
        checkpoints = list(checkpoints)
        newest = sorted((checkpoint.step for checkpoint in checkpoints), reverse=True)
        best = best_first(checkpoints, self.metric)
        regular = [step for step in newest if step % self.save_every == 0]
        kept = {*newest[: self.keep_last], *best[: self.keep_best], *regular[: self.num_regular]}
        return set(newest) - kept

    @property
    def most(self) -> int:
        """The largest number of checkpoints that are kept."""
        return self.keep_last + self.keep_best + self.num_regular


def best_first(checkpoints: Iterable[Scored], metric: str) -> list[int]:
    """The steps that have a score, the best first; equal scores are sorted by loss, then by step."""
    keys = (badness(one, metric) for one in checkpoints)
    return [key[-1] for key in sorted(key for key in keys if key is not None)]


def badness(scored: Scored, metric: str) -> tuple[float, float, int] | None:
    """The key by which checkpoints are sorted, best first: score, loss, step; None without a score."""
    if scored.score is None:
        return None
    sign = 1 if metric in LOWER_IS_BETTER else -1
    return sign * scored.score, scored.loss, scored.step
