"""The output layer and the objective of R-Drop in one autograd function, for real target positions only."""

from functools import partial

import torch
from torch import Tensor, nn

from transformer_cli.kernels.kernel_library import find_kernels
from transformer_cli.kernels.native_losses import Labels, can_read, native_twin_loss
from transformer_cli.model.cpu.fused_prediction import (
    Chunk,
    become_probabilities,
    real_positions,
    sum_over_chunks,
    widened,
)
from transformer_cli.model.loss import LossSums, SmoothedLabels, parts

# A part has four tensors in the cache of the processor, where that of one prediction has one.
_SHARE = 4


def sum_twin_loss_on_cpu(
    output: nn.Linear, x: Tensor, target_ids: Tensor, labels: SmoothedLabels, alpha: float
) -> LossSums:
    """The cross-entropies of two predictions, plus alpha / 2 times their symmetric KL divergence, for training.

    Args:
        output: the output layer, from D to V.
        x: (2 B, T, D), what it reads: the rows of the first prediction, then those of the second one.
        target_ids: (B, T) int64, `labels.pad_id` where there is no token.
        labels: the probabilities that the model shall learn.
        alpha: of R-Drop.

    Returns:
        The objective, and the mean of both negative log-likelihoods.

    Source: Liang et al. 2021, section 2.1; the gradient of the divergence: see `symmetric_divergence`.
    """
    chunks = [
        Chunk(
            torch.cat([rows, rows + target_ids.numel()]),
            partial(_become_gradient, ids=ids, labels=labels, factor=0.5 * alpha),
        )
        for rows, ids in real_positions(target_ids, labels.pad_id, output, num_copies=2)
    ]
    return sum_over_chunks(output, x, chunks)


def _become_gradient(
    logits: Tensor,
    bias: Tensor | None,
    of_bias: Tensor | None,
    *,
    ids: Tensor,
    labels: SmoothedLabels,
    factor: float,
) -> tuple[Tensor, Tensor]:
    """See `BecomeGradient`: N rows of the first prediction, N of the second; the first of each have these ids."""
    one, other = logits.chunk(2)
    kernels = find_kernels()
    if kernels is not None and can_read(logits):
        twins = native_twin_loss(kernels, (one, other), bias, of_bias, Labels(ids, *labels), factor)
        one[len(ids) :] = other[len(ids) :] = 0.0
        return twins[0].sum(), twins[1].sum()
    wide = torch.promote_types(logits.dtype, torch.float32)
    objectives, likelihoods = (torch.empty(len(ids), dtype=wide) for _ in range(2))
    first, second = one[: len(ids)], other[: len(ids)]
    for part in parts(first, share=_SHARE):
        truth = ids[part].unsqueeze(-1)
        p, q = widened(first[part], bias), widened(second[part], bias)
        of_truth = (p.gather(-1, truth) + q.gather(-1, truth)).squeeze(-1)
        of_labels = labels.mean_of(p, p.gather(-1, truth).squeeze(-1))
        of_labels += labels.mean_of(q, q.gather(-1, truth).squeeze(-1))
        difference = p - q  # of logits, then of log-probabilities
        of_p, of_q = become_probabilities(p), become_probabilities(q)
        difference -= (of_p - of_q).unsqueeze(-1)
        from_p = (p * difference).sum(-1, keepdim=True)  # KL(P || Q)
        from_q = (q * difference).sum(-1, keepdim=True)  # - KL(Q || P)
        log_sums = of_p + of_q
        objectives[part] = log_sums - of_labels + factor * (from_p - from_q).squeeze(-1)
        likelihoods[part] = 0.5 * (log_sums - of_truth)
        between = (p - q).mul_(factor)
        # p (1 + factor (difference - from_p)) + between, and the same for q with the opposite signs
        of_first = (difference - from_p).mul_(factor).add_(1.0).mul_(p).add_(between)
        of_second = difference.sub_(from_q).mul_(-factor).add_(1.0).mul_(q).sub_(between)
        for rows, gradient in ((first, of_first), (second, of_second)):
            labels.subtract_from(gradient, ids[part])
            if of_bias is not None:
                of_bias += gradient.sum(0)
            rows[part] = gradient
    one[len(ids) :] = other[len(ids) :] = 0.0
    return objectives.sum(), likelihoods.sum()
