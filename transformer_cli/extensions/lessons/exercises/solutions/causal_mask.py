"""The causal mask: a target position may see itself and the positions before it.

In training, the decoder reads the whole target sentence at once. Without this mask, a position could read the token
that it must predict. In every mask of these exercises, True means "may be seen".

Paper: section 3.2.3, third item. In tfm: `model/layers.py`.
"""

import torch
from torch import Tensor


def causal_mask(num_positions: int) -> Tensor:
    """The mask of the decoder's self-attention, for one sentence.

        mask[i, j] = True if j <= i, else False

    Row i belongs to the position that attends. Column j belongs to the position that is attended to.

    Args:
        num_positions: T, the number of target positions.

    Returns:
        (T, T) bool, True where position i may see position j.
    """
    return torch.ones(num_positions, num_positions, dtype=torch.bool).tril()
