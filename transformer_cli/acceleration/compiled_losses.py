"""Twins of `sum_loss` and `symmetric_divergence` for GPUs, compiled by torch.compile: two kernels for each (`runtime.compile`).

One kernel reads the logits and makes the sums, one reads them again and writes their gradient. The plain forms have a
kernel for each operation, and each of them reads or writes all B T V logits.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from transformer_cli.model.loss import LossSums, SmoothedLabels

Function = Callable[..., Any]


@cache
def compiled(function: Function) -> Function:
    """The same function, compiled once for any number N of rows.

    Args:
        function: its tensors have N as their first size, or no size at all.
    """
    made = torch.compile(function)

    def call(*arguments: Any) -> Any:
        for one in arguments:
            if isinstance(one, Tensor) and one.ndim:
                torch._dynamo.maybe_mark_dynamic(one, 0)
        return made(*arguments)

    return call


def compiled_sum_loss(logits: Tensor, target_ids: Tensor, labels: SmoothedLabels) -> LossSums:
    """The same as `sum_loss`."""
    sum_over_tokens: Any = _CompiledSums.apply
    return LossSums(*sum_over_tokens(logits.flatten(0, 1), target_ids.flatten(), labels))


class _CompiledSums(torch.autograd.Function):
    """Both sums of logits (N, V) and ids (N,), with a gradient for the first one."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target_ids: Tensor, labels: SmoothedLabels
    ) -> tuple[Tensor, Tensor]:
        objective, likelihood, log_sums = compiled(_sums)(logits, target_ids, labels)
        ctx.save_for_backward(logits, target_ids, log_sums)
        ctx.labels = labels
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, of_objective: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        return compiled(_gradient_of_sums)(*ctx.saved_tensors, of_objective, ctx.labels), None, None


def _sums(
    logits: Tensor, target_ids: Tensor, labels: SmoothedLabels
) -> tuple[Tensor, Tensor, Tensor]:
    """Objective () and negative log-likelihood (), and for each position the log of its sum of exp(logits), (N,)."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    of_truth = scores.gather(-1, target_ids.unsqueeze(-1)).squeeze(-1)
    log_sums = scores.logsumexp(-1)
    is_padding = target_ids == labels.pad_id
    objective, likelihood = (
        (log_sums - one).masked_fill(is_padding, 0.0).sum()
        for one in (labels.mean_of(scores, of_truth), of_truth)
    )
    return objective, likelihood, log_sums


def _gradient_of_sums(
    logits: Tensor,
    target_ids: Tensor,
    log_sums: Tensor,
    of_objective: Tensor,
    labels: SmoothedLabels,
) -> Tensor:
    """The gradient of the objective, () to that of the logits, (N, V): probabilities minus labels."""
    probabilities = (logits.to(log_sums.dtype) - log_sums.unsqueeze(-1)).exp()
    symbols = torch.arange(logits.size(-1), device=logits.device)
    # Each symbol is compared with the true one, because to write to the true ones would take a kernel more.
    is_true, is_pad = (
        (symbols == one).to(log_sums.dtype) for one in (target_ids.unsqueeze(-1), labels.pad_id)
    )
    label = labels.of_each + labels.of_truth * is_true + labels.of_pad * is_pad
    is_padding = (target_ids == labels.pad_id).unsqueeze(-1)
    gradient = ((probabilities - label) * of_objective).masked_fill(is_padding, 0.0)
    return gradient.to(logits.dtype)


def compiled_symmetric_divergence(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
    """The same as `symmetric_divergence`."""
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
        return *compiled(_gradients_of_divergence)(*ctx.saved_tensors, given), None


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


def _gradients_of_divergence(
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
