"""A Transformer prepared for translation on a CPU: the same results as the modules, from fewer and larger operations.

Queries, keys and values come from one product. The division by sqrt(K) is part of the query weights. Weights are converted and
laid out once. The keys and values of a source are stored once for all hypotheses of its sentence, and those
of the targets are never copied. In float32, compiled kernels attend to them, if there are any (`ListedDecoding`); else PyTorch
does (biased_attention.py).

Letters of shape comments, besides those of layers.py: P positions in a buffer, L lists, b sentences still searched.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.biased_attention import BiasedDecoding, read_sources
from transformer_cli.acceleration.native_kernels import (
    Kernels,
    Lists,
    NativeLinear,
    NativeNorm,
    find_kernels,
    native_recurrence,
)
from transformer_cli.model.layers import (
    SSRU,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Function,
    MultiHeadAttention,
    Rotation,
    lowest,
    post,
    pre,
    residual_of_normed,
    rotate,
)
from transformer_cli.model.transformer import Transformer

# Layers prepared for translation on a CPU: their products, norms and residual connections.
#
# Weights are joined, converted and laid out once, not in each call. Which positions a layer attends to comes from outside,
# as a function from heads to what they gather.
#
# Letters of shape comments, besides those of layers.py: g query heads share a group of keys and values.


@dataclass(frozen=True, slots=True)
class SomeOutputs:
    """Some rows of a linear layer; making an `nn.Linear` of them would take longer than a step of a search."""

    weight: Tensor  # (outputs, D)
    bias: Tensor | None  # (outputs,)


AnyLinear = nn.Linear | SomeOutputs
Linear = Callable[[Tensor], Tensor]
"""(N, D) in any floating-point type to (N, D of all layers together), in the precision of the products."""

_SMALLEST = 2.0**-100  # 127 divided by it is finite
# A call of oneDNN costs ten microseconds more than one of BLAS, and is faster for large products (experiments.md). For narrow
# inputs and some rows both sum in the same order, so the result of a row does not depend on the number of rows.
_SMALL_WEIGHT, _SMALL_PRODUCT, _SMALL_WIDTH, _FEWEST_ROWS = 2**17, 2**20, 128, 4
_ROWS = 128  # for which the layout of the weights is chosen; any other number works too


def prepare_linear(
    layers: Sequence[AnyLinear], dtype: torch.dtype, *, scales: Sequence[float] = (), has_relu: bool = False
) -> Linear:
    """One function for several layers that read the same input.

    Args:
        layers: with or without a bias.
        dtype: of inputs, weights and results: float32 or bfloat16.
        scales: for each layer, a factor of weights and bias; empty: 1.
        has_relu: whether negative results become zero.
    """
    wide, wide_bias = _joined(layers, scales)
    weight, bias = wide.to(dtype), None if wide_bias is None else wide_bias.to(dtype)
    operators = torch.ops.mkldnn
    # Whether PyTorch's oneDNN has a layout of its own for weights of this type on this machine.
    is_packed = torch.backends.mkldnn.is_available() and hasattr(operators, "_linear_pointwise")
    if not is_packed or not (dtype == torch.float32 or operators._is_mkldnn_bf16_supported()):
        finish = Tensor.relu_ if has_relu else unchanged
        return lambda x: finish(F.linear(x.to(dtype), weight, bias))
    packed = operators._reorder_linear_weight(weight, _ROWS)
    multiply, after = operators._linear_pointwise, "relu" if has_relu else "none"
    is_small = dtype == torch.float32 and weight.numel() <= _SMALL_WEIGHT and weight.size(1) <= _SMALL_WIDTH
    most_rows = _SMALL_PRODUCT // weight.numel() if is_small else -1

    def product(x: Tensor) -> Tensor:
        num_rows = len(x)
        if num_rows > most_rows:
            return multiply(x.to(dtype), packed, bias, after, [], "")
        missing = max(0, _FEWEST_ROWS - num_rows)
        found = F.linear(F.pad(x, (0, 0, 0, missing)) if missing else x, weight, bias)[:num_rows]
        return found.relu_() if has_relu else found

    return product


def prepare_quantised(layers: Sequence[AnyLinear], *, scales: Sequence[float] = (), has_relu: bool = False) -> Linear:
    """The same as `prepare_linear` in float32, but inputs and weights are rounded to integers from -127 to 127.

    Each row of the input has a scale of its own, and so has each output of the layers: the largest absolute value divided by
    127. So the result of a row does not depend on the other rows of its batch. The sum of the integer products
    is exact. All results of a row with an infinity or a NaN are NaN.

    A compiled kernel computes this if there is one (kernels/linear.c), else PyTorch, with the same bits.
    """
    weight, bias = _joined(layers, scales)
    output_scales = _largest(weight) / 127.0  # (outputs, 1)
    integers = (weight / output_scales).round().to(torch.int8)  # (outputs, D)
    output_scales = output_scales.squeeze(1)
    bias = torch.zeros_like(output_scales) if bias is None else bias
    kernels = find_kernels()
    if kernels is not None:
        return NativeLinear(kernels, integers, output_scales, bias, has_relu=has_relu)
    columns, finish = integers.t(), Tensor.relu_ if has_relu else unchanged

    def multiply(x: Tensor) -> Tensor:
        largest = _largest(x)  # (N, 1)
        rounded = (x * _factor(largest)).round_().to(torch.int8)
        scaled = torch._int_mm(rounded, columns) * (largest / 127.0)
        # In this order, and not as one operation that rounds once, because the kernel does the same.
        return finish(scaled.mul_(output_scales).add_(bias))

    return multiply


def _joined(layers: Sequence[AnyLinear], scales: Sequence[float]) -> tuple[Tensor, Tensor | None]:
    """The weights of all layers, (outputs, D), and their biases, (outputs,), if they have any."""
    factors = scales or [1.0] * len(layers)
    weights = [one.weight.detach() * factor for one, factor in zip(layers, factors, strict=True)]
    if all(one.bias is None for one in layers):
        return torch.cat(weights), None
    biases = [
        one.weight.new_zeros(len(one.weight)) if one.bias is None else one.bias.detach() * factor
        for one, factor in zip(layers, factors, strict=True)
    ]
    return torch.cat(weights), torch.cat(biases)


def _largest(rows: Tensor) -> Tensor:
    """(N, D) to (N, 1): the largest absolute value of each row, NaN if one is not finite; not zero, even if the row is."""
    largest = rows.abs().amax(1, keepdim=True).clamp_(min=_SMALLEST)
    return largest.where(largest < torch.inf, torch.nan)


def _factor(largest: Tensor) -> Tensor:
    """127 / largest."""
    # A number divided by a tensor would be multiplied by its reciprocal, which rounds twice.
    return torch.full_like(largest, 127.0).div_(largest)


def unchanged(x: Tensor) -> Tensor:
    """In place of an activation that there is not."""
    return x


Prepare = Callable[..., Linear]
"""`prepare_quantised`, or `prepare_linear` of a dtype."""


class Heads(NamedTuple):
    """The heads of N positions; queries are divided by sqrt(K)."""

    queries: Tensor  # (N, H, K)
    keys: Tensor  # (N, G, K)
    values: Tensor  # (N, G, K)


ReadItself = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The `Heads` of N positions to what each gathers, (N, H K)."""


