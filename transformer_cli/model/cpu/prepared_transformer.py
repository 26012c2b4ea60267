"""A Transformer prepared for translation on a CPU: the same results as the modules, from fewer and larger operations.

Queries, keys and values come from one product. The division by sqrt(K) is part of the query weights. Weights are converted and
laid out once (prepared_linear.py). The keys and values of a source are stored once for all hypotheses of its sentence, and those
of the targets are never copied (append_only_cache.py).
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.cpu.append_only_cache import AppendOnlyCache, HypothesisSlots
from transformer_cli.model.cpu.prepared_linear import Linear, prepare_linear, prepare_quantised
from transformer_cli.model.layers import DecoderLayer, EncoderLayer, FeedForward
from transformer_cli.model.masks import lowest
from transformer_cli.model.positions import Rotation, rotate
from transformer_cli.model.precision import at_least_float32
from transformer_cli.model.transformer import Transformer

Prepare = Callable[..., Linear]
"""`prepare_quantised`, or `prepare_linear` of a dtype."""


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
        self.model = model
        prepare: Prepare = (
            prepare_quantised if is_quantised else partial(prepare_linear, dtype=dtype)
        )
        self.encoder = [_PreparedEncoderLayer(layer, prepare) for layer in model.encoder.layers]
        self.decoder = [
            _PreparedDecoderLayer(layer, prepare, dtype) for layer in model.decoder.layers
        ]
        self.output = prepare([model.output])

    def encode(self, source_ids: Tensor, source_mask: Tensor | None) -> Tensor:
        """See `Transformer.encode`; each source has at least one token."""
        with torch.autocast("cpu", enabled=False):
            x = self.model.embed_source(source_ids)
            rotation, bias = self.model.rotation(x), _bias_of(source_mask)
            for layer in self.encoder:
                x = layer(x, bias, rotation)
            return self.model.encoder.norm(x)

    def start_decoding(self, memory: Tensor, source_mask: Tensor | None) -> "PreparedDecoderState":
        """See `Transformer.start_decoding`."""
        with torch.autocast("cpu", enabled=False):
            return PreparedDecoderState(self, memory, source_mask)


class PreparedDecoderState:
    """R partial targets, one per row, as `DecoderState`."""

    def __init__(
        self, prepared: PreparedTransformer, memory: Tensor, source_mask: Tensor | None
    ) -> None:
        self._prepared = prepared
        self._slots = HypothesisSlots(len(memory))
        self._source_bias = _bias_of(source_mask)
        self._sources = [layer.read_source(memory) for layer in prepared.decoder]
        self._caches = [layer.new_cache(len(memory)) for layer in prepared.decoder]
        self._length = 0

    def advance(self, last_ids: Tensor) -> Tensor:
        """See `DecoderState.advance`."""
        prepared, model = self._prepared, self._prepared.model
        with torch.autocast("cpu", enabled=False):
            embedded = model.embed_target(last_ids[:, None], self._length)  # (R, 1, D)
            rotation, x = model.rotation(embedded, self._length), embedded[:, 0]
            self._slots.append()
            target_bias = self._slots.bias()
            for layer, cache, source in zip(
                prepared.decoder, self._caches, self._sources, strict=True
            ):
                newest = _Newest(cache, self._slots, target_bias, rotation)
                x = layer.advance(x, newest, source, self._source_bias)
            self._length += 1
            logits = prepared.output(model.decoder.norm(x))
            return at_least_float32(logits).log_softmax(-1)

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """See `DecoderState.select`."""
        sources = self._slots.select(rows, keeps_sources=keeps_sources)
        if sources is None:
            return
        for cache in self._caches:
            cache.select(sources)
        self._sources = [(keys[sources], values[sources]) for keys, values in self._sources]
        if self._source_bias is not None:
            self._source_bias = self._source_bias[sources]


class _Newest:
    """What self-attention of one decoder step reads besides its input."""

    def __init__(
        self,
        cache: AppendOnlyCache,
        slots: HypothesisSlots,
        bias: Tensor | None,
        rotation: Rotation | None,
    ) -> None:
        self.cache, self.slots, self.bias, self.rotation = cache, slots, bias, rotation


class _PreparedAttention:
    """Projections of one attention; its heads are G groups of g queries, which share keys and values."""

    def __init__(
        self, attention: MultiHeadAttention, prepare: Prepare, *, reads_itself: bool
    ) -> None:
        self.module = attention
        self.num_groups = attention.num_kv_heads  # G
        self.group_size = attention.num_heads // attention.num_kv_heads  # g
        self.width = attention.query.out_features // attention.num_heads  # K
        # A norm of queries would undo the factor.
        is_normed = not isinstance(attention.query_norm, nn.Identity)
        factor = 1.0 / math.sqrt(self.width)
        self._late_factor = factor if is_normed else None
        in_weights = 1.0 if is_normed else factor
        keys_values = [attention.key, attention.value]
        if reads_itself:
            scales = [in_weights, 1.0, 1.0]
            self.project = prepare([attention.query, *keys_values], scales=scales)
        else:
            self.project = prepare([attention.query], scales=[in_weights])
            self.project_source = prepare(keys_values)
        self.output = prepare([attention.output])

    def split(self, projected: Tensor, rotation: Rotation | None, length: int) -> Sequence[Tensor]:
        """(N * length, (H + 2 G) K) to queries, (N, length, H, K), and keys and values, (N, length, G, K)."""
        groups = self.num_groups
        sizes = [groups * self.group_size, groups, groups]
        heads = projected.view(-1, length, sum(sizes), self.width).split(sizes, dim=2)
        return self.queries(heads[0], rotation), self._turned(heads[1], rotation), heads[2]

    def queries(self, queries: Tensor, rotation: Rotation | None) -> Tensor:
        """(N, length, H, K), normalised, rotated, and divided by sqrt(K)."""
        normed = self.module.query_norm(queries)
        if self._late_factor is not None:
            normed = normed * self._late_factor
        return _rotated(normed, rotation)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, D) to keys (B, G, K, S) and values (B, G, S, K)."""
        num_sentences, length, _ = memory.shape
        projected = self.project_source(memory.flatten(0, 1))
        heads = projected.view(num_sentences, length, 2, self.num_groups, self.width)
        keys, values = heads.unbind(2)
        keys = self._turned(keys, None)
        return keys.permute(0, 2, 3, 1).contiguous(), values.transpose(1, 2).contiguous()

    def _turned(self, keys: Tensor, rotation: Rotation | None) -> Tensor:
        return _rotated(self.module.key_norm(keys), rotation)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        """The output of attention.

        Args:
            queries: (b, s, H, K), for s query positions of each sentence.
            keys: (b * G, K, C).
            values: (b * G, C, K).
            bias: broadcast to (b, G, s, g, C); None: nothing is hidden.

        Returns:
            (b * s, D).
        """
        sizes = len(queries), queries.size(1), self.num_groups, self.group_size, self.width
        grouped = queries.view(sizes).transpose(1, 2)  # (b, G, s, g, K)
        scores = at_least_float32(torch.bmm(grouped.reshape(len(keys), -1, self.width), keys))
        if bias is not None:
            of_groups = scores.view(sizes[0], sizes[2], sizes[1], sizes[3], -1)
            of_groups += bias
        gathered = torch.bmm(scores.softmax(-1).to(values.dtype), values)
        heads = gathered.view(sizes[0], sizes[2], sizes[1], *sizes[3:]).transpose(1, 2)
        return self.output(heads.reshape(sizes[0] * sizes[1], -1))


