"""Constrained beam search: every hypothesis contains given terms.

Dynamic beam allocation (Post and Vilar 2018), on tensors as in Hu et al. 2019. A bank holds the hypotheses of a
sentence that contain the same number of the tokens which its terms need. The places of the beam are dealt out in
turns: the best of each bank, then the second best of each, and so on. So a hypothesis with a term does not have to be
more probable than those without it, and the model chooses the place of the term.

Differences from both papers: the candidates are the W best tokens of every row and the next token of every form, so that
each bank gets its best candidates exactly. A hypothesis that lacks a term when [EOS] is its most probable token is
dropped (`TermStates.goes_past_end`): else many terms would stand behind the last full stop, where they are as
improbable as elsewhere. Finished hypotheses keep their places in the last bank, as in `beam.py`, so
that without terms this is beam search. A term may have several forms, and counts only as whole words.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.hooks import SearchHook
from transformer_cli.decoding.search.hypotheses import Beams, Hypotheses, length_penalties
from transformer_cli.decoding.search.scorer import Scorer, next_scores, select
from transformer_cli.decoding.search.terms.term_states import TermStates
from transformer_cli.decoding.search.terms.term_table import NO_TOKEN
from transformer_cli.decoding.search.top_k import top_k


def constrained_search(
    scorer: Scorer,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook],
    states: TermStates,
) -> Hypotheses:
    """Beam search in which every hypothesis contains the terms of its sentence; without terms, `beam_search`.

    Args:
        states: new states of the terms, one row per sentence. `max_lengths` must leave room for all terms.
        scorer, special_ids, max_lengths, options, hooks: as in `beam_search`.

    Source: Post and Vilar 2018, Fast Lexically Constrained Decoding with Dynamic Beam Allocation; Hu et al. 2019,
    Improved Lexically Constrained Decoding for Translation and Monolingual Rewriting, section 3.
    """
    first_ids = torch.full_like(max_lengths, special_ids.sos_id)
    scores = next_scores(scorer, hooks, first_ids)  # (B, V)
    longest = max(1, int(max_lengths.max()))
    penalties = length_penalties(longest, options, scores)
    beams = _Banks(max_lengths, penalties, special_ids, options, goes_past_end=states.goes_past_end)
    beams.extend_banks(scores, states)
    while (continued := beams.continue_with(options.num_best)) is not None:
        rows, last_ids, keeps_sources = continued
        select(scorer, hooks, rows, keeps_sources=keeps_sources)
        states.select(rows)
        states.advance(last_ids)
        scores = next_scores(scorer, hooks, last_ids)  # (b * W, V)
        beams.extend_banks(scores, states)
    return beams.best(options.num_best, special_ids.pad_id)


class _Banks(Beams):
    """The beam of each sentence, dealt out to its banks."""

    def __init__(
        self,
        max_lengths: Tensor,
        penalties: Tensor,
        special_ids: SpecialIds,
        options: DecodingConfig,
        *,
        goes_past_end: bool,
    ) -> None:
        super().__init__(max_lengths, penalties, options.beam_size)
        self._eos_id, self._unk_id = special_ids.eos_id, special_ids.unk_id
        self._allow_unknown = options.allow_unknown
        self._goes_past_end = goes_past_end

    def extend_banks(self, log_probs: Tensor, states: TermStates) -> None:
        """Replace each open hypothesis by its continuations, and keep the best of each bank, W in all.

        Args:
            log_probs: (b * slots, V), of the next token; they are changed.
            states: of the same rows.
        """
        num_sentences, num_slots = self._totals.shape
        totals, tokens = self._continuations(log_probs, states)  # (b * slots, M)
        banks = states.progress(states.after(tokens))
        totals = totals.where(self._has_room(totals, banks, states), -torch.inf)
        num_tokens = tokens.shape[1]
        totals, places = totals.view(num_sentences, -1).sort(dim=1, descending=True, stable=True)
        tokens, banks = (of.view(num_sentences, -1).gather(1, places) for of in (tokens, banks))
        parents = places // num_tokens
        scores = totals / self._penalties[len(self._steps) + 1]
        last_bank = states.num_needed.view(num_sentences, num_slots)[:, :1]
        rivals = torch.cat([self._finished, scores], dim=1)
        banks = torch.cat([last_bank.expand_as(self._finished), banks], dim=1)
        is_kept = _in_turns(rivals, banks, self._beam_size)[:, self._beam_size :]
        totals = totals.where(is_kept, -torch.inf)
        first = (~is_kept).int().argsort(dim=1, stable=True)[:, : self._beam_size]
        num_missing = self._beam_size - first.shape[1]
        parents, tokens = (F.pad(of.gather(1, first), (0, num_missing)) for of in (parents, tokens))
        totals = F.pad(totals.gather(1, first), (0, num_missing), value=-torch.inf)
        self._append(parents, tokens, totals, totals > -torch.inf, self._eos_id)

    def _continuations(self, log_probs: Tensor, states: TermStates) -> tuple[Tensor, Tensor]:
        """(b * slots, M) totals and tokens: the next token of each form, the best other tokens of each row, and [EOS].

        [EOS] is possible if all terms are complete. It is always a candidate, because each of the best tokens may go on
        with the last word of a term, as in Haus|tür, when no room is left to repeat the term.
        """
        row_totals = self._totals.view(-1, 1)  # (b * slots, 1)
        wanted = states.next_tokens()  # (b * slots, F)
        is_wanted = wanted != NO_TOKEN
        is_repeated = (wanted.unsqueeze(2) == wanted.unsqueeze(1)).tril(-1).any(-1)
        wanted = wanted.clamp(min=0)
        of_wanted = log_probs.gather(1, wanted).where(is_wanted & ~is_repeated, -torch.inf)
        bans = torch.full_like(of_wanted, -torch.inf).where(is_wanted, torch.inf)
        log_probs.scatter_reduce_(1, wanted, bans, "amin")
        is_complete = states.progress(states.now).squeeze(1) == states.num_needed
        any_end = log_probs[:, self._eos_id].clone()
        of_end = any_end.where(is_complete, -torch.inf)
        log_probs[:, self._eos_id] = of_end
        may_be_unknown = self._allow_unknown & ~states.contain(self._unk_id)
        of_unknown = log_probs[:, self._unk_id].where(may_be_unknown, -torch.inf)
        log_probs[:, self._unk_id] = of_unknown
        num_best = min(self._beam_size, log_probs.shape[1])
        best, best_tokens = top_k(log_probs.unsqueeze(1), row_totals, num_best)
        totals = torch.cat([best, of_wanted + row_totals], dim=1)
        if not self._goes_past_end:
            is_over = any_end.unsqueeze(1) + row_totals > totals.amax(1, keepdim=True)
            totals = totals.where(~is_over | is_complete.unsqueeze(1), -torch.inf)
        has_end = (best_tokens == self._eos_id).any(1)
        of_end = of_end.where(~has_end, -torch.inf).unsqueeze(1)
        end = torch.full_like(wanted[:, :1], self._eos_id)
        totals = torch.cat([totals, of_end + row_totals], dim=1)
        return totals, torch.cat([best_tokens, wanted, end], dim=1)

    def _has_room(self, totals: Tensor, banks: Tensor, states: TermStates) -> Tensor:
        """(b * slots, M) bool: whether all terms still have room after a token.

        Near the maximal length, only tokens of terms have room. They come a little earlier than necessary, because no
        term can begin inside a character whose bytes are several tokens. Such a character is ended first.
        """
        advances = banks > states.progress(states.now)
        can_advance = (advances & (totals > -torch.inf)).any(1, keepdim=True)
        reserve = torch.where(can_advance & ~advances, states.reserve, 0)
        return states.num_needed.unsqueeze(1) - banks + reserve <= self._num_left()

    def _num_left(self) -> Tensor:
        """(b * slots, 1) int64: how many tokens may follow the next one."""
        num_left = self._max_lengths - len(self._steps) - 1
        return num_left.repeat_interleave(self._totals.shape[1]).unsqueeze(1)


def _in_turns(scores: Tensor, banks: Tensor, beam_size: int) -> Tensor:
    """Deal places out to banks in turns: the best of each bank, then the second best of each, the last bank first.

    Args:
        scores: (b, N), -inf for a hypothesis that gets no place.
        banks: (b, N) int64.
        beam_size: the number of places of each sentence.

    Returns:
        (b, N) bool: True for a hypothesis that gets a place.
    """
    banks = banks.where(scores > -torch.inf, -1)
    by_score = scores.argsort(dim=1, descending=True, stable=True)
    banks, by_bank = banks.gather(1, by_score).sort(dim=1, descending=True, stable=True)
    order = by_score.gather(1, by_bank)  # bank by bank, the best first
    places = torch.arange(banks.shape[1], device=banks.device).expand_as(banks)
    is_first = torch.ones_like(banks, dtype=torch.bool)
    is_first[:, 1:] = banks[:, 1:] != banks[:, :-1]
    turns = places - places.where(is_first, 0).cummax(1).values
    turns = turns.where(banks >= 0, banks.shape[1])
    chosen = order.gather(1, turns.argsort(dim=1, stable=True)[:, :beam_size])
    gets_place = torch.zeros_like(banks, dtype=torch.bool).scatter(1, chosen, True)
    return gets_place & (scores > -torch.inf)
