"""The coverage penalty: a search hook that lowers the score of a translation with too little attention to the source."""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.search.hypotheses import length_penalties


class CoveragePenalty:
    """Adds cp = beta * sum over source tokens i of log(min(coverage of i, 1)) to the score of a finished hypothesis.

    The coverage of a source token is the sum of the attention that it got at all steps. cp is never above 0.

    The search divides a sum of log-probabilities by a length penalty d(T). So the hook adds cp * d(T) to the
    log-probability of the token that ends a hypothesis of T tokens: [EOS], and at the maximal length every token. Open
    hypotheses have no penalty. Scores only fall by it, so the bound with which a beam search ends stays valid.

    Source: Wu et al. 2016, equation 14.
    """

    def __init__(
        self,
        attention: Callable[[], Tensor],
        source_mask: Tensor | None,
        max_lengths: Tensor,
        eos_id: int,
        options: DecodingConfig,
    ) -> None:
        """
        Args:
            attention: (R, S) floats, the attention of the step whose scores are adjusted; a row sums to 1.
            source_mask: (B, S) bool, True for a token of the source; None: there is no padding.
            max_lengths: (B,) int64, on the device of the search: the largest number of tokens.
            eos_id: the token that ends a hypothesis.
            options: beta is the coverage penalty; the length penalty is that of the search.
        """
        self._attention = attention
        self._source_mask = source_mask  # (R, S)
        self._max_lengths = max_lengths  # (R,)
        self._eos_id = eos_id
        self._options = options
        self._coverage: Tensor | None = None  # (R, S)
        self._length_penalties: Tensor | None = None
        self._step = 0

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with the penalty for tokens that end a hypothesis."""
        attention = self._attention().to(scores.dtype)
        if self._coverage is None or self._length_penalties is None:
            longest = max(1, int(self._max_lengths.max()))
            self._length_penalties = length_penalties(longest, self._options, scores)
            self._coverage = torch.zeros_like(attention)
        self._coverage = self._coverage + attention
        self._step += 1
        penalty = self._penalty(self._coverage) * self._length_penalties[self._step]  # (R,)
        of_all = penalty.where(self._max_lengths <= self._step, 0.0)
        scores = scores + of_all.unsqueeze(1)
        scores[:, self._eos_id] += penalty - of_all
        return scores

    def _penalty(self, coverage: Tensor) -> Tensor:
        # The attention of a token can underflow to 0, whose logarithm would forbid every translation.
        logs = coverage.clamp(min=torch.finfo(coverage.dtype).tiny, max=1.0).log()
        if self._source_mask is not None:
            logs = logs.where(self._source_mask, 0.0)
        return self._options.coverage_penalty * logs.sum(-1)

    def select(self, rows: Tensor) -> None:
        """The coverage moves with the rows."""
        self._max_lengths = self._max_lengths[rows]
        if self._source_mask is not None:
            self._source_mask = self._source_mask[rows]
        if self._coverage is not None:
            self._coverage = self._coverage[rows]
