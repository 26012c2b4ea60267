"""Constrained beam search: every hypothesis contains given terms.

Dynamic beam allocation (Post and Vilar 2018), on tensors as in Hu et al. 2019. A bank holds the hypotheses of a
sentence that contain the same number of the tokens which its terms need. The places of the beam are dealt out in
turns: the best of each bank, then the second best of each, and so on. So a hypothesis with a term does not have to be
more probable than those without it, and the model chooses the place of the term.

Differences from both papers: the candidates are the W best tokens of every row and the next token of every form, so that
each bank gets its best candidates exactly. A hypothesis that lacks a term when [EOS] is its most probable token is
dropped (`TermStates.goes_past_end`): else many terms would stand behind the last full stop, where they are as
improbable as elsewhere. Finished hypotheses keep their places in the last bank, as in `beam.py`, so
that without terms this is beam search. A term may have several forms, and counts only as whole words."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Request, SpecialIds, Term, TokenIds
from transformer_cli.decoding.glossary import needed_counts
from transformer_cli.decoding.search.beam import (
    Beams,
    Hypotheses,
    Scorer,
    SearchHook,
    length_penalties,
    next_scores,
    select,
    top_k,
)
from transformer_cli.text.token_ids import WordEdges

NO_TOKEN = -1
# A character of UTF-8 that has begun may need this many further bytes, before a term can begin.
MAX_BYTES_LEFT = 3
# More places cost more time than they gain (docs/glossary.md).
PLACES_PER_BANK = 2
MAX_BEAM_SIZE = 64


class Contained(NamedTuple):
    """What N hypotheses of each of R rows contain."""

    counts: Tensor
    """(R, N, G) int64: how often each term stands there, a form at the very end not counted."""
    is_matched: Tensor
    """(R, N, F, L) bool: whether the last l + 1 tokens are the first l + 1 tokens of a form."""


class _Form(NamedTuple):
    ids: TokenIds
    term: int
    is_first_only: bool


class TermTable(NamedTuple):
    """Which terms each row needs; a row with fewer terms than others is filled up with forms that nothing matches.

    Shapes: R rows, F forms of all terms of a sentence, L tokens of a form, G different terms of a sentence, V vocabulary.
    """

    form_ids: Tensor
    """(R, F, L) int64: the tokens of each form, then `NO_TOKEN`."""
    form_lengths: Tensor
    """(R, F) int64: the number of tokens, at least 1."""
    term_of_form: Tensor
    """(R, F) int64: the place of a form's term among the G terms."""
    is_first_only: Tensor
    """(R, F) bool: whether a form counts only as the first tokens of a hypothesis."""
    ends_in_word: Tensor
    """(R, F) bool: whether the token after the form can go on with its last word."""
    needed: Tensor
    """(R, G) int64: how often a term must stand in a hypothesis."""
    longest_form: Tensor
    """(R, G) int64: the number of tokens of the longest form of a term."""

    @classmethod
    def of(cls, sentences: Sequence[Sequence[Term]], edges: WordEdges) -> "TermTable":
        """The terms of each sentence; a term that stands there twice is needed twice.

        If a form of one term contains another term, as New York City contains New York, the other is needed once more.
        """
        terms = [Counter(sentence) for sentence in sentences]
        forms = [_forms(sentence_terms) for sentence_terms in terms]
        longest = max(len(form.ids) for sentence_forms in forms for form in sentence_forms)
        ids = [
            torch.tensor([(*form.ids, *[NO_TOKEN] * (longest - len(form.ids))) for form in sentence_forms])
            for sentence_forms in forms
        ]
        ends = [[bool(edges.ends_in_word[form.ids[-1]]) for form in sentence_forms] for sentence_forms in forms]
        lengths = [[max(map(len, term.all_forms)) for term in sentence_terms] for sentence_terms in terms]
        return cls(
            pad_sequence(ids, batch_first=True, padding_value=NO_TOKEN),
            _padded([[len(form.ids) for form in sentence_forms] for sentence_forms in forms], 1),
            _padded([[form.term for form in sentence_forms] for sentence_forms in forms], 0),
            _padded([[form.is_first_only for form in sentence_forms] for sentence_forms in forms], 0).bool(),
            _padded(ends, 0).bool(),
            _padded([needed_counts(sentence_terms, edges) or [0] for sentence_terms in terms], 0),
            _padded([sentence_lengths or [1] for sentence_lengths in lengths], 1),
        )

    def select(self, rows: Tensor) -> "TermTable":
        """New row i is old row `rows[i]`."""
        return TermTable(*(field[rows] for field in self))

    def to(self, device: torch.device) -> "TermTable":
        """The same table on a device."""
        return TermTable(*(field.to(device, non_blocking=True) for field in self))

    @property
    def num_needed(self) -> Tensor:
        """(R,) int64: a number of tokens in which all terms have room, each in its longest form."""
        return (self.needed * self.longest_form).sum(-1)

    def at_end(self, is_matched: Tensor) -> Tensor:
        """(R, N, F, L) bool for the prefixes of each form to (R, N, F): whether the whole form is matched."""
        last = (self.form_lengths - 1)[:, None, :, None].expand(*is_matched.shape[:-1], 1)
        return is_matched.gather(-1, last).squeeze(-1)


