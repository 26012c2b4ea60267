"""Token ids to padded batches of bounded size, in an order that can be resumed."""

import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.data.encoded import EncodedPairs, PairList, TokenPair
from transformer_cli.data.order import Budget, EpochOrder, Indices
from transformer_cli.data.tokenizer import Tokenizer

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

    def halves(self) -> list["Batch"]:
        """The first and the second half of the sentences; of a single sentence, itself alone."""
        num_first = len(self.target_ids) // 2
        if not num_first:
            return [self]
        return [self._part(slice(num_first)), self._part(slice(num_first, None))]

    def _part(self, rows: slice) -> "Batch":
        part = self._map(lambda tensor: tensor[rows])
        return replace(
            part,
            num_source_tokens=int(part.source_mask.sum()),
            num_target_tokens=int((part.target_ids != part.pad_id).sum()),
        )

    def _map(self, function: Any) -> "Batch":
        values = [getattr(self, field.name) for field in fields(self)]
        return Batch(*(function(value) if isinstance(value, Tensor) else value for value in values))


def collate(
    pairs: Sequence[TokenPair], *, bos_id: int, pad_id: int, is_shifted: bool = True
) -> Batch:
    """A batch from at least one pair.

    Args:
        bos_id: what the decoder reads first.
        pad_id: what fills the ends of short sequences.
        is_shifted: the decoder reads each target token one place late; else in its own place.
    """
    source_ids, source_mask = _pad([pair.source_ids for pair in pairs], pad_id)
    target_ids, target_mask = _pad([pair.target_ids for pair in pairs], pad_id)
    decoder_input_ids = target_ids.copy()
    if is_shifted:
        decoder_input_ids[:, :1] = bos_id
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
        position: where to start.
        is_shifted: as in `collate`.
        pin_memory: for a GPU.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        order: EpochOrder,
        *,
        accumulate: int = 1,
        position: Sequence[int] = (0, 0),
        is_shifted: bool = True,
        pin_memory: bool = False,
    ) -> None:
        if not order.num_pairs():
            raise ValueError("there is no pair to make batches of")
        self._order = order
        self._collator = _Collator(pairs, order, accumulate, is_shifted, pin_memory)
        self._position = Position(*position)
        self._num_batches: tuple[int, int] | None = None
        self._ahead: _Ahead | None = None

    @property
    def position(self) -> Position:
        """After what has been handed out; what the thread has prepared beyond does not count."""
        return self._position

    @property
    def epoch(self) -> int:
        """How many epochs have been handed out in full."""
        return self._position.epoch

    @property
    def num_batches(self) -> int:
        """Batches of the epoch that `position` lies in."""
        if self._num_batches is None or self._num_batches[0] != self.epoch:
            self._num_batches = (self.epoch, self._order.num_batches(self.epoch))
        return self._num_batches[1]

    def __next__(self) -> list[Batch]:
        if self._ahead is None:
            self._ahead = _Ahead(self._collator.updates(self._position), UPDATES_AHEAD)
        update, self._position = next(self._ahead)
        return update

    def close(self) -> None:
        """End the thread; the next update starts another one at `position`."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Collator:
    """Makes the updates; the thread holds this, and not what it works for."""

    pairs: EncodedPairs
    order: EpochOrder
    accumulate: int
    is_shifted: bool
    pin_memory: bool

    def updates(self, start: Position) -> Iterator[tuple[list[Batch], Position]]:
        """Each update with the position after it."""
        epoch, done = start
        while True:
            batches = self.order.batches(epoch, first=done)
            group = list(islice(batches, self.accumulate))
            while group:
                next_group = list(islice(batches, self.accumulate))
                done += len(group)
                position = Position(epoch, done) if next_group else Position(epoch + 1, 0)
                yield [self._collate(indices) for indices in group], position
                group = next_group
            epoch, done = epoch + 1, 0

    def _collate(self, indices: Indices) -> Batch:
        pairs = [self.pairs[index] for index in indices.tolist()]
        batch = collate(
            pairs,
            bos_id=Tokenizer.bos_id,
            pad_id=Tokenizer.pad_id,
            is_shifted=self.is_shifted,
        )
        return batch.pin_memory() if self.pin_memory else batch


class _Ahead(Iterator[tuple[list[Batch], Position]]):
    """Takes items from an iterator in a thread, a few ahead of their use, in the same order."""

    def __init__(self, items: Iterator[tuple[list[Batch], Position]], num_ahead: int) -> None:
        self._queue: _Queue = queue.Queue(num_ahead)
        self._is_stopped = threading.Event()
        arguments = (items, self._queue, self._is_stopped)
        self._thread = threading.Thread(target=_fill, args=arguments, name="batches", daemon=True)
        self._thread.start()
        weakref.finalize(self, self._is_stopped.set)

    def __next__(self) -> tuple[list[Batch], Position]:
        item = self._queue.get()
        if isinstance(item, BaseException):
            self._queue.put(item)  # and for whoever asks again
            raise item
        return item

    def close(self) -> None:
        self._is_stopped.set()
        self._thread.join()


_Queue = queue.Queue[tuple[list[Batch], Position] | BaseException]


def _fill(items: Iterator[Any], waiting: _Queue, is_stopped: threading.Event) -> None:
    """What the thread does; it holds no reference to its owner, so that it ends with it."""
    try:
        for item in items:
            _put(item, waiting, is_stopped)
            if is_stopped.is_set():
                return
    except BaseException as error:  # handed over to the thread that waits for items
        _put(error, waiting, is_stopped)


def _put(item: Any, waiting: _Queue, is_stopped: threading.Event) -> None:
    while not is_stopped.is_set():
        try:
            return waiting.put(item, timeout=0.1)
        except queue.Full:
            continue


def _pad(sequences: Sequence[Any], pad_id: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(B, L) ids and where they are real."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    is_real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(is_real.shape, pad_id, np.int64)
    ids[is_real] = np.concatenate(sequences, dtype=np.int64, casting="unsafe")
    return ids, is_real
