"""Twins for training on a CPU: same results as the plain modules, fewer passes over memory, gradients by hand; the masks that all twins read.

Evaluation and compiled layers use the plain forms, which are also the oracles of the tests.
"""

import functools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.model.layers import (
    SSRU,
    MultiHeadAttention,
    Rotation,
    at_least_float32,
    lowest,
    scaled_dot_product_attention,
)
from transformer_cli.model.transformer import Transformer


class Mask(NamedTuple):
    """The positions that attention may read; a twin of the bool mask of `model/layers.py`."""

    visible: Tensor
    """Bool, broadcast to (B, H, Q, C); True means that attention may read the position."""
    bias: Tensor | None = None
    """Of the same shape: 0 where `visible` is True, else a large negative number. None if no kernel needs it."""
    reads_any: Tensor | None = None
    """(..., 1) bool: whether a position may read anything. None if all may."""
    is_causal: bool = False
    """Whether each position reads itself and all earlier ones, and nothing else."""


_ALIGNMENT = 8
"""A fused kernel of a GPU reads rows of a bias that begin at multiples of so many numbers; PyTorch would copy others in each layer."""


def fused_mask(visible: Tensor, dtype: torch.dtype, *, reads_any: bool = False) -> Mask:
    """The mask with the bias that a fused kernel needs, for queries of this dtype.

    Args:
        visible: bool, broadcast to (B, H, Q, C).
        dtype: of the bias.
        reads_any: whether the caller knows that each position may read something.
    """
    # A large negative bias instead of the bool mask: PyTorch turns False into -inf, and the softmax of a row
    # of -inf alone is NaN.
    size = visible.size(-1)
    aligned = *visible.shape[:-1], size + -size % _ALIGNMENT
    bias = torch.zeros(aligned, dtype=dtype, device=visible.device)[..., :size]
    bias.masked_fill_(~visible, lowest(dtype))
    return Mask(visible, bias, None if reads_any else visible.any(-1, keepdim=True))


def added_mask(visible: Tensor) -> Mask:
    """The mask with the bias that a CPU adds to scores; without `reads_any` if all positions may read something."""
    bias = torch.zeros(visible.shape).masked_fill_(~visible, lowest(torch.float32))
    reads_any = visible.any(-1, keepdim=True)
    return Mask(visible, bias, None if reads_any.all() else reads_any)


def visible_of(mask: Tensor | Mask | None) -> Tensor | None:
    """The bool mask of the plain model."""
    return mask.visible if isinstance(mask, Mask) else mask


_SOURCES_HAVE_TOKENS = "sources_have_tokens"


def with_tokens_in_all(source_mask: Tensor) -> Tensor:
    """The same mask of sources, (B, S) bool, with the note that each of them has a token; the CPU knows it from the batch.

    The note spares a GPU the zeros of sources without tokens. It is an attribute of the tensor, because the plain model
    hands the mask on and knows nothing of acceleration. What is computed from the mask does not have it.
    """
    setattr(source_mask, _SOURCES_HAVE_TOKENS, True)
    return source_mask


def is_known_to_have_tokens(source_mask: Tensor | None) -> bool:
    """Whether `with_tokens_in_all` has noted it."""
    return getattr(source_mask, _SOURCES_HAVE_TOKENS, False)


def without_autocast(x: Tensor) -> AbstractContextManager[Any]:
    """In the block, operations keep the precision of their inputs."""
    return nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False)


def product_dtype(x: Tensor) -> torch.dtype:
    """The dtype in which matrix products with x are computed: that of autocast, else that of x."""
    kind = x.device.type
    is_autocast = kind != "meta" and x.dtype != torch.float64 and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if is_autocast else x.dtype


# Twins for training on a CPU: same results as the plain modules, fewer passes over memory, gradients by hand.


def trains_on_cpu(x: Tensor) -> bool:
    """Whether the twins of this file compute by themselves for this tensor."""
    return x.device.type == "cpu" and torch.is_grad_enabled() and not torch.compiler.is_compiling()


class TransformerOnCpu(Transformer):
    """Makes the masks for `attend_on_cpu`, and activations in the precision of matrix products."""

    def mask_of_sources(self, source_mask: Tensor | None, x: Tensor) -> Any:
        """See `Transformer.mask_of_sources`."""
        visible = super().mask_of_sources(source_mask, x)
        return visible if visible is None or not trains_on_cpu(x) else added_mask(visible)

    def mask_of_targets(self, x: Tensor) -> Any:
        """See `Transformer.mask_of_targets`."""
        visible = super().mask_of_targets(x)
        return visible if visible is None or not trains_on_cpu(x) else added_mask(visible)

    def _prepared(self, x: Tensor, norm: nn.Module) -> Tensor:
        if not trains_on_cpu(x):
            return super()._prepared(x, norm)
        x = norm(x)
        # Half the memory to read, and nothing to convert.
        return self.embedding_dropout(x.to(product_dtype(x)))


