"""Attention in PyTorch to positions of which some are hidden by a bias: of sources, and of the hypotheses of a search.

Letters of shape comments, besides those of attention.py: b sentences, s query positions or hypotheses of each.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.model.cpu.append_only_cache import AppendOnlyCache, HypothesisSlots
from transformer_cli.model.cpu.prepared_attention import Heads
from transformer_cli.model.cpu.prepared_layers import PreparedDecoderLayer, ReadItself
from transformer_cli.model.masks import lowest
from transformer_cli.model.precision import at_least_float32


def attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """What each query gathers.

    Args:
        queries: (b, s, H, K), for s query positions of each sentence.
        keys: (b, G, K, C).
        values: (b, G, C, K).
        bias: broadcast to (b, G, s, g, C); None: nothing is hidden.

    Returns:
        (b * s, H K).
    """
    num_sentences, num_queries, num_heads, width = queries.shape
    num_groups = keys.size(1)
    sizes = num_sentences, num_queries, num_groups, num_heads // num_groups, width
    grouped = queries.reshape(sizes).transpose(1, 2)  # (b, G, s, g, K)
    flat = grouped.reshape(num_sentences * num_groups, -1, width)
    scores = at_least_float32(torch.bmm(flat, keys.flatten(0, 1)))
    if bias is not None:
        of_groups = scores.view(sizes[0], sizes[2], sizes[1], sizes[3], -1)
        of_groups += bias
    gathered = torch.bmm(scores.softmax(-1).to(values.dtype), values.flatten(0, 1))
    heads = gathered.view(sizes[0], sizes[2], sizes[1], *sizes[3:]).transpose(1, 2)
    return heads.reshape(num_sentences * num_queries, -1)


def read_sources(source_mask: Tensor | None, num_sources: int) -> ReadItself:
    """Each position of a source reads the real positions of its source; the mask is (B, S)."""
    bias = _bias_of(source_mask)

    def read(heads: Heads) -> Tensor:
        queries, keys, values = (one.unflatten(0, (num_sources, -1)) for one in heads)
        return attend(queries, keys.permute(0, 2, 3, 1), values.transpose(1, 2), bias)

    return read


class BiasedDecoding:
    """What the hypotheses of a search read: their own tokens, and their sources."""

    def __init__(
        self,
        layers: Sequence[PreparedDecoderLayer],
        memory: Tensor,
        source_mask: Tensor | None,
        dtype: torch.dtype,
    ) -> None:
        """
        Args:
            layers: of the decoder.
            memory: (B, S, D).
            source_mask: (B, S), as in `Transformer.encode`.
            dtype: of keys and values.
        """
        num_sentences, positions = len(memory), memory.flatten(0, 1)
        self._slots = HypothesisSlots(num_sentences)
        self._target_bias: Tensor | None = None
        self._source_bias = _bias_of(source_mask)
        self._caches, self._sources = [], []
        for layer in layers:
            of_target = layer.self_attention
            sizes = num_sentences, of_target.num_groups, of_target.width
            self._caches.append(AppendOnlyCache(*sizes, dtype))
            keys, values = (
                one.unflatten(0, (num_sentences, -1))
                for one in layer.cross_attention.keys_and_values(positions)
            )
            keys = keys.permute(0, 2, 3, 1).contiguous()  # (B, G, K, S)
            self._sources.append((keys, values.transpose(1, 2).contiguous()))  # (B, G, S, K)

    def append(self, num_rows: int) -> None:
        """Each row gets a position; `read_target` stores its keys and values."""
        assert num_rows == self._slots.num_sentences * self._slots.num_hypotheses
        self._slots.append()
        self._target_bias = self._slots.bias()

    def read_target(self, number: int, heads: Heads) -> Tensor:
        """Of layer `number`: store keys and values, then attend to those of each hypothesis."""
        queries, keys, values = map(self._of_sentences, heads)
        stored = self._caches[number].append(keys, values, self._slots)
        return attend(queries, *stored, self._target_bias)

    def read_source(self, number: int, queries: Tensor) -> Tensor:
        """Of layer `number`: attend to the source of each row."""
        return attend(self._of_sentences(queries), *self._sources[number], self._source_bias)

    def _of_sentences(self, heads: Tensor) -> Tensor:
        """(R, H, K) to (b, s, H, K)."""
        return heads.unflatten(0, (self._slots.num_sentences, self._slots.num_hypotheses))

    def select(self, rows: Tensor, *, keeps_sources: bool) -> None:
        """New row i is old row `rows[i]`."""
        sources = self._slots.select(rows, keeps_sources=keeps_sources)
        if sources is None:
            return
        for cache in self._caches:
            cache.select(sources)
        self._sources = [(keys[sources], values[sources]) for keys, values in self._sources]
        if self._source_bias is not None:
            self._source_bias = self._source_bias[sources]


def _bias_of(source_mask: Tensor | None) -> Tensor | None:
    """(B, S) bool, True for a token, to (B, 1, 1, 1, S): 0, or a large negative number for padding."""
    if source_mask is None:
        return None
    bias = torch.zeros(source_mask.shape).masked_fill_(~source_mask, lowest(torch.float32))
    return bias[:, None, None, None]
