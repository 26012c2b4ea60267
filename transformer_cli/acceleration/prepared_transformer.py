"""A Transformer prepared for translation on a CPU: the same results as the modules, from fewer and larger operations.

Queries, keys and values come from one product. The division by sqrt(K) is part of the query weights. Weights are converted and
laid out once (prepared_layers.py). The keys and values of a source are stored once for all hypotheses of its sentence, and those
of the targets are never copied. In float32, compiled kernels attend to them, if there are any (`ListedDecoding`); else PyTorch
does (`BiasedDecoding`).

Letters of shape comments, besides those of attention.py: P positions in a buffer, L lists; b sentences still searched, s query
positions or hypotheses of each, Z slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from transformer_cli.acceleration.native_kernels import (
    Kernels,
    find_kernels,
    in_parts,
    log_softmax_,
)
from transformer_cli.acceleration.prepared_layers import (
    Heads,
    Prepare,
    PreparedDecoderLayer,
    PreparedEncoderLayer,
    ReadItself,
    prepare_linear,
    prepare_norm,
    prepare_quantised,
)
from transformer_cli.model.attention import lowest
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


_ROOM_IN_LISTS = 32  # steps for which new lists have room; full ones double


@dataclass(frozen=True, slots=True)
class Lists:
    """The positions that each row reads."""

    positions: Tensor  # (L, at least the longest) int32
    counts: Tensor  # (L,) int32
    of_rows: Tensor  # (R,) int32: the list of each row


def attend_to_lists(
    kernels: Kernels, queries: Tensor, keys: Tensor, values: Tensor, lists: Lists
) -> Tensor:
    """What each query gathers.

    Args:
        kernels: of this processor.
        queries: (R, H, K) float32; rows may be apart from each other in memory, heads may not.
        keys, values: (P, G, K), in the same form.
        lists: of the R rows.

    Returns:
        (R, H K).
    """
    num_rows, num_heads, width = queries.shape
    num_groups = keys.size(1)
    of_queries, of_keys, of_values = map(_side_by_side, (queries, keys, values))
    found = torch.empty(num_rows, num_heads * width)
    inputs, stride, results = of_queries.data_ptr(), of_queries.stride(0), found.data_ptr()

    def compute(first: int, end: int) -> int:
        return kernels.attend(
            inputs + first * stride * 4, stride, end - first, num_groups, num_heads // num_groups, width,
            of_keys.data_ptr(), of_keys.stride(0), of_values.data_ptr(), of_values.stride(0),
            lists.positions.data_ptr(), lists.positions.stride(0), lists.of_rows.data_ptr() + first * 4,
            lists.counts.data_ptr(), results + first * num_heads * width * 4,
        )  # fmt: skip

    # The lists may be shorter than the room for them; this only chooses the number of threads.
    in_parts(num_rows, 2 * num_rows * num_heads * width * lists.positions.size(1), compute)
    return found


def _side_by_side(heads: Tensor) -> Tensor:
    """(N, heads, K) with the numbers of a row side by side in memory, as the kernel reads them."""
    is_so = heads.stride(2) == 1 and heads.stride(1) == heads.size(2)
    return heads if is_so else heads.contiguous()


def read_listed_sources(
    kernels: Kernels, shape: Sequence[int], source_mask: Tensor | None
) -> ReadItself:
    """Each position of a source reads the real positions of its source; shape and mask are (B, S)."""
    num_sources, length = shape
    of_rows = torch.arange(num_sources, dtype=torch.int32).repeat_interleave(length)
    lists = Lists(*_of_sources(num_sources, length, source_mask), of_rows)
    return lambda heads: attend_to_lists(kernels, *heads, lists)


def _of_sources(num_sources: int, length: int, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """For each source its real positions, (B, S) int32, and how many they are, (B,) int32."""
    positions = torch.arange(num_sources * length, dtype=torch.int32).view(num_sources, length)
    if mask is None:
        return positions, torch.full((num_sources,), length, dtype=torch.int32)
    real_first = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    return positions.gather(1, real_first), mask.sum(1, dtype=torch.int32)


class ListedDecoding:
    """What the hypotheses of a search read: their own tokens, and their sources, by a compiled kernel.

    Keys and values of all sentences and hypotheses lie in one buffer. Each row has a list of the positions that it reads, so
    hypotheses are repeated and dropped by moving their lists, and a result depends on the numbers of its own row only.
    """

    def __init__(
        self,
        kernels: Kernels,
        layers: Sequence[PreparedDecoderLayer],
        memory: Tensor,
        source_mask: Tensor | None,
    ) -> None:
        """
        Args:
            kernels: of this processor.
            layers: of the decoder.
            memory: (B, S, D).
            source_mask: (B, S), as in `Transformer.encode`.
        """
        num_sources, length, _ = memory.shape
        self._kernels = kernels
        rows = memory.flatten(0, 1)
        self._sources = [layer.cross_attention.keys_and_values(rows) for layer in layers]
        self._of_sources = _of_sources(num_sources, length, source_mask)
        self._source_lists = Lists(*self._of_sources, torch.arange(num_sources, dtype=torch.int32))
        self._targets = [_TargetPositions() for _ in layers]
        self._length = self._num_positions = 0
        self._positions = torch.zeros(num_sources, _ROOM_IN_LISTS, dtype=torch.int32)  # of each row
        self._target_lists: Lists

    def append(self, num_rows: int) -> None:
        """Each row gets a position; `read_target` stores its keys and values."""
        first, self._num_positions = self._num_positions, self._num_positions + num_rows
        if self._length == self._positions.size(1):
            self._positions = torch.cat([self._positions, self._positions], dim=1)
        self._positions[:, self._length] = torch.arange(first, self._num_positions)
        self._length += 1
        counts = torch.full((num_rows,), self._length, dtype=torch.int32)
        own = torch.arange(num_rows, dtype=torch.int32)
        self._target_lists = Lists(self._positions, counts, own)

    def read_target(self, number: int, heads: Heads) -> Tensor:
        """Of layer `number`: store keys and values, then attend_to_lists to those of each hypothesis."""
        keys, values = self._targets[number].append(heads.keys, heads.values)
        return attend_to_lists(self._kernels, heads.queries, keys, values, self._target_lists)

    def read_source(self, number: int, queries: Tensor) -> Tensor:
        """Of layer `number`: attend_to_lists to the source of each row."""
        return attend_to_lists(self._kernels, queries, *self._sources[number], self._source_lists)

    def select(self, rows: Tensor, *, keeps_sources: bool) -> None:
        """New row i is old row `rows[i]`; keys and values stay where they are."""
        self._positions = self._positions[rows]
        if not keeps_sources:
            of_rows = self._source_lists.of_rows[rows]
            self._source_lists = Lists(*self._of_sources, of_rows)


class _TargetPositions:
    """The keys and values of one layer of the decoder for all rows and steps, in the order in which they were appended."""

    def __init__(self) -> None:
        self._size = 0
        self._keys: Tensor | None = None  # (room, G, K)
        self._values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append (R, G, K) each; returns all so far, and room behind them."""
        first, self._size = self._size, self._size + keys.size(0)
        self._keys = _stored(self._keys, keys, first)
        self._values = _stored(self._values, values, first)
        return self._keys, self._values


