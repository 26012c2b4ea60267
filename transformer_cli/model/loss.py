"""Losses of logits, as sums over the tokens of a batch; the caller divides by a token count."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_cli.config.schema import SmoothedOver
from transformer_cli.model.layers import at_least_float32


class LossSums(NamedTuple):
    """The loss that training minimises and the loss that reports show, as sums in nats."""

    objective: Tensor  # () for training: cross-entropy with smoothed labels
    negative_log_likelihood: Tensor  # () for reports: perplexity = exp(sum / tokens)


class SmoothedLabels(NamedTuple):
    """The probability that a label gives to each symbol of the vocabulary; `SmoothedLabels(pad_id)` is not smoothed."""

    pad_id: int
    truth_weight: float = 1.0
    """Probability of the true symbol, in addition to `symbol_weight`."""
    symbol_weight: float = 0.0
    """Probability of every symbol."""
    pad_weight: float = 0.0
    """Probability of [PAD], in addition to `symbol_weight`; negative, so that their sum is 0, or 0."""

    @classmethod
    def of(cls, num_symbols: int, pad_id: int, epsilon: float, smoothed_over: SmoothedOver) -> "SmoothedLabels":
        """Labels that spread a share of the probability evenly over several symbols.

        Args:
            num_symbols: V.
            pad_id: the id of [PAD].
            epsilon: the share that is spread, 0 to 1.
            smoothed_over: "vocabulary": all V symbols, the true one included; "others": the V - 2 symbols
                that are neither the true one nor [PAD].

        Source: Vaswani et al. 2017, section 5.4; Szegedy et al. 2016; "others": The Annotated Transformer.
        """
        if epsilon == 0.0 or smoothed_over == "vocabulary":
            return cls(pad_id, truth_weight=1.0 - epsilon, symbol_weight=epsilon / num_symbols)
        weight = epsilon / (num_symbols - 2)
        return cls(pad_id, truth_weight=1.0 - epsilon - weight, symbol_weight=weight, pad_weight=-weight)

    def mean_of(self, scores: Tensor, true_scores: Tensor) -> Tensor:
        """The mean of the scores (N, V), weighted with these probabilities, (N,); `true_scores` (N,) are those of the true symbols."""
        mean = self.truth_weight * true_scores
        if self.symbol_weight:
            mean += self.symbol_weight * scores.sum(-1)
        if self.pad_weight:
            mean += self.pad_weight * scores[:, self.pad_id]
        return mean


SumLoss = Callable[[Tensor, Tensor, SmoothedLabels], LossSums]
Divergence = Callable[[Tensor, Tensor, Tensor], Tensor]


def sum_loss(logits: Tensor, target_ids: Tensor, labels: SmoothedLabels) -> LossSums:
    """Sum the cross-entropy over real tokens.

    Args:
        logits: (B, T, V).
        target_ids: (B, T) int64, `labels.pad_id` where there is no token: these positions add nothing to either sum.
        labels: the probabilities that the model shall learn.

    Source: Vaswani et al. 2017, section 5.4.
    """
    scores, ids = at_least_float32(logits.flatten(0, 1)), target_ids.flatten()  # (N, V), (N,)
    true_scores = scores.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    log_sums = scores.logsumexp(-1)  # log-probabilities are scores minus these
    is_padding = ids == labels.pad_id
    objective, likelihood = (
        (log_sums - label_scores).masked_fill(is_padding, 0.0).sum()
        for label_scores in (labels.mean_of(scores, true_scores), true_scores)
    )
    return LossSums(objective, likelihood.detach())


def symmetric_divergence(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
    """KL(P || Q) + KL(Q || P) of softmax(logits) and softmax(other_logits), summed over real positions, in nats.

    Args:
        logits: (B, T, V).
        other_logits: (B, T, V).
        is_real: (B, T) bool, True where there is a target token.

    Returns:
        (), in float32 at least.

    Source: Kullback and Leibler 1951, equation 2.6.
    """
    log_p, log_q = (at_least_float32(one).log_softmax(-1) for one in (logits, other_logits))
    divergences = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)  # (B, T)
    return divergences.masked_fill(~is_real, 0.0).sum()


def divergence(logits: Tensor, other_logits: Tensor, is_real: Tensor) -> Tensor:
    """KL(P || Q) of softmax(logits) and softmax(other_logits), summed over real positions, in nats; arguments as of `symmetric_divergence`."""
    log_p, log_q = (at_least_float32(one).log_softmax(-1) for one in (logits, other_logits))
    divergences = (log_p.exp() * (log_p - log_q)).sum(-1)  # (B, T)
    return divergences.masked_fill(~is_real, 0.0).sum()


def alignment_loss(weights: Tensor, alignment: Tensor) -> Tensor:
    """The cross-entropy between given word alignments and attention, summed over the target positions that have a link, in nats.

    The given distribution of a target position is uniform over the source positions that it is linked to.

    Args:
        weights: (B, T, S), of which each row sums to 1.
        alignment: (B, T, S) bool, True where a target position is linked to a source position.

    Returns:
        (), in float32 at least.

    Source: Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation", section 3; Garg et al.
        2019, "Jointly Learning to Align and Translate with Transformer Models", equation 5.
    """
    wide = at_least_float32(weights)
    links = alignment.to(wide.dtype)
    shares = links / links.sum(-1, keepdim=True).clamp(min=1.0)
    # A weight may round to zero, whose logarithm would make the loss infinite.
    return -(shares * (wide + _SMALLEST_WEIGHT).log()).sum()


_SMALLEST_WEIGHT = 1e-6


def likelihood_loss(
    output: nn.Linear,
    decoded: Tensor,
    target_ids: Tensor,
    labels: SmoothedLabels,
    *,
    sum_loss: SumLoss = sum_loss,
) -> LossSums:
    """The loss of what the output layer makes of the decoder's output, (B, T, D)."""
    return sum_loss(output(decoded), target_ids, labels)


