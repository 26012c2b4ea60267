"""The engine of an ensemble: several models with one target vocabulary, and the mean of their probabilities."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce

import torch
from torch import Tensor

from transformer_cli.decoding.engines.pytorch import PyTorchEngine
from transformer_cli.decoding.search import Scorer
from transformer_cli.model import Transformer
from transformer_cli.model.precision import at_least_float32


@dataclass(frozen=True, slots=True)
class EnsembleEngine(PyTorchEngine):
    """An `Engine` with several models: the probability of a token is the mean of the probabilities of all models.

    All models read the same source ids, and predict tokens of the same vocabulary. `model` is the first of them.
    """

    others: tuple[Transformer, ...] = ()
    """The models after the first, in eval mode and on the same device."""

    @classmethod
    def of(cls, engines: Sequence[PyTorchEngine]) -> "EnsembleEngine":
        """The ensemble of the models of engines that are otherwise alike."""
        first, *others = engines
        shared = {field.name: getattr(first, field.name) for field in fields(PyTorchEngine)}
        return cls(**shared, others=tuple(engine.model for engine in others))

    @property
    def models(self) -> tuple[Transformer, ...]:
        """All models of the ensemble."""
        return (self.model, *self.others)

    def _started(self, source_ids: Tensor, source_mask: Tensor | None) -> Scorer:
        return MeanScorer(
            [
                model.start_decoding(model.encode(source_ids, source_mask), source_mask)
                for model in self.models
            ]
        )

    def _logits(
        self, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor
    ) -> Tensor:
        all_logits = (model(source_ids, source_mask, decoder_input_ids) for model in self.models)
        return mean_log_probs([at_least_float32(one).log_softmax(-1) for one in all_logits])


class MeanScorer:
    """A `Scorer` whose probabilities are the mean of those of several scorers."""

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        self._scorers = scorers

    def advance(self, last_ids: Tensor) -> Tensor:
        """(R,) int64 to (R, V): see `Scorer.advance`."""
        return mean_log_probs(
            [at_least_float32(scorer.advance(last_ids)) for scorer in self._scorers]
        )

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """The rows of all scorers move alike."""
        for scorer in self._scorers:
            scorer.select(rows, keeps_sources=keeps_sources)


def mean_log_probs(log_probs: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probability, of the shape of each of the given log-probabilities.

    Source: the ensembles of fairseq, and of Sockeye in its default mode, `linear`.
    """
    return reduce(torch.logaddexp, log_probs) - math.log(len(log_probs))
