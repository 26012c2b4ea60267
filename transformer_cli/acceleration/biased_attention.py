"""Attention of a prepared Transformer with a bias, by PyTorch: for all precisions, and where there are no compiled kernels.

Letters of shape comments, besides those of layers.py: P positions in a buffer; b sentences still searched, s query positions or
hypotheses of each, Z slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer_cli.model.layers import at_least_float32, lowest

if TYPE_CHECKING:
    from transformer_cli.acceleration.prepared_transformer import Heads, PreparedDecoderLayer, ReadItself


_ROOM_IN_CACHE = 64  # slots for which a new cache has room; a full one doubles


def attend_with_bias(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
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
    group_size = num_heads // num_groups
    grouped = queries.reshape(num_sentences, num_queries, num_groups, group_size, width)
    grouped = grouped.transpose(1, 2)  # (b, G, s, g, K)
    flat = grouped.reshape(num_sentences * num_groups, -1, width)
    scores = at_least_float32(torch.bmm(flat, keys.flatten(0, 1)))
    if bias is not None:
        grouped_scores = scores.view(num_sentences, num_groups, num_queries, group_size, -1)
        grouped_scores += bias
    gathered = torch.bmm(scores.softmax(-1).to(values.dtype), values.flatten(0, 1))
    heads = gathered.view(num_sentences, num_groups, num_queries, group_size, width).transpose(1, 2)
    return heads.reshape(num_sentences * num_queries, -1)


def read_sources(source_mask: Tensor | None, num_sources: int) -> ReadItself:
    """Each position of a source reads the real positions of its source; the mask is (B, S)."""
    bias = _bias_of(source_mask)

    def read(*heads: Tensor) -> Tensor:
        queries, keys, values = (one.unflatten(0, (num_sources, -1)) for one in heads)
        return attend_with_bias(queries, keys.permute(0, 2, 3, 1), values.transpose(1, 2), bias)

    return read


class BiasedDecoding:
    """What the hypotheses of a search read: their own tokens, and their sources, by PyTorch.

    The rows of a search are b sentences with s hypotheses each. Each step appends s slots to each sentence: the keys and
    values of its s newest tokens. A hypothesis reads only the slots of its own tokens, so it has a bias for each slot: 0, or
    a large negative number. When hypotheses are repeated or dropped, only these biases move, not the keys and values.
    """

    def __init__(
        self, layers: Sequence[PreparedDecoderLayer], memory: Tensor, source_mask: Tensor | None, dtype: torch.dtype
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
            self_attention = layer.self_attention
            if self_attention is not None:
                self._caches.append(
                    AppendOnlyCache(num_sentences, self_attention.num_groups, self_attention.width, dtype)
                )
            keys, values = (
                one.unflatten(0, (num_sentences, -1)) for one in layer.cross_attention.keys_and_values(positions)
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
        queries, keys, values = map(self._by_sentence, heads)
        keys, values = self._caches[number].append(keys, values, self._slots)
        return attend_with_bias(queries, keys, values, self._target_bias)

    def read_source(self, number: int, queries: Tensor) -> Tensor:
        """Of layer `number`: attend to the source of each row."""
        keys, values = self._sources[number]
        return attend_with_bias(self._by_sentence(queries), keys, values, self._source_bias)

    def _by_sentence(self, heads: Tensor) -> Tensor:
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


class HypothesisSlots:
    """Which slots each hypothesis reads, for all layers."""

    def __init__(self, num_sentences: int) -> None:
        self.num_sentences = num_sentences
        self.num_hypotheses = 1  # of each sentence
        self.num_slots = 0
        # (b * s, room): None while every hypothesis reads all slots of its sentence, as in greedy search.
        self._bias: Tensor | None = None

    def append(self) -> None:
        """Each sentence gets one slot for each of its hypotheses, which no other hypothesis reads."""
        first, self.num_slots = self.num_slots, self.num_slots + self.num_hypotheses
        if self._bias is None:
            return
        if self.num_slots > self._bias.size(1):
            self._bias = torch.cat([self._bias, torch.empty_like(self._bias)], dim=1)
            assert self.num_slots <= self._bias.size(1)
        newest = self._bias[:, first : self.num_slots]
        newest.fill_(lowest(newest.dtype))
        newest.unflatten(0, (-1, self.num_hypotheses)).diagonal(dim1=1, dim2=2).zero_()

    def bias(self) -> Tensor | None:
        """(b, 1, s, 1, Z), added to the scores of attention; None if nothing is hidden."""
        if self._bias is None:
            return None
        rows = self._bias[:, : self.num_slots].unflatten(0, (-1, self.num_hypotheses))
        return rows[:, None, :, None]

    def select(self, rows: Tensor, *, keeps_sources: bool) -> Tensor | None:
        """New row i is old row `rows[i]`.

        Returns:
            For each new sentence, the old one whose keys and values it reads; None if they stay as they are.
        """
        # Where each row is a sentence of its own, a row that moves within its real sentence takes its keys with it.
        is_within = keeps_sources and self.num_hypotheses > 1
        sources = None if is_within else self._regrouped(rows // self.num_hypotheses)
        if self._bias is not None:
            self._bias = self._bias[rows]
        elif self.num_hypotheses > 1:
            room = max(_ROOM_IN_CACHE * self.num_hypotheses, 2 * self.num_slots)
            self._bias = torch.zeros(len(rows), room)
        return sources

    def _regrouped(self, sentences: Tensor) -> Tensor | None:
        """The new sentences; if they have different numbers of hypotheses, each row is a sentence of its own."""
        found, counts = torch.unique_consecutive(sentences, return_counts=True)
        is_regular = bool((counts == counts[0]).all()) and len(found.unique()) == len(found)
        sources = found if is_regular else sentences
        is_unchanged = torch.equal(sources, torch.arange(self.num_sentences))
        self.num_sentences = len(sources)
        self.num_hypotheses = len(sentences) // len(sources)
        return None if is_unchanged else sources


class AppendOnlyCache:
    """The keys and values of one layer of the decoder, (b, G, Z, K) each."""

    def __init__(self, num_sentences: int, num_heads: int, width: int, dtype: torch.dtype) -> None:
        self._keys = torch.empty(num_sentences, num_heads, _ROOM_IN_CACHE, width, dtype=dtype)
        self._values = torch.empty_like(self._keys)

    def append(self, keys: Tensor, values: Tensor, slots: HypothesisSlots) -> tuple[Tensor, Tensor]:
        """Store the newest keys and values, (b, s, G, K) each, in the slots that were appended last.

        Returns:
            Keys (b, G, K, Z) and values (b, G, Z, K) of all slots.
        """
        end = slots.num_slots
        newest = slice(end - slots.num_hypotheses, end)
        while end > self._keys.size(2):
            self._keys = torch.cat([self._keys, torch.empty_like(self._keys)], dim=2)
            self._values = torch.cat([self._values, torch.empty_like(self._values)], dim=2)
        self._keys[:, :, newest] = keys.transpose(1, 2)
        self._values[:, :, newest] = values.transpose(1, 2)
        return self._keys[:, :, :end].transpose(2, 3), self._values[:, :, :end]

    def select(self, sources: Tensor) -> None:
        """New sentence i is old sentence `sources[i]`."""
        self._keys, self._values = self._keys[sources], self._values[sources]
