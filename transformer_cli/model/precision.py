"""The precision of a computation: that of matrix products, and float32 where numbers are summed."""

import torch
from torch import Tensor


def product_dtype(x: Tensor) -> torch.dtype:
    """The dtype in which matrix products with x are computed: that of autocast, else that of x."""
    kind = x.device.type
    is_autocast = kind != "meta" and x.dtype != torch.float64 and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if is_autocast else x.dtype


def at_least_float32(x: Tensor) -> Tensor:
    """float16 and bfloat16 become float32; float32 and float64 stay."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
