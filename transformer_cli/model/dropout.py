"""Dropout: a random share of the values becomes zero; the others are scaled to keep the mean."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """In training, each value becomes zero with probability `share`, else it is divided by 1 - share.

    Source: Srivastava et al. 2014.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """A tensor of any shape to the same shape."""
        if self.share == 0.0 or not self.training:
            return x
        if x.device.type == "cpu" and not torch.compiler.is_compiling():
            return _drop_on_cpu(x, self.share)
        return F.dropout(x, self.share)

    def extra_repr(self) -> str:
        """The arguments that `print(module)` shows."""
        return f"share={self.share}"


def _drop_on_cpu(x: Tensor, share: float) -> Tensor:
    """Dropout from 16 random bits per value; PyTorch draws a float per value, in three times the time."""
    num_dropped = min(round(share * 2**16), 2**16 - 1)  # out of 65,536 values of 16 bits
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
    words.random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    is_kept = bits >= num_dropped - 2**15
    return x * (is_kept * torch.tensor(2**16 / (2**16 - num_dropped), dtype=x.dtype))