def attend_on_cpu(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | Mask | None, dropout: nn.Dropout
) -> Tensor:
    """The same as `scaled_dot_product_attention` of the model; in training, one autograd function, with both products as batches of matrices.

    Each tensor is copied once, to lie as the products read it; the mask is added, not chosen by; and the result,
    (B, H, Q, K), lies in memory as (B, Q, H, K), so that joining the heads costs nothing.
    """
    if not trains_on_cpu(queries):
        return scaled_dot_product_attention(queries, keys, values, visible_of(mask), dropout)
    if mask is not None and not isinstance(mask, Mask):
        mask = added_mask(mask)
    factors = None
    if dropout.training and dropout.p > 0.0:
        factors = random_factors((*queries.shape[:3], keys.size(2)), dropout.p, values.dtype)
    apply: Any = _Attention.apply
    return apply(queries, keys, values, mask, factors)


class AttentionOnCpu(MultiHeadAttention):
    """All projections of one input in one function, and attention in another."""

    attend = staticmethod(attend_on_cpu)

    def forward(self, x: Tensor, context: Any, mask: Any, rotation: Rotation | None = None) -> Tensor:
        """See `MultiHeadAttention.forward`."""
        if x is not context or not trains_on_cpu(x):
            return super().forward(x, context, mask, rotation)
        queries, keys, values = project_on_cpu(x, (self.query, self.key, self.value))
        keys_values = self._keys_and_values(keys, values, rotation)
        keys, values = (self._repeat_for_groups(heads) for heads in keys_values)
        heads = self.attend(self._queries(queries, rotation), keys, values, mask, self.dropout)
        return self.output(heads.transpose(1, 2).flatten(2))

    def keys_and_values(self, context: Tensor, rotation: Rotation | None = None) -> tuple[Tensor, Tensor]:
        """See `MultiHeadAttention.keys_and_values`."""
        if not trains_on_cpu(context):
            return super().keys_and_values(context, rotation)
        keys, values = project_on_cpu(context, (self.key, self.value))
        return self._keys_and_values(keys, values, rotation)

    def weights(self, x: Tensor, context: Any, mask: Any, rotation: Rotation | None = None) -> Tensor:
        """See `MultiHeadAttention.weights`."""
        return super().weights(x, context, visible_of(mask), rotation)


class SsruOnCpu(SSRU):
    """Both maps in one function, and the recurrence in another."""

    def forward(self, x: Tensor) -> Tensor:
        """See `SSRU.forward`."""
        if not trains_on_cpu(x):
            return super().forward(x)
        apply: Any = _Recurrence.apply
        return apply(*project_on_cpu(x, (self.input, self.forget_gate)))


class DropoutOnCpu(nn.Dropout):
    """Dropout with 16 random bits for each value; PyTorch draws a float, which takes 7 times as long."""

    def forward(self, x: Tensor) -> Tensor:
        """A tensor of any shape to the same shape."""
        if self.p == 0.0 or not self.training or torch.compiler.is_compiling():
            return super().forward(x)
        return x * random_factors(x.shape, self.p, x.dtype)


