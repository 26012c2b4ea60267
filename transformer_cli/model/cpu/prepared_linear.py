"""Linear layers for inference: weights are joined, converted and laid out once, not in each call."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Linear = Callable[[Tensor], Tensor]
"""(N, D) in any floating-point type to (N, D of all layers together), in the precision of the products."""

_ROWS = 128  # for which the layout of the weights is chosen; any other number works too


def prepare_linear(
    layers: Sequence[nn.Linear], dtype: torch.dtype, *, scales: Sequence[float] = ()
) -> Linear:
    """One function for several layers that read the same input.

    Args:
        layers: with a bias each, or without any.
        dtype: of inputs, weights and results: float32 or bfloat16.
        scales: for each layer, a factor of weights and bias; empty: 1.
    """
    factors = scales or [1.0] * len(layers)
    weights = [one.weight.detach() * factor for one, factor in zip(layers, factors, strict=True)]
    weight, bias = torch.cat(weights).to(dtype), None
    if layers[0].bias is not None:
        biases = [one.bias.detach() * factor for one, factor in zip(layers, factors, strict=True)]
        bias = torch.cat(biases).to(dtype)
    if not _packs(dtype):
        return lambda x: F.linear(x.to(dtype), weight, bias)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
    multiply = torch.ops.mkldnn._linear_pointwise
    return lambda x: multiply(x.to(dtype), packed, bias, "none", [], "")


def _packs(dtype: torch.dtype) -> bool:
    """Whether PyTorch's oneDNN has a layout of its own for weights of this type on this machine."""
    operators = torch.ops.mkldnn
    if not torch.backends.mkldnn.is_available() or not hasattr(operators, "_linear_pointwise"):
        return False
    return dtype == torch.float32 or bool(operators._is_mkldnn_bf16_supported())
