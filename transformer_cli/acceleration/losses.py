"""Twins of the losses: in parts for any device, compiled for GPUs, and joined with the output layer for CPUs."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.cpu_training import product_dtype
from transformer_cli.acceleration.native_kernels import Labels, native_loss
from transformer_cli.model.loss import LossSums, SmoothedLabels

# Twins of `sum_loss` and `symmetric_divergence` that never hold the probabilities of a whole batch, for any device.


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
    divergence: Any = _Divergence
    return divergence.apply(logits, other_logits, is_real, True)


def divergence_in_parts(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
    """The same as `divergence` of model/loss.py."""
    divergence: Any = _Divergence
    return divergence.apply(logits, other_logits, is_real, False)


class _SumOverTokens(torch.autograd.Function):
    """Both sums, with a gradient for the first one.

    The probabilities, (B, T, V), would be the largest tensor of a training step. Here they exist for a part of
    the positions at a time, in float32 at least, and are computed again in the backward pass. Only the gradient
    has the size of the logits.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target_ids: Tensor, labels: SmoothedLabels) -> tuple[Tensor, Tensor]:
        """(B, T, V) and (B, T) int64 to two numbers: the objective and the negative log-likelihood."""
        rows, ids = logits.flatten(0, 1), target_ids.flatten()
        dtype = torch.promote_types(logits.dtype, torch.float32)
        log_sums, true_scores, label_scores = (
            torch.empty(len(rows), dtype=dtype, device=logits.device) for _ in range(3)
        )
        for part in parts(rows):
            scores = rows[part].to(dtype, copy=True)
            true_scores[part] = scores.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1)
            label_scores[part] = labels.mean_of(scores, true_scores[part])
            # In place, which takes a third of the time of `logsumexp`.
            largest = scores.amax(-1, keepdim=True)
            log_sums[part] = (scores.sub_(largest).exp_().sum(-1, keepdim=True).log_() + largest).squeeze(-1)
        ctx.save_for_backward(logits, target_ids, log_sums)
        ctx.labels = labels
        is_padding = ids == labels.pad_id
        objective, likelihood = (
            (log_sums - one).masked_fill_(is_padding, 0.0).sum() for one in (label_scores, true_scores)
        )
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, objective_gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        """The gradient of the objective, () to that of the logits, (B, T, V): probabilities minus labels."""
        logits, target_ids, log_sums = ctx.saved_tensors
        gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
        rows, gradients, ids = logits.flatten(0, 1), gradient.flatten(0, 1), target_ids.flatten()
        for part in parts(rows):
            scores = rows[part].to(log_sums.dtype, copy=True)
            probabilities = scores.sub_(log_sums[part].unsqueeze(-1)).exp_()
            subtract_labels(ctx.labels, probabilities, ids[part])
            gradients[part] = probabilities.mul_(objective_gradient)
        _fill_rows_with_zeros(gradients, ids == ctx.labels.pad_id)
        return gradient, None, None


def _fill_rows_with_zeros(matrix: Tensor, is_chosen: Tensor) -> None:
    if matrix.device.type == "cpu":  # writes only these rows; elsewhere `nonzero` would wait for the device
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
    probabilities.sub_(labels.symbol_weight)
    negative_weights = torch.full_like(probabilities[:, :1], -labels.truth_weight)
    probabilities.scatter_add_(-1, ids.unsqueeze(-1), negative_weights)
    if labels.pad_weight:
        probabilities[:, labels.pad_id] -= labels.pad_weight


