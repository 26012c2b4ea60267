"""Layers prepared for translation on a CPU: their products, norms and residual connections.

Weights are joined, converted and laid out once, not in each call. Which positions a layer attends to comes from outside,
as a function from heads to what they gather.

Letters of shape comments, besides those of attention.py: g query heads share a group of keys and values.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.native_kernels import Kernels, NativeLinear, find_kernels
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Function,
    post,
    pre,
    residual_of_normed,
)
from transformer_cli.model.positions import Rotation, rotate

Linear = Callable[[Tensor], Tensor]
"""(N, D) in any floating-point type to (N, D of all layers together), in the precision of the products."""

_SMALLEST = 2.0**-100  # 127 divided by it is finite
_ROWS = 128  # for which the layout of the weights is chosen; any other number works too


def prepare_linear(
    layers: Sequence[nn.Linear],
    dtype: torch.dtype,
    *,
    scales: Sequence[float] = (),
    has_relu: bool = False,
) -> Linear:
    """One function for several layers that read the same input.

    Args:
        layers: with a bias each, or without any.
        dtype: of inputs, weights and results: float32 or bfloat16.
        scales: for each layer, a factor of weights and bias; empty: 1.
        has_relu: whether negative results become zero.
    """
    wide, wide_bias = _joined(layers, scales)
    weight, bias = wide.to(dtype), None if wide_bias is None else wide_bias.to(dtype)
    if not _packs(dtype):
        finish = Tensor.relu_ if has_relu else _unscaled
        return lambda x: finish(F.linear(x.to(dtype), weight, bias))
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
    multiply, after = torch.ops.mkldnn._linear_pointwise, "relu" if has_relu else "none"
    return lambda x: multiply(x.to(dtype), packed, bias, after, [], "")


def prepare_quantised(
    layers: Sequence[nn.Linear], *, scales: Sequence[float] = (), has_relu: bool = False
) -> Linear:
    """The same as `prepare_linear` in float32, but inputs and weights are rounded to integers from -127 to 127.

    Each row of the input has a scale of its own, and so has each output of the layers: the largest absolute value divided by
    127. So the result of a row does not depend on the other rows of its batch. The sum of the integer products
    is exact. All results of a row with an infinity or a NaN are NaN.

    A compiled kernel computes this if there is one (kernels/linear.c), else PyTorch, with the same bits.
    """
    weight, bias = _joined(layers, scales)
    of_outputs = _largest(weight) / 127.0  # (outputs, 1)
    integers = (weight / of_outputs).round().to(torch.int8)  # (outputs, D)
    of_outputs = of_outputs.squeeze(1)
    bias = torch.zeros_like(of_outputs) if bias is None else bias
    kernels = find_kernels()
    if kernels is not None:
        return NativeLinear(kernels, integers, of_outputs, bias, has_relu=has_relu)
    columns, finish = integers.t(), Tensor.relu_ if has_relu else _unscaled

    def multiply(x: Tensor) -> Tensor:
        largest = _largest(x)  # (N, 1)
        rounded = (x * _factor(largest)).round_().to(torch.int8)
        scaled = torch._int_mm(rounded, columns) * (largest / 127.0)
        # In this order, and not as one operation that rounds once, because the kernel does the same.
        return finish(scaled.mul_(of_outputs).add_(bias))

    return multiply


def _joined(layers: Sequence[nn.Linear], scales: Sequence[float]) -> tuple[Tensor, Tensor | None]:
    """The weights of all layers, (outputs, D), and their biases, (outputs,), if they have any."""
    factors = scales or [1.0] * len(layers)
    weights = [one.weight.detach() * factor for one, factor in zip(layers, factors, strict=True)]
    if layers[0].bias is None:
        return torch.cat(weights), None
    biases = [one.bias.detach() * factor for one, factor in zip(layers, factors, strict=True)]
    return torch.cat(weights), torch.cat(biases)


def _largest(rows: Tensor) -> Tensor:
    """(N, D) to (N, 1): the largest absolute value of each row, NaN if one is not finite; not zero, even if the row is."""
    largest = rows.abs().amax(1, keepdim=True).clamp_(min=_SMALLEST)
    return largest.where(largest < torch.inf, torch.nan)


def _factor(largest: Tensor) -> Tensor:
    """127 / largest."""
    # A number divided by a tensor would be multiplied by its reciprocal, which rounds twice.
    return torch.full_like(largest, 127.0).div_(largest)


def _unscaled(x: Tensor) -> Tensor:
    return x


def _packs(dtype: torch.dtype) -> bool:
    """Whether PyTorch's oneDNN has a layout of its own for weights of this type on this machine."""
    operators = torch.ops.mkldnn
    if not torch.backends.mkldnn.is_available() or not hasattr(operators, "_linear_pointwise"):
        return False
    return dtype == torch.float32 or bool(operators._is_mkldnn_bf16_supported())


