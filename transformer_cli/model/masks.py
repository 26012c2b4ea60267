"""Attention masks: the positions that each position may read, made once in a forward pass for all layers."""

from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli.model.precision import product_dtype


class Mask(NamedTuple):
    """The positions that attention may read; None instead of a mask means all positions."""

    visible: Tensor
    """Bool, broadcast to (B, H, Q, C); True means that attention may read the position."""
    bias: Tensor | None = None
    """For kernels, of the same shape: 0 where `visible` is True, else a large negative number. None if no kernel
    needs it."""
    reads_any: Tensor | None = None
    """For kernels, (..., 1) bool: whether a position may read anything. None as for `bias`."""
    is_causal: bool = False
    """Whether each position reads itself and all earlier ones, and nothing else."""

    def select(self, rows: Tensor) -> "Mask":
        """New row i is old row `rows[i]`; for a mask with a row for each sentence."""
        bias, reads_any = (None if one is None else one[rows] for one in self[1:3])
        return Mask(self.visible[rows], bias, reads_any)


def is_fused_on(device: torch.device) -> bool:
    """Whether attention is a fused kernel on this device; on CPUs the explicit form is faster."""
    return device.type != "cpu"


def causal_mask(num_positions: int, device: torch.device) -> Mask:
    """(T, T): each position attends to itself and to earlier positions.

    A fused kernel gets the flag `is_causal` and no bias, so that PyTorch can choose its fastest kernel.
    """
    visible = torch.ones(num_positions, num_positions, dtype=torch.bool, device=device).tril()
    if is_fused_on(device):
        return Mask(visible, is_causal=True)
    return added_mask(visible)._replace(is_causal=True)


def padding_mask(source_mask: Tensor | None, x: Tensor) -> Mask | None:
    """The mask of attention to the source.

    Args:
        source_mask: (B, S) bool, True where there is a token; None: there is no padding.
        x: a tensor with the device and dtype of the model.
    """
    if source_mask is None:
        return None
    visible = source_mask[:, None, None, :]
    return fused_mask(visible, product_dtype(x)) if is_fused_on(x.device) else added_mask(visible)


def fused_mask(visible: Tensor, dtype: torch.dtype) -> Mask:
    """The mask with the bias that a fused kernel needs, for queries of this dtype."""
    # A large negative bias instead of the bool mask: PyTorch turns False into -inf, and the softmax of a row
    # of -inf alone is NaN.
    bias = torch.zeros_like(visible, dtype=dtype).masked_fill(~visible, lowest(dtype))
    return Mask(visible, bias, visible.any(-1, keepdim=True))


def added_mask(visible: Tensor) -> Mask:
    """The mask with the bias that a CPU adds to scores; without `reads_any` if all positions may read something."""
    mask = fused_mask(visible, torch.float32)
    is_needed = mask.reads_any is not None and not mask.reads_any.all()
    return mask if is_needed else mask._replace(reads_any=None)


def lowest(dtype: torch.dtype) -> float:
    """The score of hidden positions; half of the dtype's minimum, so that a sum with it stays finite."""
    return torch.finfo(dtype).min / 2
