"""Greedy search and beam search over the scores of the next token, independent of model and text."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.hooks import SearchHook
from transformer_cli.decoding.hypotheses import Beams, Hypotheses, length_penalties, rows_to_keep
from transformer_cli.decoding.top_k import largest
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
        scores = _next_scores(scorer, hooks, last_ids)  # (R, V)
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
            _select(scorer, hooks, kept)
            sentences, last_ids, is_open = sentences[kept], last_ids[kept], is_open[kept]
    is_possible = totals > -torch.inf
    lengths = lengths.where(is_possible, 0)
    totals = totals / length_penalties(longest, options.length_penalty, totals)[lengths]
    ids = ids[:, : int(lengths.max())].where(is_possible.unsqueeze(1), special_ids.pad_id)
    return Hypotheses(ids.unsqueeze(1), lengths.unsqueeze(1), totals.unsqueeze(1))


def beam_search(
    scorer: Scorer,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook] = (),
) -> Hypotheses:
    """Follow the `beam_size` best hypotheses of each sentence, open and finished ones together.

    A hypothesis that reaches the maximal length counts as finished, without [EOS]. The search of a sentence
    ends when no open hypothesis can become one of its `num_best` best.

    Args:
        scorer: one row per sentence; after the first step, `beam_size` rows per sentence.
        options: beam size (which may be larger than the vocabulary), length penalty, `num_best`.
        special_ids, max_lengths, hooks: as in `greedy_search`.
    """
    first_ids = torch.full_like(max_lengths, special_ids.sos_id)
    scores = _next_scores(scorer, hooks, first_ids)  # (B, V)
    longest = max(1, int(max_lengths.max()))
    penalties = length_penalties(longest, options.length_penalty, scores)
    beams = Beams(max_lengths, penalties, options.beam_size)
    beams.extend(scores, special_ids.eos_id)
    # Not endless: at maximal length each hypothesis is finished.
    while (continued := beams.continue_with(options.num_best)) is not None:
        rows, last_ids, keeps_sources = continued
        _select(scorer, hooks, rows, keeps_sources=keeps_sources)
        scores = _next_scores(scorer, hooks, last_ids)  # (b * W, V)
        beams.extend(scores, special_ids.eos_id)
    return beams.best(options.num_best, special_ids.pad_id)


def _next_scores(scorer: Scorer, hooks: Sequence[SearchHook], last_ids: Tensor) -> Tensor:
    """(R,) int64 to (R, V) in float32 at least, changed by the hooks."""
    scores = at_least_float32(scorer.advance(last_ids))
    for hook in hooks:
        scores = hook.adjust(scores, last_ids)
    return scores


def _select(
    scorer: Scorer, hooks: Sequence[SearchHook], rows: Tensor, *, keeps_sources: bool = False
) -> None:
    scorer.select(rows, keeps_sources=keeps_sources)
    for hook in hooks:
        hook.select(rows)
