"""Greedy search: the most probable token at every step.

Paper: section 3 (the decoder reads the tokens that it has generated). In tfm: `decoding/search/single_path.py`.
"""

from collections.abc import Callable

from torch import Tensor


def greedy_search(
    next_log_probs: Callable[[list[int]], Tensor], bos_id: int, eos_id: int, max_length: int
) -> list[int]:
    """The translation that greedy search finds.

        y_t = argmax over v of log p(v | BOS, y_1, ..., y_(t-1)), until y_t is EOS

    Args:
        next_log_probs: a function that stands for the model. It takes the list of all ids so far, which begins with
            `bos_id`, and returns (V,): the log-probability of each token of the vocabulary to be the next one.
        bos_id: the id of the token with which each target begins.
        eos_id: the id of the token with which each target ends.
        max_length: the search stops after this number of tokens, even if none of them was EOS.

    Returns:
        The ids in their order, without BOS and without EOS.
    """
    ids: list[int] = []
    while len(ids) < max_length:
        token = int(next_log_probs([bos_id, *ids]).argmax())
        if token == eos_id:
            break
        ids.append(token)
    return ids
