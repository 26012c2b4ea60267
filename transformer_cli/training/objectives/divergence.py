"""The symmetric KL divergence of two predictions, summed over the tokens of a batch."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

# Number of log-probabilities of each prediction that are computed at a time: on a CPU, 1 MiB in float32 for
# each thread, which stays in the cache of the processor; elsewhere 128 MiB, so that a GPU gets few, large kernels.
MAX_PER_THREAD = 2**18
MAX_PER_PART = 2**25


def symmetric_divergence(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
    """KL(P || Q) + KL(Q || P) of softmax(logits) and softmax(other_logits), summed over real positions, in nats.

    Args:
        logits: (B, T, V).
        other_logits: (B, T, V).
        is_real: (B, T) bool, True where there is a target token.

    Returns:
        (), in float32 at least; with a gradient for both logits.

    Source: Kullback and Leibler 1951, equation 2.6.
    """
    divergence: Any = _SymmetricDivergence
    return divergence.apply(logits, other_logits, is_real)


class _SymmetricDivergence(torch.autograd.Function):
    """Computes a part of the positions at a time, also in the backward pass, so no (B, T, V) is kept in float32.

    With d = log p - log q, the sum is that of (p - q) d over the vocabulary. Its gradient with respect to the
    first logits is p (d - sum(p d)) + p - q, and with respect to the others q (sum(q d) - d) + q - p.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
        ctx.save_for_backward(logits, other_logits, is_real)
        dtype = torch.promote_types(logits.dtype, torch.float32)
        total = torch.zeros((), dtype=dtype, device=logits.device)
        for part, log_p, log_q in _parts(logits, other_logits):
            of_positions = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)
            total += of_positions.masked_fill(~is_real.flatten()[part], 0.0).sum()
        return total

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, Tensor, None]:
        logits, other_logits, is_real = ctx.saved_tensors
        gradients = [
            torch.empty_like(one, memory_format=torch.contiguous_format)
            for one in (logits, other_logits)
        ]
        for part, log_p, log_q in _parts(logits, other_logits):
            p, q, difference = log_p.exp(), log_q.exp(), log_p - log_q
            scale = given * is_real.flatten()[part].unsqueeze(-1)
            of_p = p * (difference - (p * difference).sum(-1, keepdim=True)) + p - q
            of_q = q * ((q * difference).sum(-1, keepdim=True) - difference) + q - p
            gradients[0].flatten(0, 1)[part] = scale * of_p
            gradients[1].flatten(0, 1)[part] = scale * of_q
        return gradients[0], gradients[1], None


def _parts(logits: Tensor, other_logits: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Slices of the B T positions, each with both log-probabilities, (part, V)."""
    rows, other_rows = logits.flatten(0, 1), other_logits.flatten(0, 1)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    is_on_cpu = logits.device.type == "cpu"
    numbers = MAX_PER_THREAD * torch.get_num_threads() if is_on_cpu else MAX_PER_PART
    size = max(numbers // logits.size(-1), 1)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        log_p, log_q = (one[part].to(dtype).log_softmax(-1) for one in (rows, other_rows))
        yield part, log_p, log_q