class _Divergence(torch.autograd.Function):
    """Computes a part of the positions at a time, also in the backward pass, so no (B, T, V) is kept in float32.

    With d = log p - log q, KL(P || Q) is the sum of p d over the vocabulary; its gradient with respect to the first logits is
    p (d - sum(p d)), and with respect to the others q - p. The symmetric sum is that of (p - q) d; p - q is added to the first
    gradient, and q (sum(q d) - d) to the second.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, other_logits: Tensor, is_real: Tensor, is_symmetric: bool) -> Tensor:
        ctx.save_for_backward(logits, other_logits, is_real)
        ctx.is_symmetric = is_symmetric
        dtype = torch.promote_types(logits.dtype, torch.float32)
        total = torch.zeros((), dtype=dtype, device=logits.device)
        for part, log_p, log_q in _parts_of_both(logits, other_logits):
            weights = log_p.exp() - log_q.exp() if is_symmetric else log_p.exp()
            divergences = (weights * (log_p - log_q)).sum(-1)
            total += divergences.masked_fill(~is_real.flatten()[part], 0.0).sum()
        return total

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, Tensor, None, None]:
        logits, other_logits, is_real = ctx.saved_tensors
        gradients = [torch.empty_like(one, memory_format=torch.contiguous_format) for one in (logits, other_logits)]
        for part, log_p, log_q in _parts_of_both(logits, other_logits):
            p, q, difference = log_p.exp(), log_q.exp(), log_p - log_q
            scale = given * is_real.flatten()[part].unsqueeze(-1)
            p_gradient = p * (difference - (p * difference).sum(-1, keepdim=True))
            q_gradient = q - p
            if ctx.is_symmetric:
                p_gradient = p_gradient + p - q
                q_gradient = q * ((q * difference).sum(-1, keepdim=True) - difference) + q - p
            gradients[0].flatten(0, 1)[part] = scale * p_gradient
            gradients[1].flatten(0, 1)[part] = scale * q_gradient
        return gradients[0], gradients[1], None, None


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


# Twins of `sum_loss` and `symmetric_divergence` for GPUs, compiled by torch.compile: two kernels for each (`runtime.compile`).
#
# One kernel reads the logits and makes the sums, one reads them again and writes their gradient. The plain forms have a
# kernel for each operation, and each of them reads or writes all B T V logits.


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
    def forward(ctx: Any, logits: Tensor, target_ids: Tensor, labels: SmoothedLabels) -> tuple[Tensor, Tensor]:
        objective, likelihood, log_sums = compiled(_sums)(logits, target_ids, labels)
        ctx.save_for_backward(logits, target_ids, log_sums)
        ctx.labels = labels
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, objective_gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        return compiled(_gradient_of_sums)(*ctx.saved_tensors, objective_gradient, ctx.labels), None, None


def _sums(logits: Tensor, target_ids: Tensor, labels: SmoothedLabels) -> tuple[Tensor, Tensor, Tensor]:
    """Objective () and negative log-likelihood (), and for each position the log of its sum of exp(logits), (N,)."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    true_scores = scores.gather(-1, target_ids.unsqueeze(-1)).squeeze(-1)
    log_sums = scores.logsumexp(-1)
    is_padding = target_ids == labels.pad_id
    objective, likelihood = (
        (log_sums - one).masked_fill(is_padding, 0.0).sum()
        for one in (labels.mean_of(scores, true_scores), true_scores)
    )
    return objective, likelihood, log_sums


def _gradient_of_sums(
    logits: Tensor, target_ids: Tensor, log_sums: Tensor, objective_gradient: Tensor, labels: SmoothedLabels
) -> Tensor:
    """The gradient of the objective, () to that of the logits, (N, V): probabilities minus labels."""
    probabilities = (logits.to(log_sums.dtype) - log_sums.unsqueeze(-1)).exp()
    symbols = torch.arange(logits.size(-1), device=logits.device)
    # Each symbol is compared with the true one, because to write to the true ones would take a kernel more.
    is_true, is_pad = ((symbols == one).to(log_sums.dtype) for one in (target_ids.unsqueeze(-1), labels.pad_id))
    label = labels.symbol_weight + labels.truth_weight * is_true + labels.pad_weight * is_pad
    is_padding = (target_ids == labels.pad_id).unsqueeze(-1)
    gradient = ((probabilities - label) * objective_gradient).masked_fill(is_padding, 0.0)
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
        total, position_sums = compiled(_divergence)(logits, other_logits, is_real)
        ctx.save_for_backward(logits, other_logits, is_real, position_sums)
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
    p_mean = (log_p.exp() * (log_p - log_q)).sum(-1)
    q_mean = (log_q.exp() * (log_p - log_q)).sum(-1)
    total = (p_mean - q_mean).masked_fill(~is_real, 0.0).sum()
    return total, torch.stack([log_sums, other_log_sums, p_mean, q_mean], dim=-1)


