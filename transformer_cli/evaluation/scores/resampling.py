"""Bootstrap resampling: confidence intervals, and a test whether the difference of two systems is significant.

The numbers are those of sacrebleu with its own seed. The functions of sacrebleu hold all
samples in memory at once, which takes 1.4 GB for chrF of 20,000 sentences; this module holds one sample at a time.

Source: Koehn 2004, "Statistical significance tests for machine translation evaluation".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric

NUM_SAMPLES = 1000
SEED = 12345
"""Both as in sacrebleu, so that its command prints the same interval and the same p-value."""
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A 95 % confidence interval: `mean` plus and minus `half_width`, in units of the score."""

    mean: float
    """Of the scores of all samples."""
    half_width: float


def resampled_scores(metric: Metric, statistics: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """(NUM_SAMPLES,) scores of corpora that are drawn, with replacement, from the sentences of a corpus.

    Two systems on the same sentences get the same draws.

    Args:
        statistics: of each sentence, as the metric extracts them.
    """
    rng = np.random.default_rng(SEED)
    # float32, because sacrebleu adds up in float32.
    of_sentences = np.array(statistics, dtype=np.float32)
    scores = np.empty(NUM_SAMPLES)
    for number in range(NUM_SAMPLES):
        drawn = rng.choice(len(of_sentences), size=len(of_sentences), replace=True)
        scores[number] = metric._compute_score_from_stats(of_sentences[drawn].sum(0)).score
    return scores


def interval(scores: NDArray[np.float64]) -> Interval:
    """The interval of resampled scores: half of the distance between the 2.5 % and the 97.5 % quantile."""
    ordered = np.sort(scores)
    outside = len(ordered) // 40
    half_width = (ordered[len(ordered) - outside - 1] - ordered[outside]) / 2
    return Interval(float(scores.mean()), float(half_width))


def paired_p_value(
    scores: NDArray[np.float64], others: NDArray[np.float64], difference: float
) -> float:
    """How often chance alone makes a difference as large as this one; below 0.05 is usually called significant.

    If the systems do not differ on any sample, it is 1; sacrebleu says 0.001.

    Args:
        scores: resampled scores of one system.
        others: those of the other system, of the same draws.
        difference: of the scores on the whole corpus.
    """
    of_samples = np.abs(scores - others)
    if not of_samples.any():
        return 1.0
    by_chance = of_samples - of_samples.mean()
    return float((np.sum(by_chance > abs(difference)) + 1) / (len(by_chance) + 1))
