"""The scores of the next token, as a search sees them: independent of model and text."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from transformer_cli.decoding.search.hooks import SearchHook
from transformer_cli.model.precision import at_least_float32


class Scorer(Protocol):
    """Gives the scores of the next token for R rows; each row is the beginning of one hypothesis."""

    def advance(self, last_ids: Tensor) -> Tensor:
        """Append one token to each row and score the next one.

        Args:
            last_ids: (R,) int64; [SOS] for all rows at the first step.

        Returns:
            (R, V) log-probabilities of the next token. The caller may write into the tensor.
        """

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """New row i is old row `rows[i]`: this keeps, reorders, repeats and drops rows.

        Args:
            rows: (R2,) int64, for any number of rows.
            keeps_sources: True: each new row has the same source sentence as the old row at its index.
        """


class AttendingScorer(Scorer, Protocol):
    """A scorer that can also tell what each row attends to."""

    def attention(self) -> Tensor:
        """(R, S): the weights with which each row read the source when its newest token was scored; a row sums to 1."""


def next_scores(scorer: Scorer, hooks: Sequence[SearchHook], last_ids: Tensor) -> Tensor:
    """(R,) int64 to (R, V) in float32 at least, changed by the hooks."""
    scores = at_least_float32(scorer.advance(last_ids))
    for hook in hooks:
        scores = hook.adjust(scores, last_ids)
    return scores


def select(
    scorer: Scorer, hooks: Sequence[SearchHook], rows: Tensor, *, keeps_sources: bool = False
) -> None:
    scorer.select(rows, keeps_sources=keeps_sources)
    for hook in hooks:
        hook.select(rows)
