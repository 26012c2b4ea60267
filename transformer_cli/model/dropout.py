"""Dropout: a random share of numbers becomes zero, the others grow to keep the mean."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """While training, each number is zeroed with probability `share`, else divided by 1 - share.

    Source: Srivastava et al. 2014.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same."""
        if self.share == 0.0 or not self.training:
            return x
        if x.device.type == "cpu" and not torch.compiler.is_compiling():
            return _drop_on_cpu(x, self.share)
        return F.dropout(x, self.share)

    def extra_repr(self) -> str:
        """What print shows."""
        return f"share={self.share}"


def _drop_on_cpu(x: Tensor, share: float) -> Tensor:
    """PyTorch draws one float for each number; this draws 16 bits, at a third of the time."""
    num_dropped = min(round(share * 2**16), 2**16 - 1)  # of the values that 16 bits can have
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
    words.random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    is_kept = bits >= num_dropped - 2**15
    return x * (is_kept * torch.tensor(2**16 / (2**16 - num_dropped), dtype=x.dtype))
