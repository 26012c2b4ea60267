"""Twins of `likelihood_loss` and `r_drop_loss` for training on a CPU.

The output layer and the loss are one autograd function, for real target positions only, chunk by chunk.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.losses_in_parts import parts, subtract_labels
from transformer_cli.acceleration.masks import product_dtype
from transformer_cli.acceleration.native_kernels import (
    Labels,
    can_read,
    find_kernels,
    native_loss,
    native_twin_loss,
)
from transformer_cli.model.loss import LossSums, SmoothedLabels

# The number of positions is rounded up to a multiple of this, because oneDNN compiles a product for each new shape.
MULTIPLE = 64
# The number of logits of a chunk. It has at least twice as many positions as the model has dimensions, because adding its gradient
# of the weights takes as long as passing over as many logits as there are weights.
_LOGITS_OF_CHUNK = 2**22

_BecomeGradient = Callable[[Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]
"""Gets logits (N, V) without bias, the bias (V,), and the sum of its gradients (V,), the last two None without a bias.

It replaces the logits by the gradient of an objective with respect to them, adds to the gradients of the bias, and returns
two numbers: the objective and the negative log-likelihood.
"""


class _Chunk(NamedTuple):
    """Positions whose logits are computed together."""

    rows: Tensor  # (N,) int64: the numbers of the positions
    become_gradient: _BecomeGradient


def likelihood_loss_on_cpu(
    output: nn.Linear, x: Tensor, target_ids: Tensor, labels: SmoothedLabels
) -> LossSums:
    """The same as `likelihood_loss`, for training.

    Args:
        output: the output layer, from D to V.
        x: (B, T, D), what it reads.
        target_ids: (B, T) int64, `labels.pad_id` where there is no token.
        labels: the probabilities that the model shall learn.
    """
    chunks = [
        _Chunk(rows, partial(_become_gradient_of_likelihood, ids=ids, labels=labels))
        for rows, ids in _real_positions(target_ids, labels.pad_id, output)
    ]
    return _sum_over_chunks(output, x, chunks)


def _real_positions(
    target_ids: Tensor, pad_id: int, output: nn.Linear, num_copies: int = 1
) -> Iterator[tuple[Tensor, Tensor]]:
    """The positions of each chunk: those with a token, then as many others as the multiple needs; and the ids of these tokens.

    Args:
        target_ids: (B, T) int64.
        pad_id: the id where there is no token.
        output: the output layer.
        num_copies: how often a chunk has each position.
    """
    ids = target_ids.flatten()
    is_padding = ids == pad_id
    num_real = len(ids) - int(is_padding.sum())
    real_first = is_padding.to(torch.uint8).argsort(stable=True)
    num_logits = max(_LOGITS_OF_CHUNK, 2 * output.in_features * output.out_features)
    size = max(1, num_logits // (num_copies * output.out_features * MULTIPLE)) * MULTIPLE
    for start in range(0, num_real, size):
        end = min(start + size, num_real)
        rounded = start + -(-(end - start) // MULTIPLE) * MULTIPLE
        yield real_first[start:rounded], ids[real_first[start:end]]


def _sum_over_chunks(output: nn.Linear, x: Tensor, chunks: Sequence[_Chunk]) -> LossSums:
    """The sums of an objective over chunks of the positions of x (..., D), which the output layer reads."""
    apply: Any = _SumOverChunks.apply
    return LossSums(*apply(x, output.weight, output.bias, chunks))


class _SumOverChunks(torch.autograd.Function):
    """Both sums, with a gradient for the first one.

    The forward pass computes the gradients too: it replaces the logits of a chunk by the gradient of the objective with respect
    to them, part by part, while the probabilities are in the cache of the processor. So there are never all logits.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, chunks: Sequence[_Chunk]
    ) -> tuple[Tensor, Tensor]:
        """(..., D), (V, D) and (V,) to two numbers, as `become_gradient` returns them."""
        dtype = product_dtype(x)
        wide = torch.promote_types(dtype, torch.float32)
        positions, columns = x.reshape(-1, x.size(-1)), _transposed(weight.to(dtype))
        needs_x, needs_weight, *_ = ctx.needs_input_grad
        of_x = torch.zeros_like(positions) if needs_x else None
        of_columns = torch.zeros_like(columns, dtype=wide) if needs_weight else None
        of_bias = None if bias is None else torch.zeros_like(bias, dtype=wide)
        objective, likelihood = torch.zeros((), dtype=wide), torch.zeros((), dtype=wide)
        for chunk in chunks:
            rows = positions.index_select(0, chunk.rows).to(dtype)
            logits = F.linear(rows, columns.T)  # (N, V)
            sums = chunk.become_gradient(logits, bias, of_bias)
            objective, likelihood = objective + sums[0], likelihood + sums[1]
            if of_x is not None:
                of_x.index_copy_(0, chunk.rows, (logits @ columns.T).to(of_x.dtype))
            if of_columns is not None:
                of_columns += _transposed(rows) @ logits
        of_weight = None if of_columns is None else _transposed(of_columns)
        ctx.save_for_backward(None if of_x is None else of_x.view_as(x), of_weight, of_bias)
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, of_objective: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        *gradients, of_bias = ctx.saved_tensors
        gradients.append(of_bias if ctx.needs_input_grad[2] else None)
        return (*(None if one is None else one * of_objective for one in gradients), None)