class PreparedAttention:
    """Projections of one attention; its heads are G groups of g queries, which share keys and values."""

    def __init__(self, attention: MultiHeadAttention, prepare: Prepare, *, reads_itself: bool) -> None:
        self.module = attention
        self.num_groups = attention.num_kv_heads  # G
        self.group_size = attention.num_heads // attention.num_kv_heads  # g
        self.width = attention.query.out_features // attention.num_heads  # K
        self.is_normed = not isinstance(attention.query_norm, nn.Identity)
        """Whether queries and keys have a norm. It would undo a factor in the weights, so queries are divided after it."""
        self.factor = 1.0 / math.sqrt(self.width)
        in_weights = 1.0 if self.is_normed else self.factor
        keys_values = [attention.key, attention.value]
        if reads_itself:
            scales = [in_weights, 1.0, 1.0]
            self.project = prepare([attention.query, *keys_values], scales=scales)
        else:
            self.project = prepare([attention.query], scales=[in_weights])
            self.project_source = prepare(keys_values)
        self.output = prepare([attention.output])

    def heads(self, x: Tensor, rotation: Rotation | None, length: int) -> Heads:
        """Of attention to itself, (N * length, D) with the positions of a sequence side by side."""
        groups = self.num_groups
        sizes = [groups * self.group_size, groups, groups]
        queries, keys, values = self.project(x).view(-1, sum(sizes), self.width).split(sizes, dim=1)
        if self.is_normed:
            queries, keys = self.module.query_norm(queries) * self.factor, self.module.key_norm(keys)
        if rotation is not None:
            queries, keys = (_rotated(each, rotation, length) for each in (queries, keys))
        return Heads(queries, keys, values)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """(N, D), positions of sources, to keys and values, (N, G, K) each."""
        heads = self.project_source(memory).view(len(memory), 2, self.num_groups, self.width)
        keys, values = heads.unbind(1)
        return self.module.key_norm(keys), values


