"""Layers prepared for translation on a CPU: their products, norms and residual connections.

Which positions a layer attends to comes from outside, as a function from heads to what they gather.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from transformer_cli.kernels.kernel_library import Kernels
from transformer_cli.model.cpu.prepared_attention import Heads, Prepare, PreparedAttention
from transformer_cli.model.cpu.prepared_norm import prepare_norm
from transformer_cli.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Function,
    post,
    pre,
    residual_of_normed,
)
from transformer_cli.model.positions import Rotation

ReadItself = Callable[[Heads], Tensor]
"""Heads of N positions to what each gathers, (N, H K)."""
ReadSource = Callable[[Tensor], Tensor]
"""Queries of N positions, (N, H, K), to what each gathers, (N, H K)."""


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
