"""The batches of one update after the other, prepared by a thread ahead of time, and resumable."""

import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Self

from transformer_cli.data.batches.batch import Batch, collate
from transformer_cli.data.batches.encoded import EncodedPairs
from transformer_cli.data.batches.order import EpochOrder, Indices
from transformer_cli.text.sequence_format import SequenceFormat
from transformer_cli.text.tokenizer import Tokenizer

UPDATES_AHEAD = 4


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
        sequence_format: what the decoder reads.
        pin_memory: for a GPU.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        order: EpochOrder,
        *,
        accumulate: int = 1,
        position: Sequence[int] = (0, 0),
        sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
        pin_memory: bool = False,
    ) -> None:
        if not order.num_pairs():
            raise ValueError("there is no pair to make batches of")
        self._order = order
        self._collator = _Collator(pairs, order, accumulate, sequence_format, pin_memory)
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
    sequence_format: SequenceFormat
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
            sos_id=Tokenizer.sos_id,
            pad_id=Tokenizer.pad_id,
            sequence_format=self.sequence_format,
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