def _gradients_of_divergence(
    logits: Tensor, other_logits: Tensor, is_real: Tensor, position_sums: Tensor, given: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of both logits, (N, V); `position_sums` is the second value of `_divergence`."""
    log_sums, other_log_sums, p_mean, q_mean = position_sums.unsqueeze(-1).unbind(1)  # each (N, 1)
    log_p, log_q = (logits.to(log_sums.dtype) - log_sums, other_logits.to(log_sums.dtype) - other_log_sums)
    p, q, difference = log_p.exp(), log_q.exp(), log_p - log_q
    scale = given * is_real.unsqueeze(-1)
    gradient = scale * (p * (difference - p_mean) + p - q)
    other_gradient = scale * (q * (q_mean - difference) + q - p)
    return gradient.to(logits.dtype), other_gradient.to(other_logits.dtype)


# Twins of `likelihood_loss` and `r_drop_loss` for training on a CPU.
#
# The output layer and the loss are one autograd function, for real target positions only, chunk by chunk.


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


def likelihood_loss_on_cpu(output: nn.Linear, x: Tensor, target_ids: Tensor, labels: SmoothedLabels) -> LossSums:
    """The same as `likelihood_loss`, for training.

    Args:
        output: the output layer, from D to V.
        x: (B, T, D), what it reads.
        target_ids: (B, T) int64, `labels.pad_id` where there is no token.
        labels: the probabilities that the model shall learn.
    """
    become_gradient = partial(_become_gradient_of_likelihood, labels=labels)
    return _sum_over_chunks(output, x, target_ids, labels.pad_id, become_gradient)


def _sum_over_chunks(
    output: nn.Linear,
    x: Tensor,
    target_ids: Tensor,
    pad_id: int,
    become_gradient: Callable[..., tuple[Tensor, Tensor]],
    *,
    num_copies: int = 1,
) -> LossSums:
    """The sums of an objective over chunks of the real positions of x (num_copies * B, T, D), which the output layer reads.

    Args:
        target_ids: (B, T) int64.
        pad_id: the id where there is no token.
        become_gradient: a `_BecomeGradient` that is also given the `ids` of the chunk; it gets the rows of one copy behind those of the other.
        num_copies: how often a chunk has each position.
    """
    ids = target_ids.flatten()
    is_padding = ids == pad_id
    num_real = len(ids) - int(is_padding.sum())
    real_first = is_padding.to(torch.uint8).argsort(stable=True)
    num_logits = max(_LOGITS_OF_CHUNK, 2 * output.in_features * output.out_features)
    size = max(1, num_logits // (num_copies * output.out_features * MULTIPLE)) * MULTIPLE
    chunks = []
    for start in range(0, num_real, size):
        end = min(start + size, num_real)
        # The positions with a token, then as many others as the multiple needs.
        rows = real_first[start : start + -(-(end - start) // MULTIPLE) * MULTIPLE]
        rows_of_copies = torch.cat([rows + copy * len(ids) for copy in range(num_copies)])
        chunks.append(_Chunk(rows_of_copies, partial(become_gradient, ids=ids[real_first[start:end]])))
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
        # Transposed matrices lie row by row in memory: oneDNN multiplies such matrices up to twice as fast.
        positions, columns = x.reshape(-1, x.size(-1)), weight.to(dtype).T.contiguous()
        needs_x, needs_weight, *_ = ctx.needs_input_grad
        x_gradient = torch.zeros_like(positions) if needs_x else None
        columns_gradient = torch.zeros_like(columns, dtype=wide) if needs_weight else None
        bias_gradient = None if bias is None else torch.zeros_like(bias, dtype=wide)
        objective, likelihood = torch.zeros((), dtype=wide), torch.zeros((), dtype=wide)
        for chunk in chunks:
            rows = positions.index_select(0, chunk.rows).to(dtype)
            logits = F.linear(rows, columns.T)  # (N, V)
            sums = chunk.become_gradient(logits, bias, bias_gradient)
            objective, likelihood = objective + sums[0], likelihood + sums[1]
            if x_gradient is not None:
                x_gradient.index_copy_(0, chunk.rows, (logits @ columns.T).to(x_gradient.dtype))
            if columns_gradient is not None:
                columns_gradient += rows.T.contiguous() @ logits
        weight_gradient = None if columns_gradient is None else columns_gradient.T.contiguous()
        ctx.save_for_backward(None if x_gradient is None else x_gradient.view_as(x), weight_gradient, bias_gradient)
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, objective_gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        *gradients, bias_gradient = ctx.saved_tensors
        gradients.append(bias_gradient if ctx.needs_input_grad[2] else None)
        return (*(None if one is None else one * objective_gradient for one in gradients), None)


def _become_gradient_of_likelihood(
    logits: Tensor, bias: Tensor | None, bias_gradient: Tensor | None, *, ids: Tensor, labels: SmoothedLabels
) -> tuple[Tensor, Tensor]:
    """See `_BecomeGradient`: the sums of `sum_loss`, where the first rows have these ids, and the others count nothing."""
    sums = native_loss([logits], bias, bias_gradient, Labels(ids, *labels))
    if sums is not None:
        logits[len(ids) :] = 0.0
        return sums[0].sum(), sums[1].sum()
    wide = torch.promote_types(logits.dtype, torch.float32)
    objectives, likelihoods = (torch.empty(len(ids), dtype=wide) for _ in range(2))
    real = logits[: len(ids)]
    for part in parts(real):
        scores = _widened(real[part], bias)
        true_scores = scores.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1)
        label_scores = labels.mean_of(scores, true_scores)
        log_sums = _become_probabilities(scores)
        objectives[part], likelihoods[part] = log_sums - label_scores, log_sums - true_scores
        subtract_labels(labels, scores, ids[part])
        if bias_gradient is not None:
            bias_gradient += scores.sum(0)
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
    become_gradient = partial(_become_gradient_of_r_drop, labels=labels, factor=0.5 * alpha)
    return _sum_over_chunks(output, x, target_ids, labels.pad_id, become_gradient, num_copies=2)


def simcut_loss_on_cpu(
    output: nn.Linear, x: Tensor, target_ids: Tensor, labels: SmoothedLabels, weight: float
) -> LossSums:
    """The same as `simcut_loss`, for training.

    Args:
        output: the output layer, from D to V.
        x: (2 B, T, D), what it reads: the rows of the whole sentences, then those of their cut copies.
        target_ids: (B, T) int64, `labels.pad_id` where there is no token.
        labels: the probabilities that the model shall learn.
        weight: of the divergence.

    Source: Gao et al. 2022, section 3; the gradient of the divergence: see `divergence_in_parts`.
    """
    become_gradient = partial(_become_gradient_of_cut, labels=labels, weight=weight)
    return _sum_over_chunks(output, x, target_ids, labels.pad_id, become_gradient, num_copies=2)


def _become_gradient_of_cut(
    logits: Tensor,
    bias: Tensor | None,
    bias_gradient: Tensor | None,
    *,
    ids: Tensor,
    labels: SmoothedLabels,
    weight: float,
) -> tuple[Tensor, Tensor]:
    """See `_BecomeGradient`: N rows of whole sentences, N of their cut copies; the first of each have these ids."""
    one, other = logits.chunk(2)
    wide = torch.promote_types(logits.dtype, torch.float32)
    objectives, likelihoods = (torch.empty(len(ids), dtype=wide) for _ in range(2))
    first, second = one[: len(ids)], other[: len(ids)]
    for part in parts(first, share=_SHARE):
        p, q = _widened(first[part], bias), _widened(second[part], bias)
        true_scores = p.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1)
        label_scores = labels.mean_of(p, true_scores)
        difference = p - q  # of logits, then of log-probabilities
        p_log_sums, q_log_sums = _become_probabilities(p), _become_probabilities(q)
        difference -= (p_log_sums - q_log_sums).unsqueeze(-1)
        distance = (p * difference).sum(-1, keepdim=True)  # KL(P || Q)
        objectives[part] = p_log_sums - label_scores + weight * distance.squeeze(-1)
        likelihoods[part] = p_log_sums - true_scores
        second_gradient = q.sub_(p).mul_(weight)
        # p (1 + weight (difference - distance)), less the labels
        first_gradient = difference.sub_(distance).mul_(weight).add_(1.0).mul_(p)
        subtract_labels(labels, first_gradient, ids[part])
        for rows, gradient in ((first, first_gradient), (second, second_gradient)):
            if bias_gradient is not None:
                bias_gradient += gradient.sum(0)
            rows[part] = gradient
    one[len(ids) :] = other[len(ids) :] = 0.0
    return objectives.sum(), likelihoods.sum()


def _become_gradient_of_r_drop(
    logits: Tensor,
    bias: Tensor | None,
    bias_gradient: Tensor | None,
    *,
    ids: Tensor,
    labels: SmoothedLabels,
    factor: float,
) -> tuple[Tensor, Tensor]:
    """See `_BecomeGradient`: N rows of the first prediction, N of the second; the first of each have these ids."""
    one, other = logits.chunk(2)
    sums = native_loss([one, other], bias, bias_gradient, Labels(ids, *labels), factor)
    if sums is not None:
        one[len(ids) :] = other[len(ids) :] = 0.0
        return sums[0].sum(), sums[1].sum()
    wide = torch.promote_types(logits.dtype, torch.float32)
    objectives, likelihoods = (torch.empty(len(ids), dtype=wide) for _ in range(2))
    first, second = one[: len(ids)], other[: len(ids)]
    for part in parts(first, share=_SHARE):
        truth = ids[part].unsqueeze(-1)
        p, q = _widened(first[part], bias), _widened(second[part], bias)
        true_scores = (p.gather(-1, truth) + q.gather(-1, truth)).squeeze(-1)
        label_scores = labels.mean_of(p, p.gather(-1, truth).squeeze(-1))
        label_scores += labels.mean_of(q, q.gather(-1, truth).squeeze(-1))
        difference = p - q  # of logits, then of log-probabilities
        p_log_sums, q_log_sums = _become_probabilities(p), _become_probabilities(q)
        difference -= (p_log_sums - q_log_sums).unsqueeze(-1)
        from_p = (p * difference).sum(-1, keepdim=True)  # KL(P || Q)
        from_q = (q * difference).sum(-1, keepdim=True)  # - KL(Q || P)
        log_sums = p_log_sums + q_log_sums
        objectives[part] = log_sums - label_scores + factor * (from_p - from_q).squeeze(-1)
        likelihoods[part] = 0.5 * (log_sums - true_scores)
        between = (p - q).mul_(factor)
        # p (1 + factor (difference - from_p)) + between, and the same for q with the opposite signs
        first_gradient = (difference - from_p).mul_(factor).add_(1.0).mul_(p).add_(between)
        second_gradient = difference.sub_(from_q).mul_(-factor).add_(1.0).mul_(q).sub_(between)
        for rows, gradient in ((first, first_gradient), (second, second_gradient)):
            subtract_labels(labels, gradient, ids[part])
            if bias_gradient is not None:
                bias_gradient += gradient.sum(0)
            rows[part] = gradient
    one[len(ids) :] = other[len(ids) :] = 0.0
    return objectives.sum(), likelihoods.sum()
