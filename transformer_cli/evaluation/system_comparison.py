"""Compares two systems on the same sentences: the difference of each score, and whether it is significant."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from transformer_cli.evaluation.metrics import Measurement, num_digits
from transformer_cli.evaluation.scores import randomization, resampling

SIGNIFICANT = 0.05
SignificanceTest = Literal["bootstrap", "randomization"]
_TESTS: dict[SignificanceTest, tuple[str, int]] = {
    "bootstrap": ("paired bootstrap", resampling.NUM_SAMPLES),
    "randomization": ("approximate randomization", randomization.NUM_TRIALS),
}


class Difference(NamedTuple):
    """A score of this system and of the other one."""

    name: str
    value: float
    other: float
    p_value: float
    """How often chance alone makes a difference as large as this one."""


class Comparison(NamedTuple):
    """The differences of two systems, by paired bootstrap resampling (Koehn 2004) or approximate randomisation."""

    other: str
    """The name of the other system: a run or a file."""
    differences: list[Difference]
    test: SignificanceTest = "bootstrap"
    """Which computes the p-values."""

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        return {
            "name": self.other,
            "test": self.test,
            "samples": _TESTS[self.test][1],
            "seed": resampling.SEED,
            "scores": [difference._asdict() for difference in self.differences],
        }

    def lines(self) -> list[str]:
        """A table for people."""
        test, num_samples = _TESTS[self.test]
        return [
            f"against {self.other}: {test}, {num_samples:,} samples; * for p < {SIGNIFICANT}",
            f"{'score':<14}{'this':>9}{'other':>9}{'difference':>12}{'p-value':>9}",
            *map(_line, self.differences),
        ]


def compare(
    measured: Sequence[Measurement],
    others: Sequence[Measurement],
    other: str,
    test: SignificanceTest = "bootstrap",
) -> Comparison:
    """Compare this system with another one.

    Args:
        measured: the scores of this system.
        others: the same scores of the other system, on the same sentences.
        other: its name.
        test: computes the p-values.
    """
    differences = [_difference(mine, its, test) for mine, its in zip(measured, others, strict=True)]
    return Comparison(other, differences, test)


def _difference(mine: Measurement, its: Measurement, test: SignificanceTest) -> Difference:
    value, other = mine.value(), its.value()
    if test == "randomization":
        p_value = randomization.randomized_p_value(mine.metric, mine.statistics, its.statistics)
    else:
        p_value = resampling.paired_p_value(mine.resampled(), its.resampled(), value - other)
    return Difference(mine.name, value, other, p_value)


def _line(difference: Difference) -> str:
    name, value, other, p_value = difference
    digits = num_digits(name)
    mark = " *" if p_value < SIGNIFICANT else ""
    return (
        f"{name:<14}{value:>9.{digits}f}{other:>9.{digits}f}{value - other:>+12.{digits}f}"
        f"{p_value:>9.3f}{mark}"
    )
