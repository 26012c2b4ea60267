"""The token ids of several texts in one array."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transformer_cli.text.padding import Padded, gather_padded


class IdLists(NamedTuple):
    """Lists of ids, one after the other."""

    ids: NDArray[np.uint32]
    """The ids of all lists, one list after the other."""
    lengths: NDArray[np.int64]
    """The number of ids of each list."""

    @classmethod
    def from_bytes(cls, lists: Sequence[bytes]) -> Self:
        """From lists of which each is given as the bytes of its ids (uint32)."""
        num_bytes = np.fromiter(map(len, lists), np.int64, len(lists))
        return cls(np.frombuffer(b"".join(lists), np.uint32), num_bytes // 4)

    @classmethod
    def of(cls, lists: Sequence[Any]) -> Self:
        """From lists, tuples or arrays of ids."""
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        empty = np.empty(0, np.uint32)
        return cls(np.concatenate([empty, *lists], dtype=np.uint32, casting="unsafe"), lengths)

    def with_first(self, first: NDArray[np.uint32], has_first: NDArray[np.bool_]) -> Self:
        """With an id before each list where `has_first` is True; the other values of `first` are not used."""
        places, added = self.starts[has_first], first[has_first]
        return type(self)(np.insert(self.ids, places, added), self.lengths + has_first)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The place in `ids` where each list begins."""
        return np.cumsum(self.lengths) - self.lengths

    def padded(self, indices: NDArray[np.int64], pad_id: int) -> Padded:
        """The lists at these indices."""
        return gather_padded(self.ids, self.starts[indices], self.lengths[indices], pad_id)

    def select(self, is_kept: NDArray[np.bool_]) -> Self:
        """Only the lists where `is_kept`, one bool for each list, is True."""
        if is_kept.all():
            return self
        return type(self)(self.ids[np.repeat(is_kept, self.lengths)], self.lengths[is_kept])