def _rotated(heads: Tensor, rotation: Rotation, length: int) -> Tensor:
    """(N * length, H, K) to the same shape."""
    sequences = heads.unflatten(0, (-1, length)).transpose(1, 2)
    return rotate(sequences, rotation).transpose(1, 2).flatten(0, 1)


class PreparedFeedForward:
    """The feed-forward network of a layer."""

    def __init__(self, module: FeedForward, prepare: Prepare) -> None:
        self.is_gated = module.gate is not None
        first = [module.up] if module.gate is None else [module.gate, module.up]
        self.has_relu = module.activation is F.relu and not self.is_gated
        """Whether the first product has the activation in it."""
        self.activation = module.activation
        self.first, self.down = prepare(first, has_relu=self.has_relu), prepare([module.down])

    def __call__(self, x: Tensor) -> Tensor:
        """(N, D) to the same shape."""
        inner = self.first(x)
        if not self.is_gated:
            return self.down(inner if self.has_relu else self.activation(inner))
        gate, up = inner.chunk(2, dim=-1)
        return self.down(self.activation(gate) * up)


class PreparedEncoderLayer:
    """Self-attention, then the feed-forward network."""

    def __init__(self, layer: Any, prepare: Prepare, kernels: Kernels | None) -> None:
        assert isinstance(layer, EncoderLayer)
        self.add, self.is_pre = _PLACEMENTS[layer.residual], layer.residual is pre
        self.attention_norm = prepare_norm(layer.self_attention_norm, kernels)
        self.feed_forward_norm = prepare_norm(layer.feed_forward_norm, kernels)
        self.attention = PreparedAttention(layer.self_attention, prepare, reads_itself=True)
        self.feed_forward = PreparedFeedForward(layer.feed_forward, prepare)

    def __call__(self, x: Tensor, read: ReadItself, rotation: Rotation | None) -> Tensor:
        """(B, S, D) to the same shape."""
        rows, attention = x.flatten(0, 1), self.attention
        inner = self.attention_norm(rows) if self.is_pre else rows
        gathered = read(*attention.heads(inner, rotation, x.size(1)))
        rows = self.add(rows, attention.output(gathered), self.attention_norm)
        inner = self.feed_forward_norm(rows) if self.is_pre else rows
        return self.add(rows, self.feed_forward(inner), self.feed_forward_norm).view_as(x)


class PreparedSsru:
    """An SSRU: one step for R rows."""

    def __init__(self, ssru: SSRU, prepare: Prepare, kernels: Kernels | None) -> None:
        self.project = prepare([ssru.input, ssru.forget_gate])
        self._kernels = kernels

    def step(self, x: Tensor, cells: list[Tensor | None], number: int) -> Tensor:
        """(R, D) to the same shape; the cells of the R rows, which are those of layer `number`, move on."""
        projected, before = self.project(x), cells[number]
        if self._kernels is not None:
            cells[number], found = native_recurrence(self._kernels, projected, before)
            return found
        candidates, gates = projected.chunk(2, dim=-1)
        forget = gates.float().sigmoid()
        states = (1.0 - forget) * candidates
        if before is not None:
            states.addcmul_(forget, before)
        cells[number] = states
        return states.relu().to(candidates.dtype)


