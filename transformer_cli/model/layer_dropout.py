"""LayerDrop: training skips whole layers at random; evaluation uses all of them."""

from typing import Any

import torch
from torch import Tensor, nn


def applied(layer: nn.Module, x: Tensor, *arguments: Any, share: float) -> Tensor:
    """The output of a layer; in training, with probability `share`, its input.

    One number decides for the whole batch. It comes from the CPU, on any device, so no step waits for a GPU.

    Args:
        layer: maps x, (B, T, D), to the same shape.
        arguments: what else the layer takes.
        share: the probability with which the layer is skipped.

    Source: Fan et al. 2020, "Reducing Transformer Depth on Demand with Structured Dropout", section 3.2.
    """
    if share > 0.0 and layer.training and float(torch.rand((), device="cpu")) < share:
        skipped: Any = _Skipped
        inputs = (one for one in arguments if isinstance(one, Tensor))
        return skipped.apply(x, *layer.parameters(), *inputs)
    return layer(x, *arguments)


class _Skipped(torch.autograd.Function):
    """The identity, which gives each parameter of the skipped layer a gradient of zeros, and its other inputs too.

    Without a gradient the optimizer would leave out these parameters, but a layer that another micro-batch or
    another process did not skip has one: all must make the same update. The output of the encoder is an input of
    each decoder layer; if all of them are skipped, the encoder gets its zeros through it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        ctx.save_for_backward(*others)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        zeros = (torch.zeros_like(one) if one.requires_grad else None for one in ctx.saved_tensors)
        return gradient, *zeros