class TermStates:
    """The state of each row of a search.

    All forms of all terms are followed at once by the bit-parallel algorithm Shift-And: a bit for each prefix of each form says
    whether the hypothesis ends with this prefix. One more token moves each bit to the next longer prefix, and clears it if this
    token does not follow.

    Source: Baeza-Yates and Gonnet 1992, A new approach to text searching, section 3.

    A form at the end of a hypothesis counts when the next token is known: a token that goes on with its last word,
    as in Haus|tür, makes another word of it. No token counts twice for the same term.
    """

    def __init__(self, table: TermTable, goes_on: Tensor, *, reserve: int = 0, goes_past_end: bool = True) -> None:
        """
        Args:
            table: one row for each sentence.
            goes_on: (V,) bool, whether a token goes on with the word before it.
            reserve: how many tokens may be necessary before a term can begin, because a character ends first.
            goes_past_end: whether a hypothesis that lacks terms goes on where [EOS] is its most probable token. If not,
                a sentence may get no hypothesis.
        """
        self.reserve = reserve
        self.goes_past_end = goes_past_end
        self._rows = table
        self._goes_on = goes_on
        num_rows, num_forms, longest = table.form_ids.shape
        self.now = Contained(
            table.needed.new_zeros(num_rows, 1, table.needed.shape[1]),
            table.ends_in_word.new_zeros(num_rows, 1, num_forms, longest),
        )
        """What the hypothesis of each row contains; N is 1."""
        self._has_begun = False

    @property
    def num_needed(self) -> Tensor:
        """(R,) int64; see `TermTable.num_needed`."""
        return self._rows.num_needed

    def contain(self, token: int) -> Tensor:
        """(R,) bool: whether any form of the terms has this token."""
        return (self._rows.form_ids == token).flatten(1).any(1)

    def select(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`."""
        self._rows = self._rows.select(rows)
        self.now = Contained(*(field[rows] for field in self.now))

    def advance(self, last_ids: Tensor) -> None:
        """Append one token to each row; (R,) int64."""
        self.now = self.after(last_ids.unsqueeze(1))
        self._has_begun = True

    def after(self, tokens: Tensor) -> Contained:
        """What the rows would contain with one more token, for (R, N) tokens."""
        rows, is_matched = self._rows, self.now.is_matched
        goes_on = rows.ends_in_word.unsqueeze(1) & self._goes_on[tokens].unsqueeze(-1)
        new_counts = self._term_flags(rows.at_end(is_matched) & ~goes_on)  # (R, N, G)
        # The tokens of a form that counts belong to no other form of its term.
        is_free = self._form_values(new_counts) == 0
        may_begin = ~rows.is_first_only if self._has_begun else torch.ones_like(rows.is_first_only)
        may_begin = may_begin[:, None, :, None].expand(*is_free.shape, 1)
        longer = torch.cat([may_begin, is_matched[..., :-1] & is_free.unsqueeze(-1)], dim=-1)
        is_next = rows.form_ids.unsqueeze(1) == tokens[..., None, None]
        return Contained(self.now.counts + new_counts, longer & is_next)

    def progress(self, contained: Contained) -> Tensor:
        """(R, N) int64: how many of the `num_needed` tokens the hypotheses need no more.

        A term that has begun counts with the tokens that it has; of several such terms, the one with most tokens.
        """
        rows = self._rows
        has_ended, num_missing = self._missing(contained)
        whole = (rows.needed.unsqueeze(1) - num_missing) * rows.longest_form.unsqueeze(1)
        num_matched = self._num_matched(contained.is_matched)  # (R, N, F)
        num_left = rows.form_lengths.unsqueeze(1) - num_matched
        begun = rows.longest_form.gather(1, rows.term_of_form).unsqueeze(1) - num_left
        counts = (num_matched > 0) & self._form_values((num_missing > 0) & ~has_ended)
        return whole.sum(-1) + begun.where(counts, 0).amax(-1)

    def next_tokens(self) -> Tensor:
        """(R, F) int64: the token that each form needs next; `NO_TOKEN` if its term is complete or it cannot begin."""
        rows = self._rows
        has_ended, num_missing = self._missing(self.now)
        places = self._num_matched(self.now.is_matched)
        places = places.where(~self._form_values(has_ended), 0).squeeze(1)  # (R, F)
        tokens = rows.form_ids.gather(2, places.unsqueeze(-1)).squeeze(-1)
        is_needed = self._form_values(num_missing > 0).squeeze(1)
        if self._has_begun:
            is_needed = is_needed & ~(rows.is_first_only & (places == 0))
        return tokens.where(is_needed, NO_TOKEN)

    def _missing(self, contained: Contained) -> tuple[Tensor, Tensor]:
        """(R, N, G) bool: whether a form of the term ends here; (R, N, G) int64: how often the term is still needed."""
        has_ended = self._term_flags(self._rows.at_end(contained.is_matched))
        num_missing = self._rows.needed.unsqueeze(1) - contained.counts - has_ended
        return has_ended > 0, num_missing.clamp(min=0)

    def _term_flags(self, is_form: Tensor) -> Tensor:
        """(R, N, F) bool to (R, N, G) int64: 1 if it is True for any form of a term."""
        num_terms = self._rows.needed.shape[1]
        zeros = self._rows.needed.new_zeros(*is_form.shape[:2], num_terms)
        terms = self._rows.term_of_form.unsqueeze(1).expand_as(is_form)
        return zeros.scatter_reduce(2, terms, is_form.long(), "amax")

    def _form_values(self, term_values: Tensor) -> Tensor:
        """(R, N, G) to (R, N, F): the value of each form's term."""
        terms = self._rows.term_of_form.unsqueeze(1)
        return term_values.gather(2, terms.expand(-1, term_values.shape[1], -1))

    def _num_matched(self, is_matched: Tensor) -> Tensor:
        """(R, N, F) int64: the length of the longest begun prefix of each form, shorter than the form."""
        lengths = torch.arange(1, is_matched.shape[-1] + 1, device=is_matched.device)
        is_shorter = lengths < self._rows.form_lengths.unsqueeze(-1)  # (R, F, L)
        return (lengths * (is_matched & is_shorter.unsqueeze(1))).amax(-1)


def constrained_search(
    scorer: Scorer,
    *,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook] = (),
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
        wanted_log_probs = log_probs.gather(1, wanted).where(is_wanted & ~is_repeated, -torch.inf)
        bans = torch.full_like(wanted_log_probs, -torch.inf).where(is_wanted, torch.inf)
        log_probs.scatter_reduce_(1, wanted, bans, "amin")
        is_complete = states.progress(states.now).squeeze(1) == states.num_needed
        any_end = log_probs[:, self._eos_id].clone()
        end_log_probs = any_end.where(is_complete, -torch.inf)
        log_probs[:, self._eos_id] = end_log_probs
        may_be_unknown = self._allow_unknown & ~states.contain(self._unk_id)
        unknown_log_probs = log_probs[:, self._unk_id].where(may_be_unknown, -torch.inf)
        log_probs[:, self._unk_id] = unknown_log_probs
        num_best = min(self._beam_size, log_probs.shape[1])
        best, best_tokens = top_k(log_probs.unsqueeze(1), row_totals, num_best)
        totals = torch.cat([best, wanted_log_probs + row_totals], dim=1)
        if not self._goes_past_end:
            is_over = any_end.unsqueeze(1) + row_totals > totals.amax(1, keepdim=True)
            totals = totals.where(~is_over | is_complete.unsqueeze(1), -torch.inf)
        has_end = (best_tokens == self._eos_id).any(1)
        end_log_probs = end_log_probs.where(~has_end, -torch.inf).unsqueeze(1)
        end = torch.full_like(wanted[:, :1], self._eos_id)
        totals = torch.cat([totals, end_log_probs + row_totals], dim=1)
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


def _forms(terms: Sequence[Term] | Counter[Term]) -> list[_Form]:
    """The forms of all terms of a sentence; without terms, one form that nothing matches."""
    forms = [
        _Form(ids, number, place >= len(term.forms))
        for number, term in enumerate(terms)
        for place, ids in enumerate(term.all_forms)
    ]
    return forms or [_Form((NO_TOKEN,), 0, False)]


def _padded(values: Sequence[Sequence[int]], filling: int) -> Tensor:
    """Rows of different lengths as (R, longest) int64."""
    rows = [torch.tensor(row, dtype=torch.int64) for row in values]
    return pad_sequence(rows, batch_first=True, padding_value=filling)


def beam_groups(requests: Sequence[Request], options: DecodingConfig) -> list[tuple[DecodingConfig, list[int]]]:
    """The indices of the requests with terms that can be searched together, and the options of their search.

    They are grouped by their beam size, so that a translation does not depend on the other requests.
    """
    groups: dict[int, list[int]] = {}
    for index, request in enumerate(requests):
        if request.terms:
            groups.setdefault(beam_size_for(request, options), []).append(index)
    return [(options.model_copy(update={"beam_size": beam_size}), indices) for beam_size, indices in groups.items()]


def beam_size_for(request: Request, options: DecodingConfig) -> int:
    """The beam size for a request with terms: at least `PLACES_PER_BANK` places for each bank, and `options.beam_size`."""
    num_banks = 1 + sum(max(map(len, term.all_forms)) for term in request.terms)
    return max(options.beam_size, min(PLACES_PER_BANK * num_banks, MAX_BEAM_SIZE))


def term_states(
    requests: Sequence[Request],
    edges: WordEdges,
    device: torch.device,
    *,
    has_bytes: bool,
    goes_past_end: bool,
) -> TermStates:
    """The states of a search for the terms of requests.

    Args:
        edges: of the target vocabulary.
        has_bytes: whether a character may be several tokens.
        goes_past_end: see `TermStates`.
    """
    table = TermTable.of([request.terms for request in requests], edges).to(device)
    goes_on = torch.from_numpy(edges.goes_on).to(device)
    reserve = MAX_BYTES_LEFT if has_bytes else 0
    return TermStates(table, goes_on, reserve=reserve, goes_past_end=goes_past_end)


def room_for_terms(requests: Sequence[Request], states: TermStates, *, most: int | None) -> Tensor:
    """(B,) int64: the number of tokens that the prefix, the terms and [EOS] need.

    Args:
        requests: B of them.
        states: of the terms of these requests.
        most: the largest number of tokens that the model can write; None: any number.
    """
    prefix_lengths = torch.tensor([len(request.prefix) for request in requests])
    needed = prefix_lengths.to(states.num_needed) + states.num_needed + states.reserve + 1
    return needed if most is None else needed.clamp(max=most)
