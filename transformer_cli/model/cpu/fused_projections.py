"""Linear layers that read the same input, in one autograd function."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.model.precision import product_dtype


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
        of_x = _sum_of_products(flat, weights).view(ctx.shape) if needs_x else None
        of_weights = [
            g.T @ rows if is_used else None for g, is_used in zip(flat, needs_weights, strict=True)
        ]
        of_biases = [
            g.sum(0) if is_used else None for g, is_used in zip(flat, needs_biases, strict=True)
        ]
        return of_x, *of_weights, *of_biases


def _sum_of_products(gradients: list[Tensor], weights: list[Tensor]) -> Tensor:
    total = gradients[0] @ weights[0]
    for gradient, weight in zip(gradients[1:], weights[1:], strict=True):
        total.addmm_(gradient, weight)
    return total
