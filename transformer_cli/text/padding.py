"""Padding: sequences of different lengths to one rectangular array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Padded = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""(B, L) ids, and (B, L) bool: True where there is a token, False where there is padding."""


def pad_ids(sequences: Sequence[Any], pad_id: int) -> Padded:
    """Pad every sequence at its end with `pad_id`, up to the length L of the longest.

    Args:
        sequences: B sequences of ids, each a list, a tuple or an array.
        pad_id: the id of [PAD].
    """
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    is_real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(is_real.shape, pad_id, np.int64)
    ids[is_real] = np.concatenate(sequences, dtype=np.int64, casting="unsafe")
    return ids, is_real


def gather_padded(
    ids: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64], pad_id: int
) -> Padded:
    """Pad B sequences that are slices of one long array; the result is that of `pad_ids`.

    Args:
        ids: the array; only the parts with these sequences are read.
        starts: (B,) the place of the first id of each sequence.
        lengths: (B,) the number of ids of each sequence.
        pad_id: the id of [PAD].
    """
    columns = np.arange(lengths.max())
    is_real = columns < lengths[:, None]
    gathered = np.full(is_real.shape, pad_id, np.int64)
    gathered[is_real] = ids[(starts[:, None] + columns)[is_real]]
    return gathered, is_real
