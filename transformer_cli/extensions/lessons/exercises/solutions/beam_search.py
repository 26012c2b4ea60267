"""Beam search: several hypotheses are continued at every step, and the best finished one is the translation.

Paper: section 6.1 (beam size 4, alpha 0.6); the penalty is equation 14 of Wu et al. 2016.
In tfm: `decoding/search/beam.py`.
"""

from collections.abc import Callable

from torch import Tensor


def beam_search(
    next_log_probs: Callable[[list[int]], Tensor],
    bos_id: int,
    eos_id: int,
    beam_size: int,
    max_length: int,
    alpha: float,
) -> list[int]:
    """The translation that beam search finds.

    Begin with one open hypothesis that has no tokens, and the total 0. In each step:

    1. Continue each open hypothesis with each token of the vocabulary. The total of the continuation is the total of
       the hypothesis plus the log-probability of the token.
    2. Of all these continuations, keep the `beam_size` ones with the largest totals.
    3. A kept continuation that ends with EOS is finished: remember it, and do not continue it. The others are open.

    Stop when no hypothesis is open, or after `max_length` steps. The translation is the finished hypothesis with the
    largest score; if none is finished, the open hypothesis with the largest score.

        score = total / ((5 + length) / 6)^alpha

    where length is the number of tokens, with EOS and without BOS.

    Args:
        next_log_probs, bos_id, eos_id: as in greedy search.
        beam_size: the number of continuations that are kept in each step.
        max_length: the largest number of tokens, EOS included.
        alpha: the strength of the length normalisation; 0: none.

    Returns:
        The ids of the translation, without BOS and without EOS.
    """
    open_ones: list[tuple[list[int], float]] = [([], 0.0)]
    finished: list[tuple[list[int], float]] = []
    for _ in range(max_length):
        continuations = [
            ([*ids, token], total + log_prob)
            for ids, total in open_ones
            for token, log_prob in enumerate(next_log_probs([bos_id, *ids]).tolist())
        ]
        kept = sorted(continuations, key=lambda one: one[1], reverse=True)[:beam_size]
        finished += [one for one in kept if one[0][-1] == eos_id]
        open_ones = [one for one in kept if one[0][-1] != eos_id]
        if not open_ones:
            break
    best, _ = max(finished or open_ones, key=lambda one: one[1] / ((5 + len(one[0])) / 6) ** alpha)
    return [token for token in best if token != eos_id]
