"""The batches of each optimizer update, prepared by a thread; resumable at any update."""

import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Self

from transformer_cli.data.batches.batch import Batch, collate
from transformer_cli.data.batches.encoded import EncodedCorpus
from transformer_cli.data.batches.order import EpochOrder, Indices
from transformer_cli.text import SequenceFormat, Tokenizer

UPDATES_AHEAD = 4


class Position(NamedTuple):
    """A place in the training data: completed epochs, and batches used of the current epoch."""

    epoch: int = 0
    batch: int = 0


class Updates(Iterator[list[Batch]]):
    """An endless iterator over the batches of each optimizer update, prepared by a thread.

    An update has `accumulate` batches; the last update of an epoch may have fewer. An iterator started at
    the `position` of an earlier one continues exactly where that one stopped.

    Args:
        pairs: the training split as token ids.
        order: the pairs of each batch.
        accumulate: batches per update (gradient accumulation).
        position: completed epochs, and batches used of the current epoch.
        sequence_format: how decoder input ids are made from target ids.
        pin_memory: put batches in pinned memory, from which copies to a GPU are fast.
    """

    def __init__(
        self,
        pairs: EncodedCorpus,
        order: EpochOrder,
        *,
        accumulate: int = 1,
        position: Sequence[int] = (0, 0),
        sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
        pin_memory: bool = False,
    ) -> None:
        if not order.num_pairs():
            raise ValueError("there is no pair to make batches from")
        self._collator = _Collator(pairs, order, accumulate, sequence_format, pin_memory)
        self._position = Position(*position)
        self._prefetcher: _Prefetcher | None = None

    @property
    def position(self) -> Position:
        """The position after the last returned update; prepared updates do not count."""
        return self._position

    @property
    def num_batches(self) -> int:
        """Number of batches of the current epoch; counting them takes as long as planning the epoch."""
        return sum(1 for _ in self._collator.order.batches(self._position.epoch))

    def __next__(self) -> list[Batch]:
        if self._prefetcher is None:
            self._prefetcher = _Prefetcher(self._collator.updates(self._position))
        update, self._position = next(self._prefetcher)
        return update

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread; the next update starts a new thread at `position`."""
        if self._prefetcher is not None:
            self._prefetcher.close()
            self._prefetcher = None


@dataclass(frozen=True, slots=True)
class _Collator:
    """Makes the updates; the thread refers to this object only, so `Updates` can be garbage-collected."""

    pairs: EncodedCorpus
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


class _Prefetcher(Iterator[tuple[list[Batch], Position]]):
    """Reads items from an iterator in a thread, a few in advance, and returns them in order."""

    def __init__(self, items: Iterator[tuple[list[Batch], Position]]) -> None:
        self._queue: _Queue = queue.Queue(UPDATES_AHEAD)
        self._is_stopped = threading.Event()
        arguments = (items, self._queue, self._is_stopped)
        self._thread = threading.Thread(target=_fill, args=arguments, name="batches", daemon=True)
        self._thread.start()
        weakref.finalize(self, self._is_stopped.set)

    def __next__(self) -> tuple[list[Batch], Position]:
        item = self._queue.get()
        if isinstance(item, BaseException):
            self._queue.put(item)  # the next call must raise it too
            raise item
        return item

    def close(self) -> None:
        self._is_stopped.set()
        self._thread.join()


_Queue = queue.Queue[tuple[list[Batch], Position] | BaseException]


def _fill(items: Iterator[Any], waiting: _Queue, is_stopped: threading.Event) -> None:
    """The thread's function; it does not refer to `_Prefetcher`, so garbage collection of `_Prefetcher` stops it."""
    try:
        for item in items:
            _put(item, waiting, is_stopped)
            if is_stopped.is_set():
                return
    except BaseException as error:  # the thread that reads the queue raises it
        _put(error, waiting, is_stopped)


def _put(item: Any, waiting: _Queue, is_stopped: threading.Event) -> None:
    while not is_stopped.is_set():
        with suppress(queue.Full):
            return waiting.put(item, timeout=0.1)