class PreparedDecoderLayer:
    """Self-attention or an SSRU, attention to the source, then the feed-forward network."""

    def __init__(self, layer: Any, prepare: Prepare, kernels: Kernels | None) -> None:
        assert isinstance(layer, DecoderLayer)
        self.add, self.is_pre = _PLACEMENTS[layer.residual], layer.residual is pre
        self.target_norm = prepare_norm(layer.ssru_norm or layer.self_attention_norm, kernels)
        self.cross_attention_norm = prepare_norm(layer.cross_attention_norm, kernels)
        self.feed_forward_norm = prepare_norm(layer.feed_forward_norm, kernels)
        self.ssru = None if layer.ssru is None else PreparedSsru(layer.ssru, prepare, kernels)
        self.self_attention = (
            None
            if layer.self_attention is None
            else PreparedAttention(layer.self_attention, prepare, reads_itself=True)
        )
        self.cross_attention = PreparedAttention(layer.cross_attention, prepare, reads_itself=False)
        self.feed_forward = PreparedFeedForward(layer.feed_forward, prepare)

    def advance(
        self,
        x: Tensor,
        reading: "BiasedDecoding | ListedDecoding",
        rotation: Rotation | None,
        cells: list[Tensor | None],
        number: int,
    ) -> Tensor:
        """(R, D) to the same shape: one new target position.

        Args:
            x: (R, D).
            reading: what the hypotheses read.
            rotation: of the position.
            cells: the SSRU of each layer: (R, D) float32, or None before the first step; this layer replaces its own.
            number: of this layer.
        """
        inner = self.target_norm(x) if self.is_pre else x
        if self.ssru is not None:
            found = self.ssru.step(inner, cells, number)
        else:
            self_attention = self.self_attention
            assert self_attention is not None
            found = self_attention.output(reading.read_target(number, self_attention.heads(inner, rotation, 1)))
        x = self.add(x, found, self.target_norm)

        cross_attention = self.cross_attention
        inner = self.cross_attention_norm(x) if self.is_pre else x
        queries = cross_attention.project(inner).view(len(x), -1, cross_attention.width)  # (R, H, K)
        if cross_attention.is_normed:
            queries = cross_attention.module.query_norm(queries) * cross_attention.factor
        x = self.add(x, cross_attention.output(reading.read_source(number, queries)), self.cross_attention_norm)

        inner = self.feed_forward_norm(x) if self.is_pre else x
        return self.add(x, self.feed_forward(inner), self.feed_forward_norm)


def _pre(x: Tensor, found: Tensor, _: Function) -> Tensor:
    return found.add_(x) if found.dtype == x.dtype else x + found


def _post(x: Tensor, found: Tensor, norm: Function) -> Tensor:
    return norm(found.add_(x) if found.dtype == x.dtype else x + found)


def _residual_of_normed(x: Tensor, found: Tensor, norm: Function) -> Tensor:
    return x + norm(found)


# The same as those of layers.py, without dropout, from what the sub-layer found; before `pre`, it read norm(x). A sum takes the
# place of what it found, if its dtype allows that.
_PLACEMENTS = {pre: _pre, post: _post, residual_of_normed: _residual_of_normed}


def prepare_norm(norm: Any, kernels: Kernels | None) -> Function:
    """The norm as one call of a kernel; the module itself if it is of another kind, or without kernels."""
    if kernels is None or not isinstance(norm, nn.LayerNorm):
        return cast(Function, norm)
    gain, bias = norm.weight.detach(), norm.bias.detach()
    return NativeNorm(kernels, gain, bias, norm.eps, (gain.data_ptr(), bias.data_ptr()))


# The Transformer of prepared layers.


class OutputRestriction(NamedTuple):
    """The target tokens among which a batch chooses."""

    ids: Tensor  # (C,) int64
    is_hidden: Tensor | None  # (B, C) bool: what a sentence may not use; None: nothing is hidden


