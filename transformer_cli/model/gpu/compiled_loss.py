"""The loss in two kernels: one reads the logits and makes both sums, one reads them again and writes their gradient.

The plain form, `sum_loss`, has a kernel for each operation, and each of them reads or writes all B T V logits.
"""

from typing import Any

import torch
from torch import Tensor

from transformer_cli.config.training import SmoothedOver
from transformer_cli.model.gpu.compilation import compiled
from transformer_cli.model.loss import LossSums, SmoothedLabels


def compiled_sum_loss(
    logits: Tensor,
    target_ids: Tensor,
    *,
    pad_id: int,
    label_smoothing: float,
    smoothed_over: SmoothedOver = "vocabulary",
) -> LossSums:
    """The same as `sum_loss`, with the same arguments."""
    labels = SmoothedLabels.of(logits.size(-1), pad_id, label_smoothing, smoothed_over)
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
        return compiled(_gradient)(*ctx.saved_tensors, of_objective, ctx.labels), None, None


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


def _gradient(
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
