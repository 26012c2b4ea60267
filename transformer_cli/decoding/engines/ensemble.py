"""The engine of an ensemble: several models with one target vocabulary, and the mean of their probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from torch import Tensor

from transformer_cli.decoding.engine import Explanation, Request, TokenIds
from transformer_cli.decoding.engines.mean_probabilities import MeanScorer, mean_log_probs
from transformer_cli.decoding.engines.pytorch import PyTorchEngine
from transformer_cli.decoding.engines.search_start import started_search
from transformer_cli.decoding.engines.source_reading import SourceReading, read_by_all
from transformer_cli.decoding.engines.teacher_forcing import TeacherForcing
from transformer_cli.decoding.search import AttendingScorer
from transformer_cli.model import Transformer
from transformer_cli.model.precision import at_least_float32


@dataclass(frozen=True, slots=True)
class EnsembleEngine(PyTorchEngine):
    """An `Engine` with several models: the probability of a token is the mean of the probabilities of all models.

    All models predict tokens of the same vocabulary. Sources are given as token ids of the first model, which is `model`.
    Attention is the mean over the models that read these ids.
    """

    others: tuple[Transformer, ...] = ()
    """The models after the first, in eval mode and on the same device."""
    readings: tuple[SourceReading | None, ...] = ()
    """For each of `models`, how it reads a source; None: it reads the given ids, as the first model does."""

    @classmethod
    def of(
        cls, engines: Sequence[PyTorchEngine], readings: Sequence[SourceReading | None]
    ) -> "EnsembleEngine":
        """The ensemble of the models of engines that are otherwise alike.

        Args:
            readings: one for each engine.
        """
        first, *others = engines
        shared = {field.name: getattr(first, field.name) for field in fields(PyTorchEngine)}
        models = tuple(engine.model for engine in others)
        return cls(**shared, others=models, readings=tuple(readings))

    @property
    def models(self) -> tuple[Transformer, ...]:
        """All models of the ensemble."""
        return (self.model, *self.others)

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        """See `ExplainingEngine.explain`; the alignments are to tokens of the first model."""
        facts = self.models, self.special_ids, self.sequence_format, self.machine.device
        forcing = TeacherForcing(*facts, readings=self.readings)
        sources = [request.ids for request in requests]
        with self._inference():
            return forcing.explain(sources, targets, batch_tokens=batch_tokens, num_best=num_best)

    def _started(
        self, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool
    ) -> AttendingScorer:
        read = read_by_all(self.readings, source_ids, source_mask)
        scorers = [
            started_search(model, *source, with_attention=with_attention and reading is None)
            for model, source, reading in zip(self.models, read, self.readings, strict=True)
        ]
        pairs = zip(scorers, self.readings, strict=True)
        return MeanScorer(scorers, [scorer for scorer, reading in pairs if reading is None])

    def _logits(
        self, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor
    ) -> Tensor:
        read = read_by_all(self.readings, source_ids, source_mask)
        all_logits = (
            model(*source, decoder_input_ids)
            for model, source in zip(self.models, read, strict=True)
        )
        return mean_log_probs([at_least_float32(one).log_softmax(-1) for one in all_logits])
