"""The loss of a batch: cross-entropy with label smoothing, summed over its tokens."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.config.training import SmoothedOver

# Number of probabilities computed at a time. On a CPU, 1 MiB in float32 for each thread: a part that stays
# in the cache of the processor. Elsewhere 256 MiB, so that a GPU gets few, large kernels.
MAX_PER_THREAD = 2**18
MAX_PER_PART = 2**26


class LossSums(NamedTuple):
    """The loss that training minimises and the loss that reports show, as sums in nats."""

    objective: Tensor  # () for training: cross-entropy with smoothed labels
    negative_log_likelihood: Tensor  # () for reports: perplexity = exp(sum / tokens)


class SmoothedLabels(NamedTuple):
    """The probability that a smoothed label gives to each symbol of the vocabulary."""

    pad_id: int
    of_truth: float
    """Probability of the true symbol, in addition to `of_each`."""
    of_each: float
    """Probability of every symbol."""
    of_pad: float
    """Probability of [PAD], in addition to `of_each`; negative, so that their sum is 0, or 0."""

    @classmethod
    def of(
        cls, num_symbols: int, pad_id: int, epsilon: float, smoothed_over: SmoothedOver
    ) -> "SmoothedLabels":
        """The labels of `sum_loss`."""
        if epsilon == 0.0 or smoothed_over == "vocabulary":
            return cls(pad_id, of_truth=1.0 - epsilon, of_each=epsilon / num_symbols, of_pad=0.0)
        of_each = epsilon / (num_symbols - 2)
        return cls(pad_id, of_truth=1.0 - epsilon - of_each, of_each=of_each, of_pad=-of_each)

    def mean_of(self, scores: Tensor, of_truth: Tensor) -> Tensor:
        """The mean of the scores (N, V), weighted with these probabilities, (N,); `of_truth` are those of true symbols."""
        mean = self.of_truth * of_truth
        if self.of_each:
            mean += self.of_each * scores.sum(-1)
        if self.of_pad:
            mean += self.of_pad * scores[:, self.pad_id]
        return mean

    def subtract_from(self, probabilities: Tensor, ids: Tensor) -> None:
        """Subtract these probabilities from those of a model, (N, V), where `ids`, (N,), are true."""
        probabilities.sub_(self.of_each)
        of_truth = torch.full_like(probabilities[:, :1], -self.of_truth)
        probabilities.scatter_add_(-1, ids.unsqueeze(-1), of_truth)
        if self.of_pad:
            probabilities[:, self.pad_id] -= self.of_pad


def sum_loss(
    logits: Tensor,
    target_ids: Tensor,
    *,
    pad_id: int,
    label_smoothing: float,
    smoothed_over: SmoothedOver = "vocabulary",
) -> LossSums:
    """Sum the cross-entropy over real tokens; the caller divides by a token count.

    Args:
        logits: (B, T, V).
        target_ids: (B, T) int64, `pad_id` where there is no token.
        pad_id: the id of [PAD]; positions with it add nothing to either sum.
        label_smoothing: epsilon, the share of probability (0 to 1) that is spread evenly over several symbols.
        smoothed_over: "vocabulary": all V symbols, the true one included; "others": the V - 2 symbols
            that are neither the true one nor [PAD].

    Source: Vaswani et al. 2017, section 5.4; Szegedy et al. 2016; "others": The Annotated Transformer.
    """
    labels = SmoothedLabels.of(logits.size(-1), pad_id, label_smoothing, smoothed_over)
    sum_over_tokens: Any = _SumOverTokens.apply
    return LossSums(*sum_over_tokens(logits, target_ids, labels))


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
            ctx.labels.subtract_from(probabilities, ids[part])
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
