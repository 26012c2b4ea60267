"""Compares two systems on the same sentences: the difference of each score, and whether it is significant."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric

from transformer_cli.evaluation.metrics import (
    NUM_SAMPLES,
    SEED,
    Measurement,
    num_digits,
    paired_p_value,
)

# Approximate randomisation: a test whether the difference of two systems is significant.
#
# If two systems are equally good, then it does not matter which of the two translations of a sentence belongs to which
# system. So the translations of randomly chosen sentences are exchanged, many times, and the difference of the two
# mixed systems is compared with that of the real ones.
#
# The numbers are those of sacrebleu with its own seed. The function of sacrebleu holds all trials in memory at once, which
# takes gigabytes for 20,000 sentences; this module holds a part of them at a time.
#
# Source: Riezler and Maxwell 2005, "On some pitfalls in automatic evaluation and significance testing for MT".


NUM_TRIALS = 10_000
"""As in sacrebleu."""
_BITS_AT_ONCE = 32  # NumPy draws this many random bits together, and throws the remaining ones away
_SENTENCES_AT_ONCE = 4_000_000


def randomized_p_value(
    metric: Metric, statistics: Sequence[Sequence[float]], others: Sequence[Sequence[float]]
) -> float:
    """The share of trials whose difference is larger than the real one; below 0.05 is usually called significant.

    If the systems do not differ in any trial, it is 1; sacrebleu says 0.0001. If they differ in K sentences, it is at
    least 2 / 2^K: of the 2^K possible exchanges, those of all sentences and of none have the real difference. sacrebleu
    does not count these, and says 0.0001 about systems that differ in one sentence.

    Args:
        metric: computes the scores of both systems.
        statistics: of each sentence of one system, as the metric extracts them.
        others: those of the other system, on the same sentences.
    """
    own_statistics, other_statistics = np.array(statistics), np.array(others)
    difference = abs(_score(metric, own_statistics.sum(0)) - _score(metric, other_statistics.sum(0)))
    trial_differences = np.array(
        [
            abs(_score(metric, mixed) - _score(metric, opposite))
            for is_exchanged in _exchanges(len(own_statistics))
            for mixed, opposite in zip(
                is_exchanged @ other_statistics + ~is_exchanged @ own_statistics,
                ~is_exchanged @ other_statistics + is_exchanged @ own_statistics,
                strict=True,
            )
        ]
    )
    if not trial_differences.any():
        return 1.0
    num_different = int((own_statistics != other_statistics).any(1).sum())
    p_value = float((np.sum(trial_differences > difference) + 1) / (len(trial_differences) + 1))
    return max(p_value, 2.0 ** (1 - num_different))


def _exchanges(num_sentences: int) -> Iterator[NDArray[np.bool_]]:
    """(N, num_sentences): whether each of N trials exchanges the translations of each sentence; all trials in parts."""
    rng = np.random.default_rng(SEED)
    at_once = max(1, _SENTENCES_AT_ONCE // num_sentences // _BITS_AT_ONCE) * _BITS_AT_ONCE
    for first in range(0, NUM_TRIALS, at_once):
        size = min(at_once, NUM_TRIALS - first), num_sentences
        yield rng.integers(2, size=size, dtype=bool)


def _score(metric: Metric, statistics: NDArray[np.float64]) -> float:
    return float(metric._aggregate_and_compute([statistics.tolist()]).score)


SIGNIFICANT = 0.05
SignificanceTest = Literal["bootstrap", "randomization"]
_TESTS: dict[SignificanceTest, tuple[str, int]] = {
    "bootstrap": ("paired bootstrap", NUM_SAMPLES),
    "randomization": ("approximate randomization", NUM_TRIALS),
}


class Difference(NamedTuple):
    """A score of this system and of the other one."""

    name: str
    value: float
    other: float
    p_value: float
    """How often chance alone makes a difference as large as this one."""


class SystemComparison(NamedTuple):
    """The differences of two systems, by paired bootstrap resampling (Koehn 2004) or approximate randomisation."""

    other: str
    """The name of the other system: a run or a file."""
    differences: list[Difference]
    test: SignificanceTest = "bootstrap"
    """Which computes the p-values."""

    @property
    def how(self) -> str:
        """The test and the number of its samples, for people."""
        test, num_samples = _TESTS[self.test]
        return f"{test}, {num_samples:,} samples"

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        return {
            "name": self.other,
            "test": self.test,
            "samples": _TESTS[self.test][1],
            "seed": SEED,
            "scores": [difference._asdict() for difference in self.differences],
        }

    def lines(self) -> list[str]:
        """A table for people."""
        return [
            f"against {self.other}: {self.how}; * for p < {SIGNIFICANT}",
            f"{'score':<14}{'this':>9}{'other':>9}{'difference':>12}{'p-value':>9}",
            *map(_line, self.differences),
        ]


def compare_systems(
    measured: Sequence[Measurement],
    others: Sequence[Measurement],
    other: str,
    test: SignificanceTest = "bootstrap",
) -> SystemComparison:
    """Compare this system with another one.

    Args:
        measured: the scores of this system.
        others: the same scores of the other system, on the same sentences.
        other: its name.
        test: computes the p-values.
    """
    differences = [_difference(mine, its, test) for mine, its in zip(measured, others, strict=True)]
    return SystemComparison(other, differences, test)


def _difference(mine: Measurement, its: Measurement, test: SignificanceTest) -> Difference:
    value, other = mine.value(), its.value()
    if test == "randomization":
        p_value = randomized_p_value(mine.metric, mine.statistics, its.statistics)
    else:
        p_value = paired_p_value(mine.resampled(), its.resampled(), value - other)
    return Difference(mine.name, value, other, p_value)


def _line(difference: Difference) -> str:
    name, value, other, p_value = difference
    digits = num_digits(name)
    mark = " *" if p_value < SIGNIFICANT else ""
    return f"{name:<14}{value:>9.{digits}f}{other:>9.{digits}f}{value - other:>+12.{digits}f}{p_value:>9.4f}{mark}"
