"""Greedy search: the best token at every step."""

from collections.abc import Sequence

from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.hooks import SearchHook
from transformer_cli.decoding.search.hypotheses import Hypotheses
from transformer_cli.decoding.search.scorer import Scorer
from transformer_cli.decoding.search.single_path import follow_paths
from transformer_cli.decoding.search.top_k import largest


class BestToken:
    """The token with the largest score; of equal scores, the first."""

    num_paths = 1

    def choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """See `Choice`."""
        return largest(scores)

    def select(self, rows: Tensor) -> None:
        """Nothing to do: there is no state."""


def greedy_search(
    scorer: Scorer,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook] = (),
) -> Hypotheses:
    """Take the token with the largest score at every step, up to [EOS] or the maximal length.

    Args:
        scorer: one row per sentence.
        special_ids, max_lengths, options, hooks: as in `follow_paths`.
    """
    return follow_paths(scorer, special_ids, max_lengths, options, hooks, BestToken())
