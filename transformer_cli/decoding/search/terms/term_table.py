"""The terms of the sentences of a search as tensors.

Shapes: R rows, F forms of all terms of a sentence, L tokens of a form, G different terms of a sentence, V vocabulary.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer_cli.decoding.engine import Term, TokenIds
from transformer_cli.decoding.glossary.term_counts import needed_counts
from transformer_cli.text.whole_words.word_edges import WordEdges

NO_TOKEN = -1


class TermTable(NamedTuple):
    """Which terms each row needs; a row with fewer terms than others is filled up with forms that nothing matches."""

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
        terms = [Counter(of_one) for of_one in sentences]
        forms = [_forms(of_one) for of_one in terms]
        longest = max(len(form.ids) for of_one in forms for form in of_one)
        ids = [
            torch.tensor([(*form.ids, *[NO_TOKEN] * (longest - len(form.ids))) for form in of_one])
            for of_one in forms
        ]
        ends = [[bool(edges.ends_in_word[form.ids[-1]]) for form in of_one] for of_one in forms]
        lengths = [[max(map(len, term.all_forms)) for term in of_one] for of_one in terms]
        return cls(
            pad_sequence(ids, batch_first=True, padding_value=NO_TOKEN),
            _padded([[len(form.ids) for form in of_one] for of_one in forms], 1),
            _padded([[form.term for form in of_one] for of_one in forms], 0),
            _padded([[form.is_first_only for form in of_one] for of_one in forms], 0).bool(),
            _padded(ends, 0).bool(),
            _padded([needed_counts(of_one, edges) or [0] for of_one in terms], 0),
            _padded([of_one or [1] for of_one in lengths], 1),
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


class _Form(NamedTuple):
    ids: TokenIds
    term: int
    is_first_only: bool


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
