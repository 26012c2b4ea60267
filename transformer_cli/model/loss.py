"""The loss of a batch: cross-entropy with label smoothing, summed over its tokens."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.config.training import SmoothedOver
from transformer_cli.model.norms import at_least_float32

# Number of log-probabilities computed at a time. On a CPU, 2 MiB in float32 for each thread: a part that stays
# in the cache of the processor. Elsewhere 256 MiB, so that a GPU gets few, large kernels.
MAX_PER_THREAD = 2**19
MAX_PER_PART = 2**26


class LossSums(NamedTuple):
    """The loss that training minimises and the loss that reports show, as sums in nats."""

    objective: Tensor  # () for training: cross-entropy with smoothed labels
    negative_log_likelihood: Tensor  # () for reports: perplexity = exp(sum / tokens)


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
    rows: Any = _RowLogProbabilities
    of_truth, of_pad, of_all = rows.apply(logits, target_ids, pad_id)
    is_real = target_ids != pad_id
    likelihood = of_truth.masked_fill(~is_real, 0.0).sum()
    if label_smoothing == 0.0:
        return LossSums(-likelihood, -likelihood.detach())
    num_symbols = logits.size(-1)
    if smoothed_over == "others":
        of_all = of_all - of_truth - of_pad
        num_symbols -= 2
    share_of_each = label_smoothing / num_symbols
    spread = share_of_each * of_all.masked_fill(~is_real, 0.0).sum()
    return LossSums(-(1.0 - label_smoothing) * likelihood - spread, -likelihood.detach())


class _RowLogProbabilities(torch.autograd.Function):
    """For each position: log-probability of the true token, log-probability of [PAD], sum over the vocabulary.

    The log-probabilities, (B, T, V), would be the largest tensor of a training step, and their backward pass
    needs several more of that size. Here a part of the positions is computed at a time, in float32 at least, and
    again in the backward pass. Each number is the same as if all positions were computed at once.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target_ids: Tensor, pad_id: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, T, V), (B, T) int64 and an id to three tensors (B, T)."""
        ctx.save_for_backward(logits, target_ids)
        ctx.pad_id = pad_id
        dtype = torch.promote_types(logits.dtype, torch.float32)
        of_truth, of_pad, of_all = (
            torch.empty(target_ids.shape, dtype=dtype, device=logits.device) for _ in range(3)
        )
        ids, *sums = (rows.flatten() for rows in (target_ids, of_truth, of_pad, of_all))
        for part, log_probabilities in _parts(logits):
            sums[0][part] = log_probabilities.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1)
            sums[1][part] = log_probabilities[:, pad_id]
            sums[2][part] = log_probabilities.sum(-1)
        return of_truth, of_pad, of_all

    @staticmethod
    def backward(
        ctx: Any, of_truth: Tensor, of_pad: Tensor, of_all: Tensor
    ) -> tuple[Tensor, None, None]:
        """The gradients of the three outputs, (B, T) each, to that of the logits, (B, T, V)."""
        logits, target_ids = ctx.saved_tensors
        gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
        rows = gradient.flatten(0, 1)
        ids, *given = (
            one.flatten().unsqueeze(-1) for one in (target_ids, of_truth, of_pad, of_all)
        )
        for part, log_probabilities in _parts(logits):
            of_each = given[2][part].expand_as(log_probabilities).contiguous()
            of_each[:, ctx.pad_id] += given[1][part].squeeze(-1)
            of_each.scatter_add_(-1, ids[part], given[0][part])
            # The formula of the backward pass of log_softmax.
            rows[part] = torch._log_softmax_backward_data(
                of_each, log_probabilities, -1, of_each.dtype
            )
        return gradient, None, None


def _parts(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Slices of the B T positions, each with its log-probabilities, (part, V)."""
    rows = logits.flatten(0, 1)
    is_on_cpu = logits.device.type == "cpu"
    numbers = MAX_PER_THREAD * torch.get_num_threads() if is_on_cpu else MAX_PER_PART
    num_parts = -(-rows.numel() // numbers)
    size = -(-len(rows) // max(num_parts, 1))
    for start in range(0, len(rows), max(size, 1)):
        part = slice(start, start + size)
        yield part, at_least_float32(rows[part]).log_softmax(-1)
