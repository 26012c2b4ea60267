"""A score of a corpus that is the mean of the scores of its sentences, as COMET is."""

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Score

from transformer_cli.evaluation.scores.shares import SummedMetric


class MeanOfSegments(SummedMetric):
    """The mean of numbers that another program has computed, one for each sentence.

    The statistics of a sentence are its number and a 1. So intervals, p-values and groups of sentences work as for all
    other scores.
    """

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        total, num_sentences = stats
        return Score(self.name, total / num_sentences)

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[float]:
        raise NotImplementedError("the numbers of the sentences are given")
