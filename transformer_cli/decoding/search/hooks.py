"""Search hooks: code that changes the scores of the next token before the search chooses."""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.text.byte_pieces import BETWEEN_CHARACTERS, BytePieces


class SearchHook(Protocol):
    """Changes the scores of the next token at every step of a search.

    A hook with state serves one search: build a new one for each. It may keep anything per row (R rows, one
    for each hypothesis). At the first step there is one row for each sentence, in the order of the batch.
    Later the search moves, repeats and drops rows, and then calls `select`. At each step:

    1. `select(rows)`, once or several times, if rows have moved since the step before;
    2. `adjust(scores, last_ids)`, once.

    Some rows belong to no open hypothesis, for example those of a finished sentence that is not dropped yet.
    The search ignores what a hook returns for them. If several hooks are given, each receives the scores
    that the hook before it returned.
    """

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """Return the scores among which the search chooses.

        Args:
            scores: (R, V) log-probabilities of the next token, float32 at least. The hook may write into it.
            last_ids: (R,) int64, the last token of each row; [SOS] at the first step.

        Returns:
            (R, V), the same tensor or another of its dtype. -inf bans a token; a row of -inf alone ends its
            hypothesis without a translation. No score may be NaN or greater than 0: the beam search ends a sentence
            as soon as no open hypothesis can win, and it assumes that scores only fall.
        """

    def select(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`: the same as `Scorer.select`."""


class BannedTokens:
    """A hook without state: the search never chooses these tokens."""

    def __init__(self, banned_ids: Iterable[int]) -> None:
        self._banned_ids = sorted(set(banned_ids))

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for the banned tokens."""
        for banned_id in self._banned_ids:
            scores[:, banned_id] = -torch.inf
        return scores

    def select(self, rows: Tensor) -> None:
        """Nothing to do: all rows have the same bans."""


class MinimalLengths:
    """A hook that bans [EOS] until a hypothesis has the smallest number of tokens of its sentence."""

    def __init__(self, min_lengths: Tensor, eos_id: int) -> None:
        """
        Args:
            min_lengths: (B,) int64, on the device of the search: the smallest number of tokens, [EOS] included.
            eos_id: the token that ends a hypothesis.
        """
        self._num_missing = min_lengths  # (R,): number of tokens that each row must still get
        self._eos_id = eos_id

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for [EOS] in hypotheses that it would make too short."""
        is_too_early = self._num_missing > 1
        scores[:, self._eos_id] = scores[:, self._eos_id].where(~is_too_early, -torch.inf)
        self._num_missing = self._num_missing - 1
        return scores

    def select(self, rows: Tensor) -> None:
        """The numbers move with their rows."""
        self._num_missing = self._num_missing[rows]


class WholeCharacters:
    """A hook for tokens that are bytes: each hypothesis of the search is UTF-8, without a broken character.

    Such a token is banned if the bytes so far do not allow it, or if the tokens that are left cannot end its
    character.
    """

    def __init__(self, pieces: BytePieces, max_lengths: Tensor) -> None:
        """
        Args:
            pieces: the bytes of the vocabulary.
            max_lengths: (B,) int64, on the device of the search: the largest number of tokens.
        """
        self._next_states = torch.from_numpy(pieces.next_states).to(max_lengths.device)
        self._is_banned = torch.from_numpy(~pieces.is_allowed).to(max_lengths.device)
        self._last_limit = self._is_banned.shape[1] - 1
        [self._never_first] = self._is_banned[BETWEEN_CHARACTERS, -1].nonzero(as_tuple=True)
        self._states = torch.zeros_like(max_lengths)  # (R,)
        self._num_left = max_lengths  # (R,): number of tokens that each row may still get

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for tokens that break a character."""
        self._states = self._next_states[self._states, last_ids].clamp(min=0)
        self._num_left = (self._num_left - 1).clamp(min=0)
        limits = self._num_left.clamp(max=self._last_limit)
        # Nearly all rows are between characters, where only few tokens are banned. Here the CPU waits for the device.
        [others] = torch.nonzero(
            (self._states != BETWEEN_CHARACTERS) | (limits < self._last_limit), as_tuple=True
        )
        scores_of_others = scores[others]
        scores.index_fill_(1, self._never_first, -torch.inf)
        if len(others):
            is_banned = self._is_banned[self._states[others], limits[others]]
            scores[others] = scores_of_others.masked_fill(is_banned, -torch.inf)
        return scores

    def select(self, rows: Tensor) -> None:
        """The states of the hypotheses move with their rows."""
        self._states, self._num_left = self._states[rows], self._num_left[rows]
