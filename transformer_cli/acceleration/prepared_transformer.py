"""A Transformer prepared for translation on a CPU: the same results as the modules, from fewer and larger operations.

Queries, keys and values come from one product. The division by sqrt(K) is part of the query weights. Weights are converted and
laid out once (prepared_linear.py). The keys and values of a source are stored once for all hypotheses of its sentence, and those
of the targets are never copied. In float32, compiled kernels attend to them, if there are any (listed_reading.py); else PyTorch does
(biased_reading.py).
"""

from functools import partial

import torch
from torch import Tensor

from transformer_cli.acceleration.biased_reading import BiasedDecoding, read_sources
from transformer_cli.acceleration.listed_reading import ListedDecoding, read_listed_sources
from transformer_cli.acceleration.native_kernels import find_kernels, log_softmax_
from transformer_cli.acceleration.prepared_layers import (
    Prepare,
    PreparedDecoderLayer,
    PreparedEncoderLayer,
    prepare_norm,
)
from transformer_cli.acceleration.prepared_linear import prepare_linear, prepare_quantised
from transformer_cli.model.precision import at_least_float32
from transformer_cli.model.transformer import Transformer


class PreparedTransformer:
    """The encoder and the decoder steps of a model. Its weights must not change afterwards."""

    def __init__(
        self, model: Transformer, dtype: torch.dtype, *, is_quantised: bool = False
    ) -> None:
        """
        Args:
            model: in float32, on the CPU, in eval mode.
            dtype: of matrix products, float32 or bfloat16; norms, softmax and sums are in float32.
            is_quantised: linear layers multiply integers of 8 bits; the dtype is float32.
        """
        self.model, self.dtype = model, dtype
        prepare: Prepare = (
            prepare_quantised if is_quantised else partial(prepare_linear, dtype=dtype)
        )
        kernels = self.kernels = find_kernels() if dtype == torch.float32 else None
        """What attends instead of PyTorch; in float32 only."""
        self.encoder = [
            PreparedEncoderLayer(layer, prepare, kernels) for layer in model.encoder.layers
        ]
        self.decoder = [
            PreparedDecoderLayer(layer, prepare, kernels) for layer in model.decoder.layers
        ]
        self.encoder_norm = prepare_norm(model.encoder.norm, kernels)
        self.decoder_norm = prepare_norm(model.decoder.norm, kernels)
        self.output = prepare([model.output])

    def encode(self, source_ids: Tensor, source_mask: Tensor | None) -> Tensor:
        """See `Transformer.encode`; each source has at least one token."""
        with torch.autocast("cpu", enabled=False):
            x = self.model.embed_source(source_ids)
            rotation, kernels = self.model.rotation(x), self.kernels
            read = (
                read_sources(source_mask, len(x))
                if kernels is None
                else read_listed_sources(kernels, source_ids.shape, source_mask)
            )
            for layer in self.encoder:
                x = layer(x, read, rotation)
            return self.encoder_norm(x)

    def start_decoding(self, memory: Tensor, source_mask: Tensor | None) -> "PreparedDecoderState":
        """See `Transformer.start_decoding`."""
        with torch.autocast("cpu", enabled=False):
            return PreparedDecoderState(self, memory, source_mask)


class PreparedDecoderState:
    """R partial targets, one per row, as `DecoderState`."""

    def __init__(
        self, prepared: PreparedTransformer, memory: Tensor, source_mask: Tensor | None
    ) -> None:
        self._prepared, self._kernels = prepared, prepared.kernels
        layers = prepared.decoder
        self._reading: BiasedDecoding | ListedDecoding = (
            BiasedDecoding(layers, memory, source_mask, prepared.dtype)
            if self._kernels is None
            else ListedDecoding(self._kernels, layers, memory, source_mask)
        )
        self._length = 0

    def advance(self, last_ids: Tensor) -> Tensor:
        """See `DecoderState.advance`."""
        prepared, model, reading = self._prepared, self._prepared.model, self._reading
        with torch.autocast("cpu", enabled=False):
            embedded = model.embed_target(last_ids[:, None], self._length)  # (R, 1, D)
            rotation, x = model.rotation(embedded, self._length), embedded[:, 0]
            reading.append(len(x))
            for number, layer in enumerate(prepared.decoder):
                read_target = partial(reading.read_target, number)
                x = layer.advance(x, read_target, partial(reading.read_source, number), rotation)
            self._length += 1
            logits = at_least_float32(prepared.output(prepared.decoder_norm(x)))
            if self._kernels is not None:
                return log_softmax_(self._kernels, logits)
            return logits.log_softmax(-1)

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """See `DecoderState.select`."""
        self._reading.select(rows, keeps_sources=keeps_sources)
