"""The mean of the probabilities of several models, in a search and for given targets."""

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from transformer_cli.decoding.search import AttendingScorer
from transformer_cli.model.precision import at_least_float32


class MeanScorer:
    """A `Scorer` whose probabilities are the mean of those of several scorers."""

    def __init__(
        self, scorers: Sequence[AttendingScorer], attending: Sequence[AttendingScorer]
    ) -> None:
        """
        Args:
            scorers: of all models.
            attending: those of them that read the same source tokens, so that their weights have a mean.
        """
        self._scorers = scorers
        self._attending = attending

    def advance(self, last_ids: Tensor) -> Tensor:
        """(R,) int64 to (R, V): see `Scorer.advance`."""
        return mean_log_probs(
            [at_least_float32(scorer.advance(last_ids)) for scorer in self._scorers]
        )

    def attention(self) -> Tensor:
        """(R, S): the mean of the weights; see `AttendingScorer.attention`."""
        return torch.stack([scorer.attention() for scorer in self._attending]).mean(0)

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """The rows of all scorers move alike."""
        for scorer in self._scorers:
            scorer.select(rows, keeps_sources=keeps_sources)


def mean_log_probs(log_probs: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probability, of the shape of each of the given log-probabilities.

    Source: the ensembles of fairseq, and of Sockeye in its default mode, `linear`.
    """
    return reduce(torch.logaddexp, log_probs) - math.log(len(log_probs))
