"""Random numbers without a generator: each number is a function of a seed, a step and a token.

So the random numbers of a hypothesis do not depend on the other rows of its batch, or on their order.

Source: the mixing function is the one of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
generators", figure 16 and the variant 13 of Stafford).
"""

import torch
from torch import Tensor

# As signed numbers of 64 bits: PyTorch's integers have a sign, and their products wrap around.
_GAMMA = 0x9E3779B97F4A7C15 - 2**64
_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def substream(seeds: Tensor, numbers: Tensor) -> Tensor:
    """The seed of the stream with this number below each seed; all int64, of shapes that broadcast."""
    return _mixed(seeds + (numbers + 1) * _GAMMA)


def gumbel_noise(seeds: Tensor, token_ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Independent numbers of the standard Gumbel distribution.

    Args:
        seeds: (R,) int64.
        token_ids: (R, C) or (1, C) int64: a number is a function of the seed of its row and the token id alone.
        dtype: of the result; a floating-point type.

    Returns:
        (R, C).
    """
    bits = substream(seeds.unsqueeze(1), token_ids)
    uniform = (_shifted(bits, 11).to(dtype) + 0.5) * 2.0**-53
    # Rounding may make it 1, whose noise would be infinite.
    uniform = uniform.clamp(max=1.0 - torch.finfo(dtype).eps)
    # The largest noise comes from the smallest uniform numbers, which floating point resolves best.
    return -(-(-uniform).log1p()).log()


def _mixed(numbers: Tensor) -> Tensor:
    """Numbers of 64 bits, each of whose bits depends on all bits of the old number."""
    numbers = (numbers ^ _shifted(numbers, 30)) * _FACTORS[0]
    numbers = (numbers ^ _shifted(numbers, 27)) * _FACTORS[1]
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, places: int) -> Tensor:
    """A shift to the right that fills with zeros, not with copies of the sign."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)
