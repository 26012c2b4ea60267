"""The symmetric divergence of two predictions in two kernels, as `compiled_loss.py` has them for the loss."""

from typing import Any

import torch
from torch import Tensor

from transformer_cli.model.gpu.compilation import compiled


def compiled_symmetric_divergence(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
    """The same as `symmetric_divergence` of `training/objectives/divergence.py`, with the same arguments."""
    divergence: Any = _CompiledDivergence.apply
    return divergence(logits.flatten(0, 1), other_logits.flatten(0, 1), is_real.flatten())


class _CompiledDivergence(torch.autograd.Function):
    """The divergence of logits (N, V) and (N, V), with a gradient for both.

    With d = log p - log q, the sum is that of (p - q) d over the vocabulary. Its gradient with respect to the
    first logits is p (d - sum(p d)) + p - q, and with respect to the others q (sum(q d) - d) + q - p.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
        total, of_positions = compiled(_divergence)(logits, other_logits, is_real)
        ctx.save_for_backward(logits, other_logits, is_real, of_positions)
        return total

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, Tensor, None]:
        return *compiled(_gradients)(*ctx.saved_tensors, given), None


def _divergence(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> tuple[Tensor, Tensor]:
    """The sum (), and for each position: the log of both sums of exp(logits), sum(p d) and sum(q d), (N, 4)."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    scores, other_scores = logits.to(dtype), other_logits.to(dtype)
    log_sums, other_log_sums = scores.logsumexp(-1), other_scores.logsumexp(-1)
    log_p, log_q = scores - log_sums.unsqueeze(-1), other_scores - other_log_sums.unsqueeze(-1)
    of_p = (log_p.exp() * (log_p - log_q)).sum(-1)
    of_q = (log_q.exp() * (log_p - log_q)).sum(-1)
    total = (of_p - of_q).masked_fill(~is_real, 0.0).sum()
    return total, torch.stack([log_sums, other_log_sums, of_p, of_q], dim=-1)


def _gradients(
    logits: Tensor, other_logits: Tensor, is_real: Tensor, of_positions: Tensor, given: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of both logits, (N, V); `of_positions` is the second value of `_divergence`."""
    log_sums, other_log_sums, of_p, of_q = of_positions.unsqueeze(-1).unbind(1)  # each (N, 1)
    log_p, log_q = (
        logits.to(log_sums.dtype) - log_sums,
        other_logits.to(log_sums.dtype) - other_log_sums,
    )
    p, q, difference = log_p.exp(), log_q.exp(), log_p - log_q
    scale = given * is_real.unsqueeze(-1)
    gradient = scale * (p * (difference - of_p) + p - q)
    other_gradient = scale * (q * (of_q - difference) + q - p)
    return gradient.to(logits.dtype), other_gradient.to(other_logits.dtype)
