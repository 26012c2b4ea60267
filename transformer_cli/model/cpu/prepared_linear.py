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


def prepare_quantised(layers: Sequence[nn.Linear], *, scales: Sequence[float] = ()) -> Linear:
    """The same as `prepare_linear` in float32, but inputs and weights are rounded to integers from -127 to 127.

    Each row of the input has a scale of its own, and so has each output of the layers: the largest absolute value divided by
    127. So the result of a row does not depend on the other rows of its batch. The sum of the integer products
    is exact.
    """
    factors = scales or [1.0] * len(layers)
    weight = torch.cat(
        [one.weight.detach() * factor for one, factor in zip(layers, factors, strict=True)]
    )
    of_outputs = _scales(weight)  # (outputs, 1)
    integers = (weight / of_outputs).round().to(torch.int8).t()  # (D, outputs)
    of_outputs = of_outputs.squeeze(1)
    bias = torch.zeros_like(of_outputs)
    if layers[0].bias is not None:
        bias = torch.cat(
            [one.bias.detach() * factor for one, factor in zip(layers, factors, strict=True)]
        )

    def multiply(x: Tensor) -> Tensor:
        of_rows = _scales(x)  # (N, 1)
        products = torch._int_mm((x / of_rows).round_().to(torch.int8), integers)
        return torch.addcmul(bias, products * of_rows, of_outputs)

    return multiply


def _scales(rows: Tensor) -> Tensor:
    """(N, D) to (N, 1): the scale of each row; not zero, even if the row is."""
    return rows.abs().amax(1, keepdim=True).clamp_(min=torch.finfo(rows.dtype).tiny) / 127.0


def _packs(dtype: torch.dtype) -> bool:
    """Whether PyTorch's oneDNN has a layout of its own for weights of this type on this machine."""
    operators = torch.ops.mkldnn
    if not torch.backends.mkldnn.is_available() or not hasattr(operators, "_linear_pointwise"):
        return False
    return dtype == torch.float32 or bool(operators._is_mkldnn_bf16_supported())
