"""Which terms the hypothesis of each row contains, and how the next token changes that.

All forms of all terms are followed at once by the bit-parallel algorithm Shift-And: a bit for each prefix of each form
says whether the hypothesis ends with this prefix. One more token moves each bit to the next longer prefix, and clears it
if this token does not follow.

Source: Baeza-Yates and Gonnet 1992, A new approach to text searching, section 3.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli.decoding.search.terms.term_table import NO_TOKEN, TermTable


class Contained(NamedTuple):
    """What N hypotheses of each of R rows contain."""

    counts: Tensor
    """(R, N, G) int64: how often each term stands there, a form at the very end not counted."""
    is_matched: Tensor
    """(R, N, F, L) bool: whether the last l + 1 tokens are the first l + 1 tokens of a form."""


class TermStates:
    """The state of each row of a search.

    A form at the end of a hypothesis counts when the next token is known: a token that goes on with its last word,
    as in Haus|tür, makes another word of it. No token counts twice for the same term.
    """

    def __init__(
        self, table: TermTable, goes_on: Tensor, *, reserve: int = 0, goes_past_end: bool = True
    ) -> None:
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
        self._now = Contained(
            table.needed.new_zeros(num_rows, 1, table.needed.shape[1]),
            table.ends_in_word.new_zeros(num_rows, 1, num_forms, longest),
        )
        self._has_begun = False

    @property
    def now(self) -> Contained:
        """What the hypothesis of each row contains; N is 1."""
        return self._now

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
        self._now = Contained(*(field[rows] for field in self._now))

    def advance(self, last_ids: Tensor) -> None:
        """Append one token to each row; (R,) int64."""
        self._now = self.after(last_ids.unsqueeze(1))
        self._has_begun = True

    def after(self, tokens: Tensor) -> Contained:
        """What the rows would contain with one more token, for (R, N) tokens."""
        rows, is_matched = self._rows, self._now.is_matched
        goes_on = rows.ends_in_word.unsqueeze(1) & self._goes_on[tokens].unsqueeze(-1)
        new_counts = self._of_terms(rows.at_end(is_matched) & ~goes_on)  # (R, N, G)
        # The tokens of a form that counts belong to no other form of its term.
        is_free = self._of_forms(new_counts) == 0
        may_begin = ~rows.is_first_only if self._has_begun else torch.ones_like(rows.is_first_only)
        may_begin = may_begin[:, None, :, None].expand(*is_free.shape, 1)
        longer = torch.cat([may_begin, is_matched[..., :-1] & is_free.unsqueeze(-1)], dim=-1)
        is_next = rows.form_ids.unsqueeze(1) == tokens[..., None, None]
        return Contained(self._now.counts + new_counts, longer & is_next)

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
        counts = (num_matched > 0) & self._of_forms((num_missing > 0) & ~has_ended)
        return whole.sum(-1) + begun.where(counts, 0).amax(-1)

    def next_tokens(self) -> Tensor:
        """(R, F) int64: the token that each form needs next; `NO_TOKEN` if its term is complete or it cannot begin."""
        rows = self._rows
        has_ended, num_missing = self._missing(self._now)
        places = self._num_matched(self._now.is_matched)
        places = places.where(~self._of_forms(has_ended), 0).squeeze(1)  # (R, F)
        tokens = rows.form_ids.gather(2, places.unsqueeze(-1)).squeeze(-1)
        is_needed = self._of_forms(num_missing > 0).squeeze(1)
        if self._has_begun:
            is_needed = is_needed & ~(rows.is_first_only & (places == 0))
        return tokens.where(is_needed, NO_TOKEN)

    def _missing(self, contained: Contained) -> tuple[Tensor, Tensor]:
        """(R, N, G) bool: whether a form of the term ends here; (R, N, G) int64: how often the term is still needed."""
        has_ended = self._of_terms(self._rows.at_end(contained.is_matched))
        num_missing = self._rows.needed.unsqueeze(1) - contained.counts - has_ended
        return has_ended > 0, num_missing.clamp(min=0)

    def _of_terms(self, is_form: Tensor) -> Tensor:
        """(R, N, F) bool to (R, N, G) int64: 1 if it is True for any form of a term."""
        num_terms = self._rows.needed.shape[1]
        zeros = self._rows.needed.new_zeros(*is_form.shape[:2], num_terms)
        terms = self._rows.term_of_form.unsqueeze(1).expand_as(is_form)
        return zeros.scatter_reduce(2, terms, is_form.long(), "amax")

    def _of_forms(self, of_terms: Tensor) -> Tensor:
        """(R, N, G) to (R, N, F): the value of each form's term."""
        terms = self._rows.term_of_form.unsqueeze(1)
        return of_terms.gather(2, terms.expand(-1, of_terms.shape[1], -1))

    def _num_matched(self, is_matched: Tensor) -> Tensor:
        """(R, N, F) int64: the length of the longest begun prefix of each form, shorter than the form."""
        lengths = torch.arange(1, is_matched.shape[-1] + 1, device=is_matched.device)
        is_shorter = lengths < self._rows.form_lengths.unsqueeze(-1)  # (R, F, L)
        return (lengths * (is_matched & is_shorter.unsqueeze(1))).amax(-1)