class _PreparedFeedForward:
    def __init__(self, module: FeedForward, prepare: Prepare) -> None:
        self._activation = module.activation
        first = [module.up] if module.gate is None else [module.gate, module.up]
        self._first, self._down = prepare(first), prepare([module.down])
        self._is_gated = module.gate is not None

    def __call__(self, x: Tensor) -> Tensor:
        """(N, D) to the same shape."""
        inner = self._first(x)
        if not self._is_gated:
            return self._down(self._activation(inner))
        gate, up = inner.chunk(2, dim=-1)
        return self._down(self._activation(gate) * up)


class _PreparedEncoderLayer:
    def __init__(self, layer: Any, prepare: Prepare) -> None:
        assert isinstance(layer, EncoderLayer)
        self._layer = layer
        self._attention = _PreparedAttention(layer.self_attention, prepare, reads_itself=True)
        self._feed_forward = _PreparedFeedForward(layer.feed_forward, prepare)

    def __call__(self, x: Tensor, bias: Tensor | None, rotation: Rotation | None) -> Tensor:
        """(B, S, D) to the same shape; the bias is (B, 1, 1, 1, S)."""
        layer, attention, length = self._layer, self._attention, x.size(1)

        def attend(x: Tensor) -> Tensor:
            queries, keys, values = attention.split(attention.project(x), rotation, length)
            all_keys = keys.permute(0, 2, 3, 1).flatten(0, 1)  # (B * G, K, S)
            return attention.attend(queries, all_keys, values.transpose(1, 2).flatten(0, 1), bias)

        rows = x.flatten(0, 1)
        rows = layer.residual(rows, attend, layer.self_attention_norm, _unchanged)
        rows = layer.residual(rows, self._feed_forward, layer.feed_forward_norm, _unchanged)
        return rows.view_as(x)