def r_drop_loss(
    output: nn.Linear,
    decoded: Tensor,
    target_ids: Tensor,
    labels: SmoothedLabels,
    alpha: float,
    *,
    sum_loss: SumLoss = sum_loss,
    divergence: Divergence = symmetric_divergence,
) -> LossSums:
    """Two predictions P and Q of each target: L(P) + L(Q) + alpha / 2 (KL(P || Q) + KL(Q || P)).

    Args:
        output: the output layer.
        decoded: (2 B, T, D), what it reads: the rows of P before those of Q.
        target_ids: (B, T) int64.
        labels: as in `sum_loss`.
        alpha: of R-Drop.

    Returns:
        The objective, and the mean of both negative log-likelihoods.

    Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", equations 2 to 4.
    """
    logits = output(decoded)  # (2 B, T, V)
    p, q = logits.chunk(2)
    both = sum_loss(logits, torch.cat([target_ids, target_ids]), labels)
    distance = divergence(p, q, target_ids != labels.pad_id)
    return LossSums(both.objective + 0.5 * alpha * distance, 0.5 * both.negative_log_likelihood)


def simcut_loss(
    output: nn.Linear,
    decoded: Tensor,
    target_ids: Tensor,
    labels: SmoothedLabels,
    weight: float,
    *,
    sum_loss: SumLoss = sum_loss,
    divergence: Divergence = divergence,
) -> LossSums:
    """A prediction P of each target, and Q of its cut copy: L(P) + weight KL(P || Q); the gradient goes through both.

    Args:
        output: the output layer.
        decoded: (2 B, T, D), what it reads: the rows of P before those of Q.
        target_ids: (B, T) int64.
        labels: as in `sum_loss`.
        weight: alpha of the paper.

    Returns:
        The objective, and the negative log-likelihood of P.

    Source: Gao et al. 2022, "Bi-SimCut: A Simple Strategy for Boosting Neural Machine Translation", section 3.
    """
    p, q = output(decoded).chunk(2)
    whole = sum_loss(p, target_ids, labels)
    distance = divergence(p, q, target_ids != labels.pad_id)
    return whole._replace(objective=whole.objective + weight * distance)
