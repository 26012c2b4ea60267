"""Twins for GPUs in bfloat16 and float16: the weights of a layer are cast at once, and projections of one input are one product.

Under autocast, each weight would be cast by a kernel of its own in the forward pass, and its gradient by another one in the
backward pass; a norm would widen its input to float32, and each projection would narrow it again. Here a layer has one kernel for
all casts, and everything between its products is in their precision, as on a CPU. Weights, gradients and the optimizer stay float32.

A layer that torch.compile compiles, or whose weights have the precision of products already, takes the plain form.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.cpu_training import product_dtype, without_autocast
from transformer_cli.model.layers import DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention

NARROW = (torch.bfloat16, torch.float16)
ALIGNMENT = 8
"""Products of matrices in these are fast if the rows of each matrix begin at multiples of so many numbers."""

Cast = tuple[Tensor, Tensor | None]
"""A weight and its bias, in the precision of products."""
QUERY_KEY_VALUE, KEY_VALUE = "cast_of_all", "cast_of_keys_and_values"
"""Attributes of an attention with a `Cast`: its projections joined in one matrix; those of keys and values joined."""


class LinearOnGpu(nn.Linear):
    """x W^T + b, with a weight that the layer has cast, if it has."""

    cast: Cast | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., outputs)."""
        if self.cast is not None:
            return F.linear(x, *self.cast)[..., : self.out_features]
        if self.out_features % ALIGNMENT and not torch.compiler.is_compiling():
            dtype = product_dtype(x)
            if dtype in NARROW:
                apply: Any = _AlignedLinear.apply
                return apply(x, self.weight, self.bias, dtype)
        return super().forward(x)


class LayerNormOnGpu(nn.LayerNorm):
    """The kernel reads and writes the precision of x and computes in float32; autocast would widen x before."""

    cast: Cast | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to the same."""
        if x.dtype == self.weight.dtype and x.dtype not in NARROW:
            return super().forward(x)
        weight, bias = self.cast or (self.weight.to(x.dtype), self.bias.to(x.dtype))
        with without_autocast(x):
            return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


JOINS_RELU = ("cuda", "cpu", "meta")
"""The devices on which PyTorch has `_addmm_activation`."""


class FeedForwardOnGpu(FeedForward):
    """The first product writes its ReLU itself, so that no kernel reads and writes all inner numbers again.

    PyTorch has it as a part of a product (an "epilogue" of cuBLASLt) for ReLU with a bias; every other form is the plain one.
    """

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to the same shape."""
        if self.gate is None and self.activation is F.relu and not torch.compiler.is_compiling():
            weight, bias = getattr(self.up, "cast", None) or (self.up.weight, self.up.bias)
            is_joined = bias is not None and len(weight) == self.up.out_features
            if is_joined and weight.dtype == x.dtype and x.device.type in JOINS_RELU:
                with without_autocast(x):
                    inner: Any = _LinearRelu.apply
                    found = inner(x, weight, bias)
                return self.down(self.dropout(found))
        return super().forward(x)


class _LinearRelu(torch.autograd.Function):
    """max(x W^T + b, 0) in one kernel; in the backward pass, those of a product and of a ReLU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        found = torch._addmm_activation(bias, rows, weight.T)
        ctx.save_for_backward(rows, weight, found)
        ctx.shape = x.shape
        return found.view(*x.shape[:-1], len(weight))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        rows, weight, found = ctx.saved_tensors
        product_gradient = torch.ops.aten.threshold_backward(gradient.flatten(0, -2), found, 0)
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            (product_gradient @ weight).view(ctx.shape) if needs_x else None,
            product_gradient.T @ rows if needs_weight else None,
            product_gradient.sum(0) if needs_bias else None,
        )


class _CastingLayer(nn.Module):
    """Stands before the class of a layer, and casts all weights of the layer at once."""

    def forward(self, *inputs: Any, **options: Any) -> Tensor:
        """As that of the layer."""
        if not _casts_weights(self, inputs[0]):
            return super().forward(*inputs, **options)
        with _cast_weights(self, product_dtype(inputs[0])):
            return super().forward(*inputs, **options)


class EncoderLayerOnGpu(_CastingLayer, EncoderLayer):
    """Casts its weights at once."""


class DecoderLayerOnGpu(_CastingLayer, DecoderLayer):
    """Casts its weights at once."""


def _casts_weights(layer: nn.Module, x: Tensor) -> bool:
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    return next(layer.parameters()).dtype != product_dtype(x)


@contextmanager
def _cast_weights(layer: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """In the block, the modules of a layer have cast weights; only one thread may train a layer."""
    plan: _Plan | None = layer.__dict__.get(_PLAN)
    if plan is None:
        plan = layer.__dict__[_PLAN] = _Plan.of(layer)
    apply: Any = _CastAtOnce.apply
    casts = apply(dtype, plan.lengths, *(getattr(one, name) for one, name in plan.parameters))
    start = 0
    for owner, attribute, has_bias in plan.targets:
        owner.__dict__[attribute] = casts[start], casts[start + 1] if has_bias else None
        start += 1 + has_bias
    try:
        yield
    finally:
        for owner, attribute, _ in plan.targets:
            del owner.__dict__[attribute]


_PLAN = "_plan_of_weights"
"""The attribute of a layer with its `_Plan`, which is made once: to look for the modules takes longer than to start the kernels."""


class _Plan(NamedTuple):
    """The weights and biases of a layer that are used in the precision of products, and where their copies go."""

    parameters: list[tuple[nn.Module, str]]
    lengths: tuple[int, ...]
    """How many neighbours in `parameters` become one tensor, one below the other."""
    targets: list[tuple[nn.Module, str, bool]]
    """The module and the attribute that get a weight; whether the next tensor is its bias."""

    @classmethod
    def of(cls, layer: nn.Module) -> "_Plan":
        """The plan of an encoder or decoder layer."""
        plan, joined = cls([], (), []), set[nn.Module]()
        for name, module in layer.named_modules():
            if isinstance(module, MultiHeadAttention):
                is_self_attention = name.endswith("self_attention")
                together: list[nn.Module] = [module.key, module.value]
                if is_self_attention:
                    together.insert(0, module.query)
                joined.update(together)
                attribute = QUERY_KEY_VALUE if is_self_attention else KEY_VALUE
                plan = plan._with(module, attribute, together)
            elif isinstance(module, LinearOnGpu | LayerNormOnGpu) and module not in joined:
                plan = plan._with(module, "cast", [module])
        return plan

    def _with(self, owner: nn.Module, attribute: str, together: list[nn.Module]) -> "_Plan":
        has_bias = together[0].bias is not None
        names = ("weight", "bias") if has_bias else ("weight",)
        parameters = [(one, name) for name in names for one in together]
        return _Plan(
            self.parameters + parameters,
            self.lengths + (len(together),) * len(names),
            [*self.targets, (owner, attribute, has_bias)],
        )


class _CastAtOnce(torch.autograd.Function):
    """Joins and casts tensors; one kernel for all of them, and one for their gradients."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, lengths: tuple[int, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
        found, parts, start = list[Tensor](), list[Tensor](), 0
        for length in lengths:
            group = tensors[start : start + length]
            start += length
            sizes = [len(one) for one in group]
            found.append(group[0].new_empty((sum(sizes), *group[0].shape[1:]), dtype=dtype))
            parts += found[-1].split(sizes)
        torch._foreach_copy_(parts, list(tensors))
        ctx.sizes, ctx.dtype = [len(one) for one in tensors], tensors[0].dtype
        ctx.lengths = lengths
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        parts, start = list[Tensor](), 0
        for length, gradient in zip(ctx.lengths, gradients, strict=True):
            parts += gradient.split(ctx.sizes[start : start + length])
            start += length
        wide = [torch.empty_like(one, dtype=ctx.dtype) for one in parts]
        torch._foreach_copy_(wide, parts)
        needs = ctx.needs_input_grad[2:]
        return None, None, *(one if is_used else None for one, is_used in zip(wide, needs, strict=True))


