"""Token ids to padded batches of bounded size, in an order that can be resumed."""

import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.data.encoded import EncodedPairs, PairList, TokenPair
from transformer_cli.data.order import Budget, EpochOrder

__all__ = ["Batch", "Budget", "PairList", "Position", "TokenPair", "Updates", "collate"]

UPDATES_AHEAD = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs, padded at the end to the longest of their side."""

    source_ids: Tensor  # (B, S) int64
    source_mask: Tensor  # (B, S) bool, True where there is a token
    decoder_input_ids: Tensor  # (B, T) int64, begins with [SOS]
    target_ids: Tensor  # (B, T) int64, ends with [EOS]
    num_source_tokens: int  # padding excluded
    num_target_tokens: int  # padding excluded
    pad_id: int

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "Batch":
        """The same batch on a device."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "Batch":
        """The same batch where a GPU can fetch it by itself."""
        return self._map(Tensor.pin_memory)

    def _map(self, function: Any) -> "Batch":
        values = [getattr(self, field.name) for field in fields(self)]
        return Batch(*(function(value) if isinstance(value, Tensor) else value for value in values))


def collate(pairs: Sequence[TokenPair], *, bos_id: int, pad_id: int) -> Batch:
    """A batch from at least one pair."""
    source_ids, source_mask = _pad([pair.source_ids for pair in pairs], pad_id)
    target_ids, target_mask = _pad([pair.target_ids for pair in pairs], pad_id)
    decoder_input_ids = np.full_like(target_ids, bos_id)
    decoder_input_ids[:, 1:] = target_ids[:, :-1]
    decoder_input_ids[~target_mask] = pad_id
    return Batch(
        source_ids=torch.from_numpy(source_ids),
        source_mask=torch.from_numpy(source_mask),
        decoder_input_ids=torch.from_numpy(decoder_input_ids),
        target_ids=torch.from_numpy(target_ids),
        num_source_tokens=int(source_mask.sum()),
        num_target_tokens=int(target_mask.sum()),
        pad_id=pad_id,
    )


class Position(NamedTuple):
    """How far training has come: whole epochs, and batches of the epoch under way."""

    epoch: int = 0
    batch: int = 0


class Updates(Iterator[list[Batch]]):
    """The batches of one update after the other, for ever; prepared by a thread, ahead of time.

    An update has `accumulate` batches, the last one of an epoch perhaps fewer. Starting at the
    `position` that an earlier iterator had gives exactly what that one would have given next.

    Args:
        pairs: the training split as ids.
        order: which pairs form which batch.
        accumulate: batches of one update.
        bos_id, pad_id: what decoder inputs begin with, and what fills up short rows.
        position: where to start.
        pin_memory: for a GPU.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        order: EpochOrder,
        *,
        bos_id: int,
        pad_id: int,
        accumulate: int = 1,
        position: Position = Position(),  # noqa: B008
        pin_memory: bool = False,
    ) -> None:
        self._order = order
        self.position = Position(*position)
        """Of what has been handed out, not of what the thread has prepared."""
        self._batches_of_epoch: tuple[int, int] | None = None
