"""Teacher forcing: the model reads a given target, and gives probabilities and attention for all positions at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.decoding.engine import Explanation, SpecialIds, TokenIds
from transformer_cli.decoding.engines.cross_attention import aligning_layer, attended_layers
from transformer_cli.decoding.engines.mean_probabilities import mean_log_probs
from transformer_cli.decoding.engines.source_reading import SourceReading, read_by_all
from transformer_cli.decoding.length_batches import length_batches, max_logits
from transformer_cli.model import Transformer
from transformer_cli.model.precision import at_least_float32
from transformer_cli.process.memory import to_device
from transformer_cli.text import SequenceFormat
from transformer_cli.text.padding import pad_ids


class _Batch(NamedTuple):
    """The pairs of one batch on the device."""

    source_ids: Tensor  # (B, S) int64
    source_mask: Tensor  # (B, S) bool
    decoder_input_ids: Tensor  # (B, T) int64
    target_ids: Tensor  # (B, T) int64


@dataclass(frozen=True, slots=True)
class TeacherForcing:
    """Explanations of given targets; the caller sets inference mode and the precision."""

    models: tuple[Transformer, ...]
    """One model, or all of an ensemble, whose probabilities and attention weights are averaged."""
    special_ids: SpecialIds
    sequence_format: SequenceFormat
    device: torch.device
    readings: tuple[SourceReading | None, ...] = (None,)
    """For each model, how it reads a source; None: it reads the given ids, as the first model does. Only the attention
    of these models is averaged."""

    def explain(
        self,
        sources: Sequence[TokenIds],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int,
    ) -> list[Explanation]:
        """See `ExplainingEngine.explain`."""
        explanations: dict[int, Explanation] = {}
        pairs = list(zip(sources, targets, strict=True))
        batches = length_batches(
            range(len(pairs)),
            lambda index: max(1, *map(len, pairs[index])),
            max_tokens=min(
                batch_tokens, max_logits(self.device.type) // self.models[0].output.out_features
            ),
        )
        for batch in batches:
            of_batch = self._explain([pairs[index] for index in batch], num_best)
            explanations |= zip(batch, of_batch, strict=True)
        return [explanations[index] for index in range(len(pairs))]

    def _explain(
        self, pairs: Sequence[tuple[TokenIds, TokenIds]], num_best: int
    ) -> Iterator[Explanation]:
        batch = self._batch(pairs)
        logits, attention = self._predicted(batch)
        log_probs = mean_log_probs([at_least_float32(one).log_softmax(-1) for one in logits])
        of_targets = log_probs.gather(-1, batch.target_ids.unsqueeze(-1)).squeeze(-1)  # (B, T)
        aligned = self._aligned(attention, batch.source_ids)
        best = log_probs.topk(min(num_best, log_probs.size(-1)), dim=-1)  # (B, T, K)
        arrays = (
            of_targets.float(), attention.float(), aligned, best.indices, best.values.float()
        )  # fmt: skip
        rows = zip(*(one.cpu().numpy() for one in arrays), strict=True)
        for (source, target), row in zip(pairs, rows, strict=True):
            probabilities, weights, places, best_ids, best_log_probs = (
                one[: len(target)].copy() for one in row
            )
            yield Explanation(
                token_log_probs=probabilities,
                attention=weights[:, : len(source)],
                alignment=tuple(places.tolist()),
                best_ids=best_ids,
                best_log_probs=best_log_probs,
            )

    def _predicted(self, batch: _Batch) -> tuple[list[Tensor], Tensor]:
        """The (B, T, V) logits of each model, and the (B, T, S) mean of the attention on the given source tokens."""
        read = read_by_all(self.readings, batch.source_ids, batch.source_mask)
        logits, attention = [], []
        for model, (source_ids, source_mask), reading in zip(
            self.models, read, self.readings, strict=True
        ):
            of_model, weights = _predicted(model, source_ids, source_mask, batch.decoder_input_ids)
            logits.append(of_model)
            if reading is None:
                attention.append(weights)
        return logits, torch.stack(attention).mean(0)

    def _aligned(self, attention: Tensor, source_ids: Tensor) -> Tensor:
        """(B, T): for each target token, the source token with the largest weight, a token of the text if there is one."""
        special = (self.special_ids.pad_id, self.special_ids.eos_id, *self.special_ids.tag_ids)
        is_special = torch.isin(source_ids, torch.tensor(special, device=self.device))  # (B, S)
        # A weight is at most 1, so a special token with 2 less is chosen only if there is no other token.
        return (attention - 2.0 * is_special.unsqueeze(1)).argmax(-1)

    def _batch(self, pairs: Sequence[tuple[TokenIds, TokenIds]]) -> _Batch:
        pad_id = self.special_ids.pad_id
        source_ids, source_mask = pad_ids([source for source, _ in pairs], pad_id)
        target_ids, is_real = pad_ids([target for _, target in pairs], pad_id)
        inputs = self.sequence_format.decoder_inputs(
            target_ids, is_real, sos_id=self.special_ids.sos_id, pad_id=pad_id
        )
        arrays = source_ids, source_mask, inputs, target_ids
        return _Batch(*map(self._on_device, arrays))

    def _on_device(self, array: NDArray[Any]) -> Tensor:
        return to_device(torch.from_numpy(array), self.device)


def _predicted(
    model: Transformer, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor
) -> tuple[Tensor, Tensor]:
    """(B, T, V) logits, and (B, T, S) attention weights of the layer that aligns best, as a mean over heads."""
    memory = model.encode(source_ids, source_mask)  # (B, S, D)
    inputs = decoder_input_ids, memory, source_mask
    chosen = aligning_layer(len(model.decoder.layers))
    x = attention = memory  # the decoder has at least one layer, so both are replaced
    for number, layer in enumerate(attended_layers(model, *inputs)):
        x = layer.x
        if number == chosen:
            attention = layer.weights.mean(1)
    return model.output(model.decoder.norm(x)), attention
