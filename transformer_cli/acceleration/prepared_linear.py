"""Linear layers for inference: weights are joined, converted and laid out once, not in each call."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.native_kernels import NativeLinear, find_kernels

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
        finish = Tensor.relu_ if has_relu else _unchanged
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
    columns, finish = integers.t(), Tensor.relu_ if has_relu else _unchanged

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


def _unchanged(x: Tensor) -> Tensor:
    return x


def _packs(dtype: torch.dtype) -> bool:
    """Whether PyTorch's oneDNN has a layout of its own for weights of this type on this machine."""
    operators = torch.ops.mkldnn
    if not torch.backends.mkldnn.is_available() or not hasattr(operators, "_linear_pointwise"):
        return False
    return dtype == torch.float32 or bool(operators._is_mkldnn_bf16_supported())