class PreparedTransformer:
    """The encoder and the decoder steps of a model. Its weights must not change afterwards."""

    def __init__(self, model: Transformer, dtype: torch.dtype, *, is_quantised: bool = False) -> None:
        """
        Args:
            model: in float32, on the CPU, in eval mode.
            dtype: of matrix products, float32 or bfloat16; norms, softmax and sums are in float32.
            is_quantised: linear layers multiply integers of 8 bits; the dtype is float32.
        """
        self.model, self.dtype = model, dtype
        prepare: Prepare = prepare_quantised if is_quantised else partial(prepare_linear, dtype=dtype)
        kernels = self.kernels = find_kernels() if dtype == torch.float32 else None
        """What attends instead of PyTorch; in float32 only."""
        self.encoder = [PreparedEncoderLayer(layer, prepare, kernels) for layer in model.encoder.layers]
        self.decoder = [PreparedDecoderLayer(layer, prepare, kernels) for layer in model.decoder.layers]
        self.encoder_norm = prepare_norm(model.encoder.norm, kernels)
        self.decoder_norm = prepare_norm(model.decoder.norm, kernels)
        self.output = prepare([model.output])
        self._prepare = prepare
        self.restriction: OutputRestriction | None = None
        """What the output layer is restricted to; None: nothing."""

    def restricted(self, ids: Tensor, is_allowed: Tensor) -> "PreparedTransformer":
        """The same model for one batch, with an output layer of C target tokens; it reads and scores places in `ids` instead of ids.

        Args:
            ids: (C,) int64.
            is_allowed: (B, C) bool: the tokens that each sentence may use; the probabilities of the others are zero.
        """
        found = copy.copy(self)
        if isinstance(self.output, NativeLinear):
            found.output = self.output.with_outputs(ids)
        else:
            weight, bias = self.model.output.weight, self.model.output.bias
            part = SomeOutputs(weight.detach()[ids], None if bias is None else bias.detach()[ids])
            found.output = self._prepare([part])
        is_hidden = None if bool(is_allowed.all()) else ~is_allowed
        found.restriction = OutputRestriction(ids, is_hidden)
        return found

    def encode(self, source_ids: Tensor, source_mask: Tensor | None) -> Tensor:
        """See `Transformer.encode`; each source has at least one token."""
        with torch.autocast("cpu", enabled=False):
            x = self.model.embed_source(source_ids)
            rotation = self.model.rotation(x)
            if self.kernels is None:
                read = read_sources(source_mask, len(x))
            else:
                row_lists = torch.arange(len(x), dtype=torch.int32).repeat_interleave(x.size(1))
                read = lists_of_sources(self.kernels, source_ids.shape, source_mask, row_lists).attend
            for layer in self.encoder:
                x = layer(x, read, rotation)
            return self.encoder_norm(x)

    def start_decoding(self, memory: Tensor, source_mask: Tensor | None) -> "PreparedDecoderState":
        """See `Transformer.start_decoding`."""
        with torch.autocast("cpu", enabled=False):
            return PreparedDecoderState(self, memory, source_mask)


class PreparedDecoderState:
    """R partial targets, one per row, as `DecoderState`."""

    def __init__(self, prepared: PreparedTransformer, memory: Tensor, source_mask: Tensor | None) -> None:
        self._prepared, self._kernels = prepared, prepared.kernels
        layers = prepared.decoder
        self._reading: BiasedDecoding | ListedDecoding = (
            BiasedDecoding(layers, memory, source_mask, prepared.dtype)
            if self._kernels is None
            else ListedDecoding(self._kernels, layers, memory, source_mask)
        )
        self._cells: list[Tensor | None] = [None] * len(layers)
        restriction = prepared.restriction
        self._is_hidden = None if restriction is None else restriction.is_hidden  # (R, C)
        self._length = 0

    def advance(self, last_ids: Tensor) -> Tensor:
        """See `DecoderState.advance`."""
        prepared, model, reading = self._prepared, self._prepared.model, self._reading
        restriction = prepared.restriction
        if restriction is not None:
            last_ids = restriction.ids[last_ids]
        with torch.autocast("cpu", enabled=False):
            embedded = model.embed_target(last_ids[:, None], self._length)  # (R, 1, D)
            rotation, x = model.rotation(embedded, self._length), embedded[:, 0]
            reading.append(len(x))
            for number, layer in enumerate(prepared.decoder):
                x = layer.advance(x, reading, rotation, self._cells, number)
            self._length += 1
            logits = prepared.output(prepared.decoder_norm(x)).float()
            if self._is_hidden is not None:
                logits.masked_fill_(self._is_hidden, lowest(logits.dtype))
            if self._kernels is not None:
                assert logits.is_contiguous()
                self._kernels.log_softmax(logits.data_ptr(), *logits.shape)  # in place
                return logits
            return logits.log_softmax(-1)

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """See `DecoderState.select`."""
        self._cells = [None if cells is None else cells[rows] for cells in self._cells]
        if self._is_hidden is not None and not keeps_sources:
            self._is_hidden = self._is_hidden[rows]
        self._reading.select(rows, keeps_sources=keeps_sources)


