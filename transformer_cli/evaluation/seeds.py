"""How far the scores of one system lie apart when it is trained with several seeds."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_cli.evaluation.metrics import Measurement, num_digits


class SeedScores(NamedTuple):
    """The values of one score, one for each seed."""

    name: str
    values: list[float]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation of a sample: the squares are divided by the number of seeds less one."""
        return statistics.stdev(self.values)

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        return {**self._asdict(), "mean": self.mean, "deviation": self.deviation}

    def line(self) -> str:
        """A row of the table for people."""
        shown = (self.mean, self.deviation, min(self.values), max(self.values))
        digits = num_digits(self.name)
        return f"{self.name:<14}" + "".join(f"{value:>11.{digits}f}" for value in shown)


def scores_of_seeds(measured: Sequence[Sequence[Measurement]]) -> list[SeedScores]:
    """Each score with its value for each seed.

    Args:
        measured: for each of at least two seeds the same scores, on the same sentences.
    """
    return [
        SeedScores(measurements[0].name, [each.value() for each in measurements])
        for measurements in zip(*measured, strict=True)
    ]


def seed_lines(scores: Sequence[SeedScores]) -> list[str]:
    """The scores of several seeds as a table for people."""
    head = f"{'score':<14}{'mean':>11}{'deviation':>11}{'lowest':>11}{'highest':>11}"
    return [
        f"{len(scores[0].values)} seeds; the standard deviation is that of a sample",
        head,
        *(one.line() for one in scores),
    ]
