"""The engine of an ensemble: several models with one target vocabulary, and the mean of their probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from torch import Tensor

from transformer_cli.decoding.engines.mean_probabilities import MeanScorer, mean_log_probs
from transformer_cli.decoding.engines.pytorch import PyTorchEngine
from transformer_cli.decoding.engines.search_start import started_search
from transformer_cli.decoding.search import AttendingScorer
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

    def _started(
        self, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool
    ) -> AttendingScorer:
        return MeanScorer(
            [
                started_search(model, source_ids, source_mask, with_attention=with_attention)
                for model in self.models
            ]
        )

    def _logits(
        self, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor
    ) -> Tensor:
        all_logits = (model(source_ids, source_mask, decoder_input_ids) for model in self.models)
        return mean_log_probs([at_least_float32(one).log_softmax(-1) for one in all_logits])
