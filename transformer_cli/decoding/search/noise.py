"""Random numbers without a generator: each number is a function of its seed.

So the random numbers of a hypothesis do not depend on the other rows of its batch, or on their order.

Source: SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"), with the mixing function
that Stafford published as variant 13.
"""

import torch
from torch import Tensor

# As signed numbers of 64 bits: PyTorch's integers have a sign, and their products wrap around.
_GAMMA = 0x9E3779B97F4A7C15 - 2**64
_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def substream(seeds: Tensor, numbers: Tensor) -> Tensor:
    """The seed of the stream with this number below each seed; all int64, of shapes that broadcast."""
    return _mixed(seeds + (numbers + 1) * _GAMMA)


def uniform_numbers(seeds: Tensor, dtype: torch.dtype) -> Tensor:
    """(R,) int64 seeds to (R,) independent numbers, uniform between 0 and 1."""
    return (_shifted(_mixed(seeds), 11).to(dtype) + 0.5) * 2.0**-53


def _mixed(numbers: Tensor) -> Tensor:
    """Numbers of 64 bits, each of whose bits depends on all bits of the old number."""
    numbers = (numbers ^ _shifted(numbers, 30)) * _FACTORS[0]
    numbers = (numbers ^ _shifted(numbers, 27)) * _FACTORS[1]
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, places: int) -> Tensor:
    """A shift to the right that fills with zeros, not with copies of the sign."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)
