"""Scaled dot-product attention: each query gets a weighted mean of the values.

Paper: section 3.2.1, equation 1. In tfm: `model/layers.py`.
"""

import math

import torch
from torch import Tensor


def attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Scaled dot-product attention for all sentences and heads at once.

        attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V

    The softmax is over the keys, so that the weights of one query have the sum 1. A key that the mask hides gets the
    weight 0, and the other weights still have the sum 1.

    Args:
        queries: (B, H, Q, d_k): B sentences, H heads, Q query positions, width d_k.
        keys: (B, H, C, d_k): C context positions.
        values: (B, H, C, d_k).
        mask: bool, of a shape that broadcasts to (B, H, Q, C), such as (Q, C); True where a query may see a key.
            Each query may see at least one key.

    Returns:
        (B, H, Q, d_k).
    """
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.size(-1))  # (B, H, Q, C)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights @ values
