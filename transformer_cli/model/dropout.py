"""Dropout: a random share of numbers becomes zero, the others grow to keep the mean."""

from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """x with each element zeroed with probability `share` while training (Srivastava et al. 2014)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same."""
        return F.dropout(x, self.share, self.training) if self.share > 0.0 else x

    def extra_repr(self) -> str:
        return f"share={self.share}"
