"""The output layer and the loss in one autograd function, for real target positions only."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.model.loss import LossSums, SmoothedLabels, parts
from transformer_cli.model.precision import product_dtype

# The number of positions is rounded up to a multiple of this, because oneDNN compiles a product for each new shape.
MULTIPLE = 64

BecomeGradient = Callable[[Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]
"""Gets logits (N, V) without bias, the bias (V,), and the sum of its gradients (V,), the last two None without a bias.

It replaces the logits by the gradient of an objective with respect to them, adds to the gradients of the bias, and returns
two numbers: the objective and the negative log-likelihood.
"""


def sum_loss_on_cpu(
    output: nn.Linear, x: Tensor, target_ids: Tensor, labels: SmoothedLabels
) -> LossSums:
    """The same as `sum_loss` of the logits, for training.

    Args:
        output: the output layer, from D to V.
        x: (B, T, D), what it reads.
        target_ids: (B, T) int64, `labels.pad_id` where there is no token.
        labels: the probabilities that the model shall learn.
    """
    chosen, ids = real_positions(target_ids, labels.pad_id)
    rows = x.flatten(0, 1).index_select(0, chosen)
    return sum_over_rows(output, rows, partial(_become_gradient, ids=ids, labels=labels))


def real_positions(target_ids: Tensor, pad_id: int) -> tuple[Tensor, Tensor]:
    """The numbers of the positions with a token, then of as many others as the multiple needs; and the ids of these tokens."""
    ids = target_ids.flatten()
    is_padding = ids == pad_id
    num_real = len(ids) - int(is_padding.sum())
    chosen = is_padding.to(torch.uint8).argsort(stable=True)[: -(-num_real // MULTIPLE) * MULTIPLE]
    return chosen, ids[chosen[:num_real]]


def sum_over_rows(output: nn.Linear, rows: Tensor, become_gradient: BecomeGradient) -> LossSums:
    """The sums of an objective over rows (N, D) that the output layer reads."""
    apply: Any = _SumOverRows.apply
    return LossSums(*apply(rows, output.weight, output.bias, become_gradient))


class _SumOverRows(torch.autograd.Function):
    """Both sums, with a gradient for the first one.

    The forward pass replaces the logits by the gradient of the objective with respect to them, part by part,
    while the probabilities are in the cache of the processor. So there is one tensor of the size of the logits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        become_gradient: BecomeGradient,
    ) -> tuple[Tensor, Tensor]:
        """(N, D), (V, D) and (V,) to two numbers, as `become_gradient` returns them."""
        dtype = product_dtype(x)
        rows, columns = x.to(dtype), _transposed(weight.to(dtype))
        logits = F.linear(rows, columns.T)  # (N, V)
        wide = torch.promote_types(dtype, torch.float32)
        of_bias = None if bias is None else torch.zeros_like(bias, dtype=wide)
        objective, likelihood = become_gradient(logits, bias, of_bias)
        ctx.save_for_backward(rows, columns, logits, of_bias)
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, of_objective: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, of_logits, of_bias = ctx.saved_tensors
        needs_x, needs_weight, needs_bias, *_others = ctx.needs_input_grad
        # The factor goes into the smaller matrix of each product.
        return (
            (of_logits @ columns.T).mul_(of_objective) if needs_x else None,
            _transposed(_transposed(rows * of_objective) @ of_logits) if needs_weight else None,
            of_bias * of_objective if needs_bias else None,
            None,
        )


def _become_gradient(
    logits: Tensor,
    bias: Tensor | None,
    of_bias: Tensor | None,
    *,
    ids: Tensor,
    labels: SmoothedLabels,
) -> tuple[Tensor, Tensor]:
    """See `BecomeGradient`: the sums of `sum_loss`, where the first rows have these ids, and the others count nothing."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    objectives, likelihoods = (torch.empty(len(ids), dtype=wide) for _ in range(2))
    real = logits[: len(ids)]
    for part in parts(real):
        scores = widened(real[part], bias)
        of_truth = scores.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1)
        of_labels = labels.mean_of(scores, of_truth)
        log_sums = become_probabilities(scores)
        objectives[part], likelihoods[part] = log_sums - of_labels, log_sums - of_truth
        labels.subtract_from(scores, ids[part])
        if of_bias is not None:
            of_bias += scores.sum(0)
        real[part] = scores
    logits[len(ids) :] = 0.0
    return objectives.sum(), likelihoods.sum()


def widened(logits: Tensor, bias: Tensor | None) -> Tensor:
    """A copy in float32 at least, with the bias."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    return scores if bias is None else scores.add_(bias)


def _transposed(matrix: Tensor) -> Tensor:
    """The transposed matrix, row by row in memory: oneDNN multiplies such matrices up to twice as fast."""
    return matrix.T.contiguous()


def become_probabilities(scores: Tensor) -> Tensor:
    """Put the softmax of the scores, (N, V), in their place; return their log-sum-exp, (N,)."""
    largest = scores.amax(-1, keepdim=True)
    sums = scores.sub_(largest).exp_().sum(-1, keepdim=True)
    scores.div_(sums)
    return (sums.log_() + largest).squeeze(-1)
