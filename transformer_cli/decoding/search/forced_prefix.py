"""Forced prefixes: a search hook that makes each translation begin with given tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

_OVER = -1


class ForcedPrefix:
    """A hook: each hypothesis begins with the prefix of its sentence, and a new word or a mark follows it.

    The score of a hypothesis contains the log-probabilities of the forced tokens, so that the hypotheses of a
    sentence are those that a search without a hook would find among all that begin like this.
    """

    def __init__(
        self,
        prefixes: Sequence[Sequence[int]],
        *,
        continuing_ids: Sequence[int],
        device: torch.device,
    ) -> None:
        """
        Args:
            prefixes: the token ids for each sentence of the batch; empty for a sentence that may begin as it likes.
            continuing_ids: the tokens that continue a word. They never follow a prefix, which ends with a whole word.
            device: the device of the search.
        """
        lengths = torch.tensor([len(prefix) for prefix in prefixes])
        self._longest = int(lengths.max())
        forced = torch.full((len(prefixes), self._longest + 1), _OVER)
        for row, prefix in enumerate(prefixes):
            forced[row, : len(prefix)] = torch.tensor(prefix, dtype=torch.int64)
        self._forced = forced.to(device)  # (R, P + 1): the token of each step, or _OVER
        # A sentence without a prefix has no step after its prefix.
        self._step_after = lengths.where(lengths > 0, _OVER).to(device)  # (R,)
        self._continuing_ids = torch.tensor(continuing_ids, dtype=torch.int64, device=device)
        self._step = 0

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for all tokens but the forced one, and behind the prefix for tokens that continue a word."""
        step = self._step
        self._step += 1
        if step > self._longest:
            return scores
        forced = self._forced[:, step].unsqueeze(1)  # (R, 1)
        place = forced.clamp(min=0)
        of_forced = scores.gather(1, place)
        only_forced = torch.full_like(scores, -torch.inf).scatter(1, place, of_forced)
        scores = scores.where(forced == _OVER, only_forced)
        is_after = (self._step_after == step).unsqueeze(1)
        kept = scores[:, self._continuing_ids]
        scores[:, self._continuing_ids] = kept.masked_fill(is_after, -torch.inf)
        return scores

    def select(self, rows: Tensor) -> None:
        """The prefixes move with their rows; the step is the same for all rows."""
        if self._step <= self._longest:
            self._forced, self._step_after = self._forced[rows], self._step_after[rows]