class _Attention(torch.autograd.Function):
    """dropout(softmax(Q K^T / sqrt(K) + bias)) V."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, mask: Mask | None, factors: Tensor | None
    ) -> Tensor:
        shape = queries.shape[:2]
        q, k, v = (heads.flatten(0, 1) for heads in (queries, keys, values))  # (B H, Q or C, K)
        scores = at_least_float32(q @ k.mT).mul_(1 / math.sqrt(q.size(-1))).unflatten(0, shape)
        if mask is not None and mask.bias is not None:
            scores += mask.bias
        if scores.numel():  # the softmax in place: PyTorch's takes several times as long if rows are short
            scores.sub_(scores.amax(-1, keepdim=True)).exp_()
        weights = scores.div_(scores.sum(-1, keepdim=True))  # (B, H, Q, C)
        if mask is not None and mask.reads_any is not None:
            weights *= mask.reads_any
        kept = weights.to(v.dtype)
        if factors is not None:
            kept = kept * factors
        ctx.save_for_backward(q, k, v, weights, kept, factors)
        # (B, H, Q, K), with all heads of a position side by side in memory.
        heads = (kept.flatten(0, 1) @ v).unflatten(0, shape)
        return heads.transpose(1, 2).contiguous().transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, kept, factors = ctx.saved_tensors
        shape = weights.shape[:2]
        g = gradient.flatten(0, 1)
        values_gradient = kept.flatten(0, 1).mT @ g
        kept_gradient = (g @ v.mT).view_as(kept)
        if factors is not None:
            kept_gradient = kept_gradient * factors
        scores_gradient = at_least_float32(kept_gradient) * weights  # then the gradient of the softmax
        scores_gradient.sub_(weights * scores_gradient.sum(-1, keepdim=True))
        scores_gradient = scores_gradient.mul_(1 / math.sqrt(q.size(-1))).to(q.dtype).flatten(0, 1)
        found = scores_gradient @ k, scores_gradient.mT @ q, values_gradient
        return *(one.unflatten(0, shape) for one in found), None, None


class _Recurrence(torch.autograd.Function):
    """ReLU(c), where c_t = f_t c_{t-1} + (1 - f_t) x_t and f = sigmoid(gates).

    Position after position, as the formula is written: one pass over memory, where the plain form makes log2(T). The gradient
    of c_t is that of its output and f_{t+1} times that of c_{t+1}.
    """

    @staticmethod
    def forward(ctx: Any, candidates: Tensor, gates: Tensor) -> Tensor:
        wide = at_least_float32(candidates)  # (B, T, D)
        forget = at_least_float32(gates).sigmoid()
        states = wide - forget * wide
        step_states, forget_of_steps = states.unbind(1), forget.unbind(1)
        for step in range(1, len(step_states)):
            step_states[step].addcmul_(forget_of_steps[step], step_states[step - 1])
        ctx.save_for_backward(wide, forget, states)
        ctx.dtype = candidates.dtype
        return states.relu().to(candidates.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        candidates, forget, states = ctx.saved_tensors
        states_gradient = at_least_float32(gradient) * (states > 0.0)
        step_gradients, forget_of_steps = states_gradient.unbind(1), forget.unbind(1)
        for step in range(len(step_gradients) - 2, -1, -1):
            step_gradients[step].addcmul_(forget_of_steps[step + 1], step_gradients[step + 1])
        forget_derivative = candidates.neg()
        forget_derivative[:, 1:] += states[:, :-1]
        candidates_gradient = states_gradient * (1.0 - forget)
        gates_gradient = forget_derivative.mul_(candidates_gradient).mul_(forget)
        return candidates_gradient.to(ctx.dtype), gates_gradient.to(ctx.dtype)


def project_on_cpu(x: Tensor, layers: tuple[nn.Linear, ...]) -> tuple[Tensor, ...]:
    """What each layer makes of x, (..., D) to (..., D of the layer), in the precision of matrix products.

    Autocast would narrow `x` once for each layer, and would widen and add up as many gradients of its size.
    """
    weights = [layer.weight for layer in layers]
    biases = [layer.bias for layer in layers]
    apply: Any = _Projections.apply
    return apply(x, *weights, *biases)


class _Projections(torch.autograd.Function):
    """x W^T + b for several W and b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights_and_biases: Tensor | None) -> tuple[Tensor, ...]:
        dtype = product_dtype(x)
        rows = x.to(dtype).flatten(0, -2)
        narrow = [None if one is None else one.to(dtype) for one in weights_and_biases]
        weights, biases = narrow[: len(narrow) // 2], narrow[len(narrow) // 2 :]
        ctx.save_for_backward(rows, *weights)
        ctx.shape = x.shape
        return tuple(
            F.linear(rows, weight, bias).unflatten(0, x.shape[:-1])  # type: ignore[arg-type]
            for weight, bias in zip(weights, biases, strict=True)
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, *weights = ctx.saved_tensors
        needs_x, *needs = ctx.needs_input_grad
        needs_weights, needs_biases = needs[: len(weights)], needs[len(weights) :]
        flat = [gradient.flatten(0, -2) for gradient in gradients]
        x_gradient = None
        if needs_x:
            x_gradient = flat[0] @ weights[0]
            for g, weight in zip(flat[1:], weights[1:], strict=True):
                x_gradient.addmm_(g, weight)
            x_gradient = x_gradient.view(ctx.shape)
        weight_gradients = [g.T @ rows if is_used else None for g, is_used in zip(flat, needs_weights, strict=True)]
        bias_gradients = [g.sum(0) if is_used else None for g, is_used in zip(flat, needs_biases, strict=True)]
        return x_gradient, *weight_gradients, *bias_gradients


def random_factors(shape: Sequence[int], probability: float, dtype: torch.dtype) -> Tensor:
    """0 or 1 / (1 - p) for each value, from 16 random bits."""
    num_dropped = min(round(probability * 2**16), 2**16 - 1)  # out of 65,536 values of 16 bits
    if num_dropped == 0:
        return torch.ones(shape, dtype=dtype)
    num_values = math.prod(shape)
    words = torch.empty(-(-num_values // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[:num_values].view(shape)
    last_dropped = num_dropped - 2**15 - 1
    is_kept = bits.clamp_(last_dropped, last_dropped + 1).sub_(last_dropped)  # 0 or 1
    return _scaled(is_kept, 2**16 / (2**16 - num_dropped), dtype)


def _scaled(is_kept: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    """0 or `scale` in a dtype, from int16 values 0 or 1."""
    if dtype in (torch.bfloat16, torch.float16):
        # Multiply the bits of the scale: converting integers to these dtypes takes several times as long.
        return is_kept.mul_(_bits(scale, dtype)).view(dtype)
    return is_kept.to(dtype).mul_(scale)


@functools.cache
def _bits(value: float, dtype: torch.dtype) -> int:
    """The 16 bits of a number in bfloat16 or float16, as an integer."""
    return int(torch.tensor(value, dtype=dtype).view(torch.int16).item())
