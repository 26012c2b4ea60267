"""Log-probabilities, and the largest of them, by compiled kernels."""

import torch
from torch import Tensor

from transformer_cli.kernels.kernel_library import Kernels


def log_softmax_(kernels: Kernels, logits: Tensor) -> Tensor:
    """Replace each row of (R, V) float32 by its log-softmax; returns the same tensor."""
    assert logits.is_contiguous()
    kernels.log_softmax(logits.data_ptr(), *logits.shape)
    return logits


def native_top_k(
    kernels: Kernels, scores: Tensor, offsets: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    """See `decoding.search.top_k.top_k`; without offsets, nothing is added.

    Args:
        kernels: of this processor.
        scores: (B, W, V) float32, contiguous.
        offsets: (B, W) float32.
        k: at most W * V.
    """
    of_rows = None if offsets is None else offsets.contiguous()
    values = torch.empty(len(scores), k)
    positions = torch.empty(len(scores), k, dtype=torch.int64)
    kernels.top_k(
        scores.data_ptr(), *scores.shape, None if of_rows is None else of_rows.data_ptr(), k,
        values.data_ptr(), positions.data_ptr(),
    )  # fmt: skip
    return values, positions
