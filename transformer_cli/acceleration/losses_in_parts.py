"""Twins of `sum_loss` and `symmetric_divergence` that never hold the probabilities of a whole batch, for any device."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from transformer_cli.model.loss import LossSums, SmoothedLabels

# Number of probabilities computed at a time. On a CPU, 1 MiB in float32 for each thread: a part that stays
# in the cache of the processor. Elsewhere 256 MiB, or 128 MiB of each of two predictions, so that a GPU gets few, large kernels.
MAX_PER_THREAD = 2**18
MAX_PER_PART = 2**26
MAX_PER_PART_OF_BOTH = 2**25


def sum_loss_in_parts(logits: Tensor, target_ids: Tensor, labels: SmoothedLabels) -> LossSums:
    """The same as `sum_loss`."""
    sum_over_tokens: Any = _SumOverTokens.apply
    return LossSums(*sum_over_tokens(logits, target_ids, labels))


def symmetric_divergence_in_parts(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
    """The same as `symmetric_divergence`."""
    divergence: Any = _SymmetricDivergence
    return divergence.apply(logits, other_logits, is_real)


class _SumOverTokens(torch.autograd.Function):
    """Both sums, with a gradient for the first one.

    The probabilities, (B, T, V), would be the largest tensor of a training step. Here they exist for a part of
    the positions at a time, in float32 at least, and are computed again in the backward pass. Only the gradient
    has the size of the logits.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target_ids: Tensor, labels: SmoothedLabels
    ) -> tuple[Tensor, Tensor]:
        """(B, T, V) and (B, T) int64 to two numbers: the objective and the negative log-likelihood."""
        rows, ids = logits.flatten(0, 1), target_ids.flatten()
        dtype = torch.promote_types(logits.dtype, torch.float32)
        log_sums, of_truth, of_labels = (
            torch.empty(len(rows), dtype=dtype, device=logits.device) for _ in range(3)
        )
        for part in parts(rows):
            scores = rows[part].to(dtype, copy=True)
            of_truth[part] = scores.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1)
            of_labels[part] = labels.mean_of(scores, of_truth[part])
            log_sums[part] = _log_sum_exp(scores)
        ctx.save_for_backward(logits, target_ids, log_sums)
        ctx.labels = labels
        is_padding = ids == labels.pad_id
        objective, likelihood = (
            (log_sums - one).masked_fill_(is_padding, 0.0).sum() for one in (of_labels, of_truth)
        )
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, of_objective: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        """The gradient of the objective, () to that of the logits, (B, T, V): probabilities minus labels."""
        logits, target_ids, log_sums = ctx.saved_tensors
        gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
        rows, gradients, ids = logits.flatten(0, 1), gradient.flatten(0, 1), target_ids.flatten()
        for part in parts(rows):
            scores = rows[part].to(log_sums.dtype, copy=True)
            probabilities = scores.sub_(log_sums[part].unsqueeze(-1)).exp_()
            subtract_labels(ctx.labels, probabilities, ids[part])
            gradients[part] = probabilities.mul_(of_objective)
        _fill_rows_with_zeros(gradients, ids == ctx.labels.pad_id)
        return gradient, None, None


def _log_sum_exp(scores: Tensor) -> Tensor:
    """(N, V) to (N,); `scores` is overwritten, which takes a third of the time of `logsumexp`."""
    largest = scores.amax(-1, keepdim=True)
    return (scores.sub_(largest).exp_().sum(-1, keepdim=True).log_() + largest).squeeze(-1)


def _fill_rows_with_zeros(matrix: Tensor, is_chosen: Tensor) -> None:
    if (
        matrix.device.type == "cpu"
    ):  # writes only these rows; elsewhere `nonzero` would wait for the device
        matrix.index_fill_(0, is_chosen.nonzero().squeeze(-1), 0.0)
    else:
        matrix.masked_fill_(is_chosen.unsqueeze(-1), 0.0)


def parts(rows: Tensor, share: int = 1) -> Iterator[slice]:
    """Slices of the N rows of a matrix (N, V), each with as many numbers as the loss computes at a time, divided by `share`."""
    is_on_cpu = rows.device.type == "cpu"
    numbers = MAX_PER_THREAD * torch.get_num_threads() if is_on_cpu else MAX_PER_PART
    num_parts = -(-rows.numel() * share // numbers)
    size = -(-len(rows) // max(num_parts, 1))
    for start in range(0, len(rows), max(size, 1)):
        yield slice(start, start + size)


def subtract_labels(labels: SmoothedLabels, probabilities: Tensor, ids: Tensor) -> None:
    """Subtract the probabilities of labels from those of a model, (N, V), where `ids`, (N,), are true."""
    probabilities.sub_(labels.of_each)
    of_truth = torch.full_like(probabilities[:, :1], -labels.of_truth)
    probabilities.scatter_add_(-1, ids.unsqueeze(-1), of_truth)
    if labels.of_pad:
        probabilities[:, labels.pad_id] -= labels.of_pad


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
        for part, log_p, log_q in _parts_of_both(logits, other_logits):
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
        for part, log_p, log_q in _parts_of_both(logits, other_logits):
            p, q, difference = log_p.exp(), log_q.exp(), log_p - log_q
            scale = given * is_real.flatten()[part].unsqueeze(-1)
            of_p = p * (difference - (p * difference).sum(-1, keepdim=True)) + p - q
            of_q = q * ((q * difference).sum(-1, keepdim=True) - difference) + q - p
            gradients[0].flatten(0, 1)[part] = scale * of_p
            gradients[1].flatten(0, 1)[part] = scale * of_q
        return gradients[0], gradients[1], None


def _parts_of_both(logits: Tensor, other_logits: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Slices of the B T positions, each with both log-probabilities, (part, V)."""
    rows, other_rows = logits.flatten(0, 1), other_logits.flatten(0, 1)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    is_on_cpu = logits.device.type == "cpu"
    numbers = MAX_PER_THREAD * torch.get_num_threads() if is_on_cpu else MAX_PER_PART_OF_BOTH
    size = max(numbers // logits.size(-1), 1)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        log_p, log_q = (one[part].to(dtype).log_softmax(-1) for one in (rows, other_rows))
        yield part, log_p, log_q
