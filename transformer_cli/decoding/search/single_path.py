"""Searches without a beam: each hypothesis gets one token at every step, and tokens never change later."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.hooks import SearchHook
from transformer_cli.decoding.search.hypotheses import Hypotheses, length_penalties, rows_to_keep
from transformer_cli.decoding.search.scorer import Scorer, next_scores, select


class Choice(Protocol):
    """Chooses the next token of each row. Its state follows the rows, as that of a `SearchHook` does."""

    num_paths: int
    """Number of hypotheses of each sentence."""

    def choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Called once at each step.

        Args:
            scores: (R, V) log-probabilities, -inf for a banned token.

        Returns:
            (R,) the log-probability of the chosen token, -inf if no token is possible; (R,) int64 its id.
        """

    def select(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`."""


def follow_paths(
    scorer: Scorer,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook],
    choice: Choice,
) -> Hypotheses:
    """Let `choice` choose a token at every step, up to [EOS] or the maximal length.

    Args:
        scorer: one row per sentence; after the first step, `choice.num_paths` rows per sentence.
        special_ids: [SOS] begins, [EOS] ends, [PAD] fills. Hooks, not the search, ban these tokens.
        max_lengths: (B,) int64, on the scorer's device: the largest number of tokens, [EOS] included.
        options: only the length penalty is used; it changes the returned score, not the tokens.
        hooks: change the scores before each choice, in this order.
        choice: how tokens are chosen.

    Returns:
        The hypotheses of a sentence in the order of its paths, not sorted.
    """
    longest = int(max_lengths.max())
    last_ids = torch.full_like(max_lengths, special_ids.sos_id)
    if choice.num_paths > 1:
        max_lengths = max_lengths.repeat_interleave(choice.num_paths)
    paths = torch.arange(len(max_lengths), device=max_lengths.device)  # of each row
    ids = max_lengths.new_full((len(paths), longest), special_ids.pad_id)
    lengths = torch.zeros_like(max_lengths)
    totals = torch.zeros_like(max_lengths, dtype=torch.float32)
    totals[max_lengths < 1] = -torch.inf
    is_open = max_lengths > 0
    for step in range(longest):
        scores = next_scores(scorer, hooks, last_ids)  # (R, V)
        if step == 0 and choice.num_paths > 1:
            rows = paths // choice.num_paths
            select(scorer, hooks, rows)
            scores = scores[rows]
        totals = totals.to(scores.dtype)
        chosen, last_ids = choice.choose(scores)
        totals[paths] += chosen.where(is_open, 0.0)
        ids[paths, step] = last_ids.where(is_open, special_ids.pad_id)
        lengths[paths] += is_open
        is_open = is_open & (chosen > -torch.inf) & (max_lengths[paths] > step + 1)
        is_open = is_open & (last_ids != special_ids.eos_id)
        num_open = int(is_open.sum())  # the CPU waits here for the device
        if num_open == 0:
            break
        kept = rows_to_keep(is_open, num_open)
        if kept is not None:
            select(scorer, hooks, kept)
            choice.select(kept)
            paths, last_ids, is_open = paths[kept], last_ids[kept], is_open[kept]
    is_possible = totals > -torch.inf
    lengths = lengths.where(is_possible, 0)
    totals = totals / length_penalties(longest, options, totals)[lengths]
    ids = ids[:, : int(lengths.max())].where(is_possible.unsqueeze(1), special_ids.pad_id)
    of_sentences = (
        tensor.unflatten(0, (-1, choice.num_paths)) for tensor in (ids, lengths, totals)
    )
    return Hypotheses(*of_sentences)