def _transposed(matrix: Tensor) -> Tensor:
    """The transposed matrix, row by row in memory: oneDNN multiplies such matrices up to twice as fast."""
    return matrix.T.contiguous()


def _become_gradient_of_likelihood(
    logits: Tensor,
    bias: Tensor | None,
    of_bias: Tensor | None,
    *,
    ids: Tensor,
    labels: SmoothedLabels,
) -> tuple[Tensor, Tensor]:
    """See `_BecomeGradient`: the sums of `sum_loss`, where the first rows have these ids, and the others count nothing."""
    kernels = find_kernels()
    if kernels is not None and can_read(logits):
        sums = native_loss(kernels, logits, bias, of_bias, Labels(ids, *labels))
        logits[len(ids) :] = 0.0
        return sums[0].sum(), sums[1].sum()
    wide = torch.promote_types(logits.dtype, torch.float32)
    objectives, likelihoods = (torch.empty(len(ids), dtype=wide) for _ in range(2))
    real = logits[: len(ids)]
    for part in parts(real):
        scores = _widened(real[part], bias)
        of_truth = scores.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1)
        of_labels = labels.mean_of(scores, of_truth)
        log_sums = _become_probabilities(scores)
        objectives[part], likelihoods[part] = log_sums - of_labels, log_sums - of_truth
        subtract_labels(labels, scores, ids[part])
        if of_bias is not None:
            of_bias += scores.sum(0)
        real[part] = scores
    logits[len(ids) :] = 0.0
    return objectives.sum(), likelihoods.sum()


def _widened(logits: Tensor, bias: Tensor | None) -> Tensor:
    """A copy in float32 at least, with the bias."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    return scores if bias is None else scores.add_(bias)


def _become_probabilities(scores: Tensor) -> Tensor:
    """Put the softmax of the scores, (N, V), in their place; return their log-sum-exp, (N,)."""
    largest = scores.amax(-1, keepdim=True)
    sums = scores.sub_(largest).exp_().sum(-1, keepdim=True)
    scores.div_(sums)
    return (sums.log_() + largest).squeeze(-1)


# A part has four tensors in the cache of the processor, where that of one prediction has one.
_SHARE = 4


def r_drop_loss_on_cpu(
    output: nn.Linear, x: Tensor, target_ids: Tensor, labels: SmoothedLabels, alpha: float
) -> LossSums:
    """The same as `r_drop_loss`, for training.

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
        _Chunk(
            torch.cat([rows, rows + target_ids.numel()]),
            partial(_become_gradient_of_twins, ids=ids, labels=labels, factor=0.5 * alpha),
        )
        for rows, ids in _real_positions(target_ids, labels.pad_id, output, num_copies=2)
    ]
    return _sum_over_chunks(output, x, chunks)


def _become_gradient_of_twins(
    logits: Tensor,
    bias: Tensor | None,
    of_bias: Tensor | None,
    *,
    ids: Tensor,
    labels: SmoothedLabels,
    factor: float,
) -> tuple[Tensor, Tensor]:
    """See `_BecomeGradient`: N rows of the first prediction, N of the second; the first of each have these ids."""
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
        p, q = _widened(first[part], bias), _widened(second[part], bias)
        of_truth = (p.gather(-1, truth) + q.gather(-1, truth)).squeeze(-1)
        of_labels = labels.mean_of(p, p.gather(-1, truth).squeeze(-1))
        of_labels += labels.mean_of(q, q.gather(-1, truth).squeeze(-1))
        difference = p - q  # of logits, then of log-probabilities
        of_p, of_q = _become_probabilities(p), _become_probabilities(q)
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
            subtract_labels(labels, gradient, ids[part])
            if of_bias is not None:
                of_bias += gradient.sum(0)
            rows[part] = gradient
    one[len(ids) :] = other[len(ids) :] = 0.0
    return objectives.sum(), likelihoods.sum()
