"""The loss: cross-entropy with label smoothing, as a mean over the real tokens of a batch.

A label without smoothing says that the true token has the probability 1. A smoothed label gives the share epsilon of
the probability to all V tokens of the vocabulary, in equal parts. The true token is one of the V tokens, so it gets a
part, too.

Paper: section 5.4. In tfm: `model/loss.py`.
"""

from torch import Tensor


def smoothed_loss(logits: Tensor, target_ids: Tensor, pad_id: int, epsilon: float) -> Tensor:
    """The mean cross-entropy of the real tokens, with smoothed labels, in nats.

        loss(token) = - sum over v of label[v] * log softmax(logits)[v]
        label[v]    = 1 - epsilon + epsilon / V   if v is the true token
                      epsilon / V                 otherwise

    A sentence that is shorter than the longest one of its batch is filled with `pad_id`. These positions are not
    real tokens. They add nothing to the sum, and they are not counted. Each real token of the batch has the same
    weight, in a short sentence and in a long one.

    Args:
        logits: (B, T, V): B sentences, T target positions, V tokens in the vocabulary.
        target_ids: (B, T) int64, the true tokens; `pad_id` where there is none.
        pad_id: the id of the padding.
        epsilon: the smoothed share of the probability, 0 to 1.

    Returns:
        (), the sum of the losses of the real tokens, divided by their number.
    """
    log_probs = logits.log_softmax(-1)  # (B, T, V)
    true_log_probs = log_probs.gather(-1, target_ids.unsqueeze(-1)).squeeze(-1)  # (B, T)
    losses = -(1 - epsilon) * true_log_probs - epsilon * log_probs.mean(-1)
    is_real = target_ids != pad_id
    return losses[is_real].sum() / is_real.sum()
