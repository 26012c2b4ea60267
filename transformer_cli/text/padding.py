"""Padding: token sequences of different lengths to one rectangular array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pad_ids(sequences: Sequence[Any], pad_id: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Pad every sequence at its end with `pad_id`, up to the length L of the longest.

    Args:
        sequences: B sequences of ids, each a list, a tuple or an array.
        pad_id: the id of [PAD].

    Returns:
        (B, L) ids, and (B, L) bool: True where there is a token, False where there is padding.
    """
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    is_real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(is_real.shape, pad_id, np.int64)
    ids[is_real] = np.concatenate(sequences, dtype=np.int64, casting="unsafe")
    return ids, is_real
