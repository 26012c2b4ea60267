"""What the twins of attention read, on CPUs and GPUs: masks with the bias that a kernel needs, and the precision of matrix products."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.model.layers import lowest


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
    mask = fused_mask(visible, torch.float32)
    is_needed = mask.reads_any is not None and not mask.reads_any.all()
    return mask if is_needed else mask._replace(reads_any=None)


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