# Attention to lists of positions, by compiled kernels.


_ROOM_IN_LISTS = 32  # steps for which new lists have room; full ones double


def lists_of_sources(kernels: Kernels, shape: Sequence[int], source_mask: Tensor | None, row_lists: Tensor) -> Lists:
    """For each source the list of its real positions; shape and mask are (B, S)."""
    num_sources, length = shape
    positions = torch.arange(num_sources * length, dtype=torch.int32).view(num_sources, length)
    if source_mask is None:
        return Lists(kernels, positions, torch.full((num_sources,), length, dtype=torch.int32), row_lists)
    real_first = source_mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    return Lists(kernels, positions.gather(1, real_first), source_mask.sum(1, dtype=torch.int32), row_lists)


class ListedDecoding:
    """What the hypotheses of a search read: their own tokens, and their sources, by a compiled kernel.

    Keys and values of all sentences and hypotheses lie in one buffer. Each row has a list of the positions that it reads, so
    hypotheses are repeated and dropped by moving their lists, and a result depends on the numbers of its own row only.
    """

    def __init__(
        self, kernels: Kernels, layers: Sequence[PreparedDecoderLayer], memory: Tensor, source_mask: Tensor | None
    ) -> None:
        """
        Args:
            kernels: of this processor.
            layers: of the decoder.
            memory: (B, S, D).
            source_mask: (B, S), as in `Transformer.encode`.
        """
        self._kernels, num_sources = kernels, len(memory)
        rows = memory.flatten(0, 1)
        self._sources = [layer.cross_attention.keys_and_values(rows) for layer in layers]
        row_lists = torch.arange(num_sources, dtype=torch.int32)
        self._source_lists = lists_of_sources(kernels, memory.shape[:2], source_mask, row_lists)
        # Of each layer (room, G, K), in the order in which positions were appended; None before the first one.
        self._keys: list[Tensor | None] = [None] * len(layers)
        self._values: list[Tensor | None] = [None] * len(layers)
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
        self._target_lists = Lists(self._kernels, self._positions, counts, own)

    def read_target(self, number: int, heads: Heads) -> Tensor:
        """Of layer `number`: store keys and values, then attend to those of each hypothesis."""
        num_rows, end = len(heads.keys), self._num_positions
        first, stored = end - num_rows, list[Tensor]()
        for buffers, newest in ((self._keys, heads.keys), (self._values, heads.values)):
            buffer = buffers[number]
            if buffer is None or end > len(buffer):
                larger = newest.new_empty(max(_ROOM_IN_LISTS * num_rows, 2 * end), *newest.shape[1:])
                if buffer is not None:
                    larger[:first] = buffer[:first]
                buffer = buffers[number] = larger
            buffer[first:end] = newest  # behind all others
            stored.append(buffer)
        return self._target_lists.attend(heads.queries, *stored)

    def read_source(self, number: int, queries: Tensor) -> Tensor:
        """Of layer `number`: attend to the source of each row."""
        return self._source_lists.attend(queries, *self._sources[number])

    def select(self, rows: Tensor, *, keeps_sources: bool) -> None:
        """New row i is old row `rows[i]`; keys and values stay where they are."""
        self._positions = self._positions[rows]
        if not keeps_sources:
            lists = self._source_lists
            self._source_lists = Lists(lists.kernels, lists.positions, lists.counts, lists.row_lists[rows])
