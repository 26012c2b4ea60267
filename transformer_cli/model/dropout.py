"""Dropout: a random share of the values becomes zero; the others are scaled to keep the mean."""

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Dropout):
    """In training, each value becomes zero with probability p, else it is divided by 1 - p.

    Source: Srivastava et al. 2014.
    """

    def forward(self, x: Tensor) -> Tensor:
        """A tensor of any shape to the same shape."""
        if self.p == 0.0 or not self.training:
            return x
        if x.device.type == "cpu" and not torch.compiler.is_compiling():
            return x * _random_factors(x.shape, self.p, x.dtype)
        return F.dropout(x, self.p)

    def factors(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor | None:
        """What `forward` multiplies a tensor on a CPU by, each value 0 or 1 / (1 - p); None: by 1."""
        if self.p == 0.0 or not self.training:
            return None
        return _random_factors(shape, self.p, dtype)


def _random_factors(shape: Sequence[int], probability: float, dtype: torch.dtype) -> Tensor:
    """0 or 1 / (1 - p), from 16 random bits per value; PyTorch draws a float per value, which is 7 times slower."""
    num_dropped = min(round(probability * 2**16), 2**16 - 1)  # out of 65,536 values of 16 bits
    if num_dropped == 0:
        return torch.ones(shape, dtype=dtype)
    num_values = math.prod(shape)
    words = torch.empty(-(-num_values // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[:num_values].view(shape)
    last_dropped = num_dropped - 2**15 - 1
    is_kept = bits.clamp_(last_dropped, last_dropped + 1).sub_(last_dropped)  # 0 or 1
    return _scaled(is_kept, 2**16 / (2**16 - num_dropped), dtype)


def _scaled(is_kept: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    """0 or `scale` in a dtype, from int16 values 0 or 1."""
    if dtype in (torch.bfloat16, torch.float16):
        # Multiply the bits of the scale: converting integers to these dtypes takes several times as long.
        return is_kept.mul_(_bits(scale, dtype)).view(dtype)
    return is_kept.to(dtype).mul_(scale)


@functools.cache
def _bits(value: float, dtype: torch.dtype) -> int:
    """The 16 bits of a number in bfloat16 or float16, as an integer."""
    return int(torch.tensor(value, dtype=dtype).view(torch.int16).item())
