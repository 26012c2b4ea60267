"""The loss of a batch: cross-entropy with label smoothing, summed over its tokens."""

from typing import NamedTuple

from torch import Tensor

from transformer_cli.config.training import SmoothedOver
from transformer_cli.model.norms import at_least_float32


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
    log_probabilities = at_least_float32(logits).log_softmax(-1)
    is_real = target_ids != pad_id
    of_truth = log_probabilities.gather(-1, target_ids.unsqueeze(-1)).squeeze(-1)  # (B, T)
    likelihood = of_truth.masked_fill(~is_real, 0.0).sum()
    if label_smoothing == 0.0:
        return LossSums(-likelihood, -likelihood.detach())
    # `sum` and not `mean`: the backward pass of `mean` allocates one more (B, T, V) tensor.
    of_all = log_probabilities.sum(-1)  # (B, T)
    num_symbols = logits.size(-1)
    if smoothed_over == "others":
        of_all = of_all - of_truth - log_probabilities[..., pad_id]
        num_symbols -= 2
    share_of_each = label_smoothing / num_symbols
    spread = share_of_each * of_all.masked_fill(~is_real, 0.0).sum()
    return LossSums(-(1.0 - label_smoothing) * likelihood - spread, -likelihood.detach())
