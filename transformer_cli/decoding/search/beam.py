"""Beam search: each step keeps the best hypotheses of each sentence, open and finished."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.hooks import SearchHook
from transformer_cli.decoding.search.hypotheses import Beams, Hypotheses, length_penalties
from transformer_cli.decoding.search.scorer import Scorer, next_scores, select


class BeamObserver(Protocol):
    """Is told about each step of a beam search, and changes nothing."""

    def saw(self, scores: Tensor, beams: Beams) -> None:
        """Called after each step.

        Args:
            scores: (b * slots, V), among which the step chose: the row of sentence i and slot j of the previous step
                is row i * slots + j. At the first step there is one slot.
            beams: their `newest_candidates` are what the step chose.
        """


def beam_search(
    scorer: Scorer,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook] = (),
    observer: BeamObserver | None = None,
) -> Hypotheses:
    """Follow the `beam_size` best hypotheses of each sentence, open and finished ones together.

    A hypothesis that reaches the maximal length counts as finished, without [EOS]. The search of a sentence
    ends when no open hypothesis can become one of its `num_best` best.

    Args:
        scorer: one row per sentence; after the first step, `beam_size` rows per sentence.
        options: beam size (which may be larger than the vocabulary), length penalty, `num_best`.
        special_ids, max_lengths, hooks: as in `follow_paths`.
        observer: is told about each step; None: nobody is.
    """
    first_ids = torch.full_like(max_lengths, special_ids.sos_id)
    scores = next_scores(scorer, hooks, first_ids)  # (B, V)
    longest = max(1, int(max_lengths.max()))
    penalties = length_penalties(longest, options, scores)
    beams = Beams(max_lengths, penalties, options.beam_size)
    beams.extend(scores, special_ids.eos_id)
    if observer is not None:
        observer.saw(scores, beams)
    # Not endless: at maximal length each hypothesis is finished.
    while (continued := beams.continue_with(options.num_best)) is not None:
        rows, last_ids, keeps_sources = continued
        select(scorer, hooks, rows, keeps_sources=keeps_sources)
        scores = next_scores(scorer, hooks, last_ids)  # (b * W, V)
        beams.extend(scores, special_ids.eos_id)
        if observer is not None:
            observer.saw(scores, beams)
    return beams.best(options.num_best, special_ids.pad_id)
