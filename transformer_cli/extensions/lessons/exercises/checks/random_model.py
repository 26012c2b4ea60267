"""A stand-in for a model in the exercises about search: random log-probabilities for every beginning of a target."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from transformer_cli.extensions.lessons.exercises.outcomes import WrongAnswer


@dataclass(frozen=True)
class RandomModel:
    """`next_log_probs` of the exercises: it refuses beginnings for which no correct search asks."""

    function: str
    """The function that is checked, for messages."""
    seed: int
    num_tokens: int
    bos_id: int
    eos_id: int
    max_length: int
    favoured: Sequence[int] = ()
    """The tokens that are most probable at step 1, 2, ..."""
    has_end: bool = True
    """False: EOS has the probability 0."""
    _known: dict[tuple[int, ...], Tensor] = field(default_factory=dict)

    def __call__(self, ids: Any) -> Tensor:
        """(V,): the log-probability of each token to be the next one.

        Raises:
            WrongAnswer: no correct search asks for this beginning.
        """
        beginning = self._checked(ids)
        if beginning not in self._known:
            self._known[beginning] = self._log_probs(beginning)
        return self._known[beginning].clone()

    def _checked(self, ids: Any) -> tuple[int, ...]:
        given = tuple(int(one) for one in ids)
        if not given or given[0] != self.bos_id:
            raise WrongAnswer(
                f"{self.function}: the model is asked with {list(given)}, but the list must begin with bos_id ({self.bos_id}) "
                "and hold all ids so far",
                "next_log_probs([bos_id, *ids])",
            )
        if self.eos_id in given[1:]:
            raise WrongAnswer(
                f"{self.function}: EOS is forgotten: the model is asked what follows {list(given)}, but the target "
                f"ends at EOS ({self.eos_id})",
                "a target with EOS is finished; do not continue it",
            )
        if len(given) > self.max_length:
            raise WrongAnswer(
                f"{self.function}: max_length is forgotten: the model is asked for token {len(given)}, but max_length is {self.max_length}",
                "ask the model at most max_length times in a row",
            )
        return given

    def _log_probs(self, beginning: tuple[int, ...]) -> Tensor:
        number = self.seed
        for token in beginning:
            number = (number * 31 + token + 1) % 2**31
        logits = 1.5 * torch.randn(self.num_tokens, generator=torch.Generator().manual_seed(number))
        step = len(beginning) - 1
        if step < len(self.favoured):
            logits[self.favoured[step]] = logits.max() + 1
        if not self.has_end:
            logits[self.eos_id] = -torch.inf
        return logits.log_softmax(-1)
