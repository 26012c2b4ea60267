"""Approximate randomisation: a test whether the difference of two systems is significant.

If two systems are equally good, then it does not matter which of the two translations of a sentence belongs to which
system. So the translations of randomly chosen sentences are exchanged, many times, and the difference of the two
mixed systems is compared with that of the real ones.

The numbers are those of sacrebleu with its own seed. The function of sacrebleu holds all trials in memory at once, which
takes gigabytes for 20,000 sentences; this module holds a part of them at a time.

Source: Riezler and Maxwell 2005, "On some pitfalls in automatic evaluation and significance testing for MT".
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric

from transformer_cli.evaluation.scores.resampling import SEED

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
    of_sentences, of_others = np.array(statistics), np.array(others)
    difference = abs(_score(metric, of_sentences.sum(0)) - _score(metric, of_others.sum(0)))
    of_trials = np.array(
        [
            abs(_score(metric, mixed) - _score(metric, opposite))
            for is_exchanged in _exchanges(len(of_sentences))
            for mixed, opposite in zip(
                is_exchanged @ of_others + ~is_exchanged @ of_sentences,
                ~is_exchanged @ of_others + is_exchanged @ of_sentences,
                strict=True,
            )
        ]
    )
    if not of_trials.any():
        return 1.0
    num_different = int((of_sentences != of_others).any(1).sum())
    p_value = float((np.sum(of_trials > difference) + 1) / (len(of_trials) + 1))
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
