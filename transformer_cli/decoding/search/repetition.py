"""A search hook against repetitions: no n-gram (n tokens in a row) occurs twice in a hypothesis."""

import torch
from torch import Tensor


class NoRepeatedNgrams:
    """Bans each token that would complete an n-gram which the hypothesis already has. A forced prefix may repeat itself.

    Source: Paulus, Xiong and Socher 2018, section 2.5.
    """

    def __init__(self, size: int, prefix_lengths: Tensor) -> None:
        """
        Args:
            size: n, at least 1.
            prefix_lengths: (B,) int64, on the device of the search: the number of forced tokens of each sentence.
        """
        self._size = size
        self._prefix_lengths = prefix_lengths  # (R,)
        self._ids: Tensor | None = None  # (R, T): the tokens of each row, after [SOS]

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for tokens that repeat an n-gram."""
        if self._ids is None:  # before the first token; [SOS] is in no n-gram
            self._ids = last_ids.new_empty(len(last_ids), 0)
            return scores
        self._ids = torch.cat([self._ids, last_ids.unsqueeze(1)], dim=1)
        num_starts = self._ids.shape[1] - self._size + 1
        if num_starts < 1:
            return scores
        # Each n-gram so far is n - 1 tokens and a last one; that one is banned where the n - 1 tokens are the newest.
        newest = self._ids[:, num_starts:].unsqueeze(1)  # (R, 1, n - 1)
        beginnings = self._ids.unfold(1, self._size, 1)[..., :-1]  # (R, number of n-grams, n - 1)
        is_free = (self._prefix_lengths <= self._ids.shape[1]).unsqueeze(1)
        is_banned = (beginnings == newest).all(-1) & is_free
        endings = self._ids[:, self._size - 1 :]
        limits = scores.new_full((), torch.inf).where(~is_banned, -torch.inf)
        return scores.scatter_reduce(1, endings, limits, "amin")

    def select(self, rows: Tensor) -> None:
        """The tokens of the hypotheses move with their rows."""
        self._prefix_lengths = self._prefix_lengths[rows]
        if self._ids is not None:
            self._ids = self._ids[rows]
