"""The heads of multi-head attention: a vector of width D is cut into H parts, and joined again.

Head h has the columns h * K to (h + 1) * K - 1 of every position, where K = D / H. The heads stand before the
positions, so that one matrix product serves all heads.

Paper: section 3.2.2. In tfm: `model/layers.py`.
"""

from torch import Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the vector of each position into heads.

        result[b, h, t, k] = x[b, t, h * K + k], where K = D / H

    Args:
        x: (B, T, D): B sentences, T positions, width D.
        num_heads: H; it divides D.

    Returns:
        (B, H, T, K).
    """
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def join_heads(heads: Tensor) -> Tensor:
    """Join the heads of each position: the inverse of `split_heads`.

        result[b, t, h * K + k] = heads[b, h, t, k]

    Args:
        heads: (B, H, T, K).

    Returns:
        (B, T, D), where D = H * K.
    """
    return heads.transpose(1, 2).flatten(2)