class _AlignedLinear(torch.autograd.Function):
    """x W^T + b for a number of outputs that is no multiple of 8, such as some vocabularies: W gets rows of zeros.

    The parameters stay as they are; the results have aligned rows, and so has their gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        rows = x.to(dtype).flatten(0, -2)
        matrix, added = aligned(weight, dtype), None if bias is None else aligned(bias, dtype)
        ctx.save_for_backward(rows, matrix)
        ctx.shape, ctx.x_dtype, ctx.dtype = x.shape, x.dtype, weight.dtype
        return F.linear(rows, matrix, added)[:, : len(weight)].unflatten(0, x.shape[:-1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        rows, matrix = ctx.saved_tensors
        size = gradient.size(-1)
        aligned_gradient = gradient.new_empty(len(rows), len(matrix), dtype=rows.dtype)
        aligned_gradient[:, :size] = gradient.flatten(0, -2)
        aligned_gradient[:, size:] = 0.0
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        x_gradient = (aligned_gradient @ matrix).view(ctx.shape).to(ctx.x_dtype) if needs_x else None
        weight_gradient = (aligned_gradient.T @ rows)[:size].to(ctx.dtype) if needs_weight else None
        return x_gradient, weight_gradient, aligned_gradient.sum(0)[:size].to(ctx.dtype) if needs_bias else None, None


def aligned(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy in another precision, with rows of zeros below, so that their number is a multiple of 8."""
    found = tensor.new_zeros((len(tensor) + -len(tensor) % ALIGNMENT, *tensor.shape[1:]), dtype=dtype)
    found[: len(tensor)] = tensor
    return found


def project(x: Tensor, joined: Cast, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Several projections of x, (..., D), by one product: (..., size) for each size."""
    return F.linear(x, *joined).split(list(sizes), dim=-1)


def cast_in_place(module: nn.Module, dtype: torch.dtype) -> None:
    """Give a model for translation weights in the precision of products, those of one input joined; no gradient is possible afterwards.

    Args:
        module: its parameters are replaced, and stay as they are in other modules that share them.
        dtype: the precision.
    """
    for attention in (one for one in module.modules() if isinstance(one, MultiHeadAttention)):
        layers = attention.query, attention.key, attention.value
        weight = torch.cat([one.weight for one in layers]).to(dtype)
        bias = torch.cat([one.bias for one in layers]).to(dtype) if attention.query.bias is not None else None
        num_queries = len(attention.query.weight)
        setattr(attention, QUERY_KEY_VALUE, (weight, bias))
        setattr(attention, KEY_VALUE, (weight[num_queries:], None if bias is None else bias[num_queries:]))
        # Parts of the same memory.
        sizes = [len(one.weight) for one in layers]
        for number, layer in enumerate(layers):
            layer.weight = _fixed(weight.split(sizes)[number])
            layer.bias = None if bias is None else _fixed(bias.split(sizes)[number])
    for one in module.modules():
        if isinstance(one, LinearOnGpu) and one.out_features % ALIGNMENT:
            one.cast = (aligned(one.weight, dtype), None if one.bias is None else aligned(one.bias, dtype))
        elif isinstance(one, nn.Linear):
            one.weight = _fixed(one.weight.to(dtype))
            one.bias = None if one.bias is None else _fixed(one.bias.to(dtype))
        elif isinstance(one, LayerNormOnGpu):
            one.cast = one.weight.to(dtype), one.bias.to(dtype)


def _fixed(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)
