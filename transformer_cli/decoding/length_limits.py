"""How long a translation may be: the smallest and the largest number of its tokens, given its source."""

import math
from typing import NamedTuple

from transformer_cli.config import DecodingConfig


class LengthLimits(NamedTuple):
    """Numbers of tokens, [EOS] included; `smallest` is never above `largest`."""

    smallest: int
    largest: int


def length_limits(
    source_length: int,
    options: DecodingConfig,
    *,
    prefix_length: int = 0,
    most: int | None = None,
) -> LengthLimits:
    """The limits of the translation of one source.

    Args:
        source_length: the number of tokens of the source, as the model reads it.
        options: the limits of the config; a forced prefix does not count.
        prefix_length: the number of tokens of the forced prefix.
        most: the largest number of tokens that the model can decode; None: any number.
    """
    upper = [] if options.max_length is None else [options.max_length]
    if options.max_length_ratio is not None:
        upper.append(max(1, math.floor(options.max_length_ratio * source_length)))
    if not upper:
        upper.append(2 * source_length + 20)
    largest = min(upper) + prefix_length
    if most is not None:
        largest = min(largest, most)
    smallest = options.min_length or 1
    if options.min_length_ratio is not None:
        smallest = max(smallest, math.ceil(options.min_length_ratio * source_length))
    return LengthLimits(min(smallest + prefix_length, largest), largest)
