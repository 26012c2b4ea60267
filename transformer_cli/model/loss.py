"""How wrong the model is about a batch, as sums over its tokens."""

from typing import NamedTuple

from torch import Tensor

from transformer_cli.model.norms import at_least_float32


class LossSums(NamedTuple):
    """What training minimises and what people read, as sums in nats."""

    objective: Tensor  # () with smoothed labels
    negative_log_likelihood: Tensor  # () of the true tokens: perplexity = exp(sum / tokens)


def sum_loss(
    logits: Tensor, target_ids: Tensor, *, pad_id: int, label_smoothing: float
) -> LossSums:
    """Sum the cross-entropy over real tokens; the caller divides by a token count.

    Args:
        logits: (B, T, V).
        target_ids: (B, T), holding `pad_id` where there is no token.
        pad_id: its positions add nothing to either sum.
        label_smoothing: share of probability spread evenly over the vocabulary.

    Source: Vaswani et al. 2017, section 5.4; Szegedy et al. 2016.
    """
    log_probabilities = at_least_float32(logits).log_softmax(-1)
    is_real = target_ids != pad_id
    of_truth = log_probabilities.gather(-1, target_ids.unsqueeze(-1)).squeeze(-1)  # (B, T)
    likelihood = of_truth.masked_fill(~is_real, 0.0).sum()
    if label_smoothing == 0.0:
        return LossSums(-likelihood, -likelihood.detach())
    # The sum over the vocabulary and not its mean, whose gradient would fill a tensor of that size.
    of_all = log_probabilities.sum(-1).masked_fill(~is_real, 0.0).sum()
    share_of_each = label_smoothing / logits.size(-1)
    objective = -(1.0 - label_smoothing) * likelihood - share_of_each * of_all
    return LossSums(objective, -likelihood.detach())