def _stored(buffer: Tensor | None, newest: Tensor, first: int) -> Tensor:
    """The buffer, or a larger one, with the newest rows from `first` on."""
    num_rows = newest.size(0)
    needed = first + num_rows
    if buffer is None or needed > buffer.size(0):
        larger = newest.new_empty(max(_ROOM_IN_LISTS * num_rows, 2 * needed), *newest.shape[1:])
        if buffer is not None:
            larger[:first] = buffer[:first]
        buffer = larger
    buffer[first:needed] = newest
    return buffer


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
        return attend_with_bias(queries, keys.permute(0, 2, 3, 1), values.transpose(1, 2), bias)

    return read


class BiasedDecoding:
    """What the hypotheses of a search read: their own tokens, and their sources, by PyTorch.

    The rows of a search are b sentences with s hypotheses each. Each step appends s slots to each sentence: the keys and
    values of its s newest tokens. A hypothesis reads only the slots of its own tokens, so it has a bias for each slot: 0, or
    a large negative number. When hypotheses are repeated or dropped, only these biases move, not the keys and values.
    """

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
        """Of layer `number`: store keys and values, then attend_with_bias to those of each hypothesis."""
        queries, keys, values = map(self._of_sentences, heads)
        stored = self._caches[number].append(keys, values, self._slots)
        return attend_with_bias(queries, *stored, self._target_bias)

    def read_source(self, number: int, queries: Tensor) -> Tensor:
        """Of layer `number`: attend_with_bias to the source of each row."""
        return attend_with_bias(
            self._of_sentences(queries), *self._sources[number], self._source_bias
        )

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
        sources = None if keeps_sources else self._regrouped(rows // self.num_hypotheses)
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
