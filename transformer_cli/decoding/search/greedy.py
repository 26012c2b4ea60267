"""Greedy search: the best token at every step."""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.hooks import SearchHook
from transformer_cli.decoding.search.hypotheses import Hypotheses, length_penalties, rows_to_keep
from transformer_cli.decoding.search.scorer import Scorer, next_scores, select
from transformer_cli.decoding.search.top_k import largest


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
        special_ids: [SOS] begins, [EOS] ends, [PAD] fills. Hooks, not the search, ban these tokens.
        max_lengths: (B,) int64, on the scorer's device: the largest number of tokens, [EOS] included.
        options: only the length penalty is used; it changes the returned score, not the tokens.
        hooks: change the scores before each choice, in this order.
    """
    longest = int(max_lengths.max())
    sentences = torch.arange(len(max_lengths), device=max_lengths.device)  # of each row
    ids = max_lengths.new_full((len(sentences), longest), special_ids.pad_id)
    lengths = torch.zeros_like(max_lengths)
    totals = torch.zeros_like(max_lengths, dtype=torch.float32)
    totals[max_lengths < 1] = -torch.inf
    last_ids = torch.full_like(sentences, special_ids.sos_id)
    is_open = max_lengths > 0
    for step in range(longest):
        scores = next_scores(scorer, hooks, last_ids)  # (R, V)
        totals = totals.to(scores.dtype)
        best, last_ids = largest(scores)
        totals[sentences] += best.where(is_open, 0.0)
        ids[sentences, step] = last_ids.where(is_open, special_ids.pad_id)
        lengths[sentences] += is_open
        is_open = is_open & (best > -torch.inf) & (max_lengths[sentences] > step + 1)
        is_open = is_open & (last_ids != special_ids.eos_id)
        num_open = int(is_open.sum())  # the CPU waits here for the device
        if num_open == 0:
            break
        kept = rows_to_keep(is_open, num_open)
        if kept is not None:
            select(scorer, hooks, kept)
            sentences, last_ids, is_open = sentences[kept], last_ids[kept], is_open[kept]
    is_possible = totals > -torch.inf
    lengths = lengths.where(is_possible, 0)
    totals = totals / length_penalties(longest, options.length_penalty, totals)[lengths]
    ids = ids[:, : int(lengths.max())].where(is_possible.unsqueeze(1), special_ids.pad_id)
    return Hypotheses(ids.unsqueeze(1), lengths.unsqueeze(1), totals.unsqueeze(1))
