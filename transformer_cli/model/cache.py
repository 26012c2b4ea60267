"""The cache of a decoder layer: keys and values of the source and of the target so far."""

import torch
from torch import Tensor

from transformer_cli.model.attention import KeysValues

_ROOM = 16  # target positions by which a full buffer grows


class LayerCache:
    """Keys and values of one layer, for R rows."""

    def __init__(self, source: KeysValues) -> None:
        # Contiguous, because attention reads them at each step.
        self.source = source[0].contiguous(), source[1].contiguous()  # both (R, G, S, K)
        self._keys = self._values = source[0][:, :, :0]  # buffers, filled up to _length
        self._length = 0

    def extend_target(self, newest: KeysValues) -> KeysValues:
        """Append the keys and values of the newest position, (R, G, 1, K); returns all so far, (R, G, T, K)."""
        if self._length == self._keys.size(2):
            room = self._keys.new_empty(*self._keys.shape[:2], _ROOM, self._keys.size(3))
            self._keys = torch.cat([self._keys, room], dim=2)
            self._values = torch.cat([self._values, room], dim=2)
        self._keys[:, :, self._length] = newest[0][:, :, 0]
        self._values[:, :, self._length] = newest[1][:, :, 0]
        self._length += 1
        return self._keys[:, :, : self._length], self._values[:, :, : self._length]

    def select_target(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`, for the keys and values of the target."""
        self._keys, self._values = self._keys[rows], self._values[rows]

    def select_source(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`, for the keys and values of the source."""
        self.source = self.source[0][rows], self.source[1][rows]
