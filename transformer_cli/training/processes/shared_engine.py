"""An engine that shares out its work: each process translates some sources, and all get all translations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Engine, Hypothesis, Request, TokenIds
from transformer_cli.training.processes.process_group import Processes


class StoppedError(Exception):
    """At least one process was asked to stop, so the work has no result."""


@dataclass(frozen=True, slots=True)
class SharedEngine:
    """An `Engine` for a validation by several processes; all of them make the same calls.

    The sources are shared out by their lengths, so that all processes have about the same work.
    """

    engine: Engine
    processes: Processes

    def translate(
        self, requests: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        by_rank = self._indices_by_rank([len(request.ids) for request in requests])
        own = [requests[index] for index in by_rank[self.processes.rank]]
        shares = self._gathered(lambda: self.engine.translate(own, options))
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for indices, share in zip(by_rank, shares, strict=True):
            for index, hypotheses in zip(indices, share, strict=True):
                found[index] = [Hypothesis(tuple(ids), score) for ids, score, *_ in hypotheses]
        return found

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`."""
        pairs = list(zip(sources, targets, strict=True))
        indices = self._indices_by_rank([max(map(len, pair)) for pair in pairs])[
            self.processes.rank
        ]
        own_sources = [sources[index] for index in indices]
        own_targets = [targets[index] for index in indices]
        return sum(
            self._gathered(
                lambda: self.engine.negative_log_likelihood(
                    own_sources, own_targets, batch_tokens=batch_tokens
                )
            )
        )

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> Tensor:
        """See `Engine.next_token_probabilities`; each process computes them."""
        return self.engine.next_token_probabilities(source, prefix)

    def _indices_by_rank(self, lengths: Sequence[int]) -> list[list[int]]:
        """For each rank, the indices of its items: long and short ones in each."""
        by_length = sorted(range(len(lengths)), key=lambda index: lengths[index])
        return [by_length[rank :: self.processes.size] for rank in range(self.processes.size)]

    def _gathered(self, work: Callable[[], Any]) -> list[Any]:
        """The results of all processes, by rank.

        Raises:
            StoppedError: one of them was asked to stop.
        """
        try:
            result = {"of": work()}
        except StoppedError:
            result = {}
        results = self.processes.gathered(result)
        if not all(results):
            raise StoppedError
        return [one["of"] for one in results]