Prepare = Callable[..., Linear]
"""`prepare_quantised`, or `prepare_linear` of a dtype."""


class Heads(NamedTuple):
    """The heads of N positions; queries are divided by sqrt(K)."""

    queries: Tensor  # (N, H, K)
    keys: Tensor  # (N, G, K)
    values: Tensor  # (N, G, K)


ReadItself = Callable[[Heads], Tensor]
"""Heads of N positions to what each gathers, (N, H K)."""
ReadSource = Callable[[Tensor], Tensor]
"""Queries of N positions, (N, H, K), to what each gathers, (N, H K)."""


class PreparedAttention:
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
            self._project = prepare([attention.query, *keys_values], scales=scales)
        else:
            self._project = prepare([attention.query], scales=[in_weights])
            self._project_source = prepare(keys_values)
        self.output = prepare([attention.output])

    def heads(self, x: Tensor, rotation: Rotation | None, length: int) -> Heads:
        """Of attention to itself, (N * length, D) with the positions of a sequence side by side."""
        groups = self.num_groups
        sizes = [groups * self.group_size, groups, groups]
        heads = self._project(x).view(-1, sum(sizes), self.width).split(sizes, dim=1)
        turned = _rotated(self.module.key_norm(heads[1]), rotation, length)
        return Heads(self._finished(heads[0], rotation, length), turned, heads[2])

    def queries(self, x: Tensor) -> Tensor:
        """Of attention to a source: (N, D) to (N, H, K)."""
        return self._finished(self._project(x).view(x.size(0), -1, self.width), None, 1)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """(N, D), positions of sources, to keys and values, (N, G, K) each."""
        heads = self._project_source(memory).view(len(memory), 2, self.num_groups, self.width)
        keys, values = heads.unbind(1)
        return self.module.key_norm(keys), values

    def _finished(self, queries: Tensor, rotation: Rotation | None, length: int) -> Tensor:
        """Normalised, rotated, and divided by sqrt(K)."""
        normed = self.module.query_norm(queries)
        if self._late_factor is not None:
            normed = normed * self._late_factor
        return _rotated(normed, rotation, length)


def _rotated(heads: Tensor, rotation: Rotation | None, length: int) -> Tensor:
    """(N * length, H, K) to the same shape."""
    if rotation is None:
        return heads
    of_sequences = heads.unflatten(0, (-1, length)).transpose(1, 2)
    return rotate(of_sequences, rotation).transpose(1, 2).flatten(0, 1)


class PreparedFeedForward:
    """The feed-forward network of a layer."""

    def __init__(self, module: FeedForward, prepare: Prepare) -> None:
        self._is_gated = module.gate is not None
        first = [module.up] if module.gate is None else [module.gate, module.up]
        has_relu = module.activation is F.relu and not self._is_gated
        self._activation = unchanged if has_relu else module.activation
        self._first, self._down = prepare(first, has_relu=has_relu), prepare([module.down])

    def __call__(self, x: Tensor) -> Tensor:
        """(N, D) to the same shape."""
        inner = self._first(x)
        if not self._is_gated:
            return self._down(self._activation(inner))
        gate, up = inner.chunk(2, dim=-1)
        return self._down(self._activation(gate) * up)