class _PreparedDecoderLayer:
    def __init__(self, layer: Any, prepare: Prepare, dtype: torch.dtype) -> None:
        assert isinstance(layer, DecoderLayer)
        self._layer, self._dtype = layer, dtype
        self._self = _PreparedAttention(layer.self_attention, prepare, reads_itself=True)
        self._cross = _PreparedAttention(layer.cross_attention, prepare, reads_itself=False)
        self._feed_forward = _PreparedFeedForward(layer.feed_forward, prepare)

    def read_source(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, D) to keys (B, G, K, S) and values (B, G, S, K)."""
        return self._cross.keys_and_values(memory)

    def new_cache(self, num_sentences: int) -> AppendOnlyCache:
        """An empty cache of this layer."""
        return AppendOnlyCache(num_sentences, self._self.num_groups, self._self.width, self._dtype)

    def advance(
        self, x: Tensor, newest: _Newest, source: tuple[Tensor, Tensor], source_bias: Tensor | None
    ) -> Tensor:
        """(R, D) to the same shape: one new target position."""
        layer, slots = self._layer, newest.slots
        rows = slots.num_sentences, slots.num_hypotheses

        def attend_to_target(x: Tensor) -> Tensor:
            heads = self._self.split(self._self.project(x), newest.rotation, 1)
            queries, keys, values = (one.view(*rows, *one.shape[2:]) for one in heads)
            stored = newest.cache.append(keys, values, slots)
            return self._self.attend(queries, *stored, newest.bias)

        def attend_to_source(x: Tensor) -> Tensor:
            projected = self._cross.project(x).view(*rows, -1, self._cross.width)
            keys, values = (one.flatten(0, 1) for one in source)
            queries = self._cross.queries(projected, None)
            return self._cross.attend(queries, keys, values, source_bias)

        x = layer.residual(x, attend_to_target, layer.self_attention_norm, _unchanged)
        x = layer.residual(x, attend_to_source, layer.cross_attention_norm, _unchanged)
        return layer.residual(x, self._feed_forward, layer.feed_forward_norm, _unchanged)


def _rotated(heads: Tensor, rotation: Rotation | None) -> Tensor:
    """(N, length, H, K) to the same shape."""
    if rotation is None:
        return heads
    return rotate(heads.transpose(1, 2), rotation).transpose(1, 2).contiguous()


def _bias_of(source_mask: Tensor | None) -> Tensor | None:
    """(B, S) bool, True for a token, to (B, 1, 1, 1, S): 0, or a large negative number for padding."""
    if source_mask is None:
        return None
    bias = torch.zeros(source_mask.shape).masked_fill_(~source_mask, lowest(torch.float32))
    return bias[:, None, None, None]


def _unchanged(x: Tensor) -> Tensor:
    """In place of dropout."""
    return x
