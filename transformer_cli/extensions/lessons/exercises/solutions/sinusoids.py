"""Sinusoidal positions: a vector for each position, made of sines and cosines.

Attention alone does not know the order of the tokens. The model adds these vectors to the embeddings.

Paper: section 3.5. In tfm: `model/layers.py`.
"""

import torch
from torch import Tensor


def sinusoids(num_positions: int, d_model: int) -> Tensor:
    """The table of sinusoidal positions.

        table[p, 2i]     = sin(p / 10000^(2i / D))
        table[p, 2i + 1] = cos(p / 10000^(2i / D))

    for positions p = 0, 1, ..., T - 1 and pairs of columns i = 0, 1, ..., D/2 - 1.

    Args:
        num_positions: T.
        d_model: D, an even number.

    Returns:
        (T, D) float32.
    """
    positions = torch.arange(num_positions, dtype=torch.float64).unsqueeze(1)  # (T, 1)
    columns = torch.arange(0, d_model, 2, dtype=torch.float64)  # (D/2,): the numbers 2i
    angles = positions / 10000.0 ** (columns / d_model)  # (T, D/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1).float()
