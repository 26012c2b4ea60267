"""Ends the search of sentences that nobody needs any more, while their neighbours go on."""

from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

from transformer_cli.decoding.engine import Request


class UnwantedSentences:
    """A hook that bans all tokens of unwanted sentences, so that the search drops their rows."""

    def __init__(
        self,
        requests: Sequence[Request],
        unwanted: Callable[[], Collection[Request]],
        device: torch.device,
    ) -> None:
        """
        Args:
            requests: B of them, those of the search.
            unwanted: see `InterruptibleEngine.interruptible`; it is called once at each step.
            device: of the search.
        """
        self._requests = requests
        self._unwanted = unwanted
        self._num_seen = 0
        self._sentences = torch.arange(
            len(requests), device=device
        )  # (R,): the sentence of each row
        self._is_unwanted: Tensor | None = None  # (B,) bool

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with rows of -inf for unwanted sentences."""
        unwanted = self._unwanted()
        if len(unwanted) > self._num_seen:
            self._num_seen, unwanted = len(unwanted), frozenset(unwanted)
            is_unwanted = [request in unwanted for request in self._requests]
            self._is_unwanted = torch.tensor(is_unwanted, device=self._sentences.device)
        if self._is_unwanted is None:
            return scores
        ends = self._is_unwanted[self._sentences]
        return scores.masked_fill_(ends.unsqueeze(1), -torch.inf)

    def select(self, rows: Tensor) -> None:
        """Each row keeps its sentence."""
        self._sentences = self._sentences[rows]
