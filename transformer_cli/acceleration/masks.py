"""What the twins of attention read, on CPUs and GPUs: masks with the bias that a kernel needs, and the precision of matrix products."""

from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli.model.attention import lowest


class Mask(NamedTuple):
    """The positions that attention may read; a twin of the bool mask of `model/attention.py`."""

    visible: Tensor
    """Bool, broadcast to (B, H, Q, C); True means that attention may read the position."""
    bias: Tensor | None = None
    """Of the same shape: 0 where `visible` is True, else a large negative number. None if no kernel needs it."""
    reads_any: Tensor | None = None
    """(..., 1) bool: whether a position may read anything. None if all may, or if no kernel needs it."""
    is_causal: bool = False
    """Whether each position reads itself and all earlier ones, and nothing else."""


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


def visible_of(mask: Tensor | Mask | None) -> Tensor | None:
    """The bool mask of the plain model."""
    return mask.visible if isinstance(mask, Mask) else mask


def product_dtype(x: Tensor) -> torch.dtype:
    """The dtype in which matrix products with x are computed: that of autocast, else that of x."""
    kind = x.device.type
    is_autocast = kind != "meta" and x.dtype != torch.float64 and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if is_autocast else x.dtype