class PreparedEncoderLayer:
    """Self-attention, then the feed-forward network."""

    def __init__(self, layer: Any, prepare: Prepare, kernels: Kernels | None) -> None:
        assert isinstance(layer, EncoderLayer)
        self._residual = _PLACEMENTS[layer.residual]
        self._attention_norm = prepare_norm(layer.self_attention_norm, kernels)
        self._feed_forward_norm = prepare_norm(layer.feed_forward_norm, kernels)
        self._attention = PreparedAttention(layer.self_attention, prepare, reads_itself=True)
        self._feed_forward = PreparedFeedForward(layer.feed_forward, prepare)

    def __call__(self, x: Tensor, read: ReadItself, rotation: Rotation | None) -> Tensor:
        """(B, S, D) to the same shape."""
        attention, length = self._attention, x.size(1)

        def attend(x: Tensor) -> Tensor:
            return attention.output(read(attention.heads(x, rotation, length)))

        rows = x.flatten(0, 1)
        rows = self._residual(rows, attend, self._attention_norm)
        rows = self._residual(rows, self._feed_forward, self._feed_forward_norm)
        return rows.view_as(x)


class PreparedDecoderLayer:
    """Self-attention, attention to the source, then the feed-forward network."""

    def __init__(self, layer: Any, prepare: Prepare, kernels: Kernels | None) -> None:
        assert isinstance(layer, DecoderLayer)
        self._residual = _PLACEMENTS[layer.residual]
        self._self_attention_norm = prepare_norm(layer.self_attention_norm, kernels)
        self._cross_attention_norm = prepare_norm(layer.cross_attention_norm, kernels)
        self._feed_forward_norm = prepare_norm(layer.feed_forward_norm, kernels)
        self.self_attention = PreparedAttention(layer.self_attention, prepare, reads_itself=True)
        self.cross_attention = PreparedAttention(layer.cross_attention, prepare, reads_itself=False)
        self._feed_forward = PreparedFeedForward(layer.feed_forward, prepare)

    def advance(
        self,
        x: Tensor,
        read_target: ReadItself,
        read_source: ReadSource,
        rotation: Rotation | None,
    ) -> Tensor:
        """(R, D) to the same shape: one new target position."""
        of_target, of_source = self.self_attention, self.cross_attention

        def attend_to_target(x: Tensor) -> Tensor:
            return of_target.output(read_target(of_target.heads(x, rotation, 1)))

        def attend_to_source(x: Tensor) -> Tensor:
            return of_source.output(read_source(of_source.queries(x)))

        x = self._residual(x, attend_to_target, self._self_attention_norm)
        x = self._residual(x, attend_to_source, self._cross_attention_norm)
        return self._residual(x, self._feed_forward, self._feed_forward_norm)


def _pre(x: Tensor, sublayer: Function, norm: Function) -> Tensor:
    return _added(sublayer(norm(x)), x)


def _post(x: Tensor, sublayer: Function, norm: Function) -> Tensor:
    return norm(_added(sublayer(x), x))


def _residual_of_normed(x: Tensor, sublayer: Function, norm: Function) -> Tensor:
    return x + norm(sublayer(x))


# The same as those of layers.py, without dropout.
_PLACEMENTS = {pre: _pre, post: _post, residual_of_normed: _residual_of_normed}


def _added(found: Tensor, x: Tensor) -> Tensor:
    """The sum, in the place of what a sub-layer found if its dtype allows that."""
    return found.add_(x) if found.dtype == x.dtype else x + found


def unchanged(x: Tensor) -> Tensor:
    """In place of an activation that is part of a product."""
    return x


def prepare_norm(norm: Any, kernels: Kernels | None) -> Function:
    """The norm as one call of a kernel; the module itself if it is of another kind, or without kernels."""
    if kernels is None or not isinstance(norm, nn.LayerNorm):
        return cast(Function, norm)
    return _NativeNorm(kernels, norm)


class _NativeNorm:
    def __init__(self, kernels: Kernels, norm: nn.LayerNorm) -> None:
        self._kernels, self._epsilon = kernels, norm.eps
        self._gain, self._bias = norm.weight.detach(), norm.bias.detach()
        self._addresses = self._gain.data_ptr(), self._bias.data_ptr()

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) float32 to the same."""
        rows = x.contiguous()
        found = torch.empty_like(rows)
        self._kernels.layer_norm(
            rows.data_ptr(), rows.numel() // rows.size(-1), rows.size(-1), *self._addresses,
            self._epsilon, found.data_ptr(),
        )  # fmt: skip
        return found
