"""The batches of each optimizer update, prepared by a thread; resumable at any update."""

import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from transformer_cli.data.batches.batch import Batch, collate_padded
from transformer_cli.data.batches.encoded import EncodedCorpus
from transformer_cli.data.batches.grouping import UpdateSize, estimated_updates, update_batches
from transformer_cli.data.batches.order import EpochOrder, Indices
from transformer_cli.data.batches.resampled import ResampledPairs
from transformer_cli.text import SequenceFormat, Tokenizer

UPDATES_AHEAD = 4
Item = TypeVar("Item")


class Position(NamedTuple):
    """A place in the training data: completed epochs, and batches used of the current epoch."""

    epoch: int = 0
    batch: int = 0

    def numbers(self) -> list[int]:
        """All numbers in one list."""
        return [*self]


class Share(NamedTuple):
    """The part of each update that one of several processes does."""

    rank: int = 0
    num_processes: int = 1

    def of(self, micro_batches: Sequence[Indices]) -> list[tuple[int, Indices]]:
        """The micro-batches of this process, each with its number in the update."""
        return list(enumerate(micro_batches))[self.rank :: self.num_processes]

    def collated(
        self, micro_batches: Sequence[Indices], collate: Callable[[Indices], Batch]
    ) -> list[Batch]:
        """The batches of this process, and batches without targets until it has as many as the process that has the most.

        Processes that share one model in shards must all call each layer equally often: each call gathers its weights.
        """
        own = [
            replace(collate(indices), number=number) for number, indices in self.of(micro_batches)
        ]
        num_missing = -(-len(micro_batches) // self.num_processes) - len(own)
        return own + [collate(micro_batches[0]).without_targets()] * num_missing


class StreamPosition(NamedTuple):
    """A place in training data that are streamed; `batch` counts within a buffer."""

    epoch: int
    batch: int
    stream: tuple[int, ...]
    """The number of the buffer, and where it begins in each corpus; empty: the epoch begins here."""

    @classmethod
    def of(cls, numbers: Sequence[int]) -> "StreamPosition":
        """From the numbers of `numbers()`."""
        epoch, batch, *stream = numbers
        return cls(epoch, batch, tuple(stream))

    def numbers(self) -> list[int]:
        """All numbers in one list."""
        return [self.epoch, self.batch, *self.stream]

    def known_to_all(self, maxima: Callable[..., Sequence[int]]) -> "StreamPosition":
        """The position in all parts of a stream, of which each process knows its own and has zeros for the others.

        Args:
            maxima: gives the largest value of each number, of all processes.
        """
        return self.of(maxima(*self.numbers()))


AnyPosition = Position | StreamPosition


class BatchStream(Protocol):
    """Makes the updates in the thread: from a stored corpus, or from one that is streamed."""

    @property
    def order(self) -> EpochOrder:
        """The order of the stored pairs."""

    @property
    def size(self) -> UpdateSize:
        """How many batches make an update."""

    def shared(self, share: Share) -> Self:
        """The same updates, but only the batches of one of several processes."""

    def updates(self, start: AnyPosition) -> Iterator[tuple[list[Batch], AnyPosition]]:
        """Each update after a position, with the position after it."""


class Updates(Iterator[list[Batch]]):
    """An endless iterator over the batches of each optimizer update, prepared by a thread.

    The last update of an epoch may have fewer batches than the others. An iterator started at
    the `position` of an earlier one continues exactly where that one stopped.

    Args:
        pairs: the training split as token ids; perhaps with subwords that are sampled in each epoch.
        order: the pairs of each batch.
        size: how many batches make an update (gradient accumulation), over all processes.
        position: completed epochs, and batches used of the current epoch.
        sequence_format: how decoder input ids are made from target ids.
        pin_memory: put batches in pinned memory, from which copies to a GPU are fast.
    """

    def __init__(
        self,
        pairs: EncodedCorpus | ResampledPairs,
        order: EpochOrder,
        *,
        size: UpdateSize = UpdateSize(),  # noqa: B008 - immutable
        position: AnyPosition | tuple[int, int] = (0, 0),
        sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
        pin_memory: bool = False,
    ) -> None:
        if not order.num_pairs():
            raise ValueError("there is no pair to make batches from")
        self._stream: BatchStream = _Collator(pairs, order, size, sequence_format, pin_memory)
        self._position: AnyPosition = Position(position[0], position[1])
        self._prefetcher: Prefetcher[tuple[list[Batch], AnyPosition]] | None = None

    def shared(self, share: Share) -> Self:
        """These updates, but only the batches that one of several processes does.

        Where the batches of an update cannot be shared out equally, some processes get a batch without targets,
        so that all processes do the same steps.
        """
        self._stream = self._stream.shared(share)
        return self

    @property
    def position(self) -> AnyPosition:
        """The position after the last returned update; prepared updates do not count."""
        return self._position

    @property
    def num_updates(self) -> int:
        """Number of updates of the current epoch; counting them takes as long as planning the epoch.

        Where subwords are sampled it is estimated: counting would sample the whole corpus.
        """
        order, size, epoch = self.order, self._stream.size, self._position.epoch
        if order.sampled_lengths is not None:
            return estimated_updates(order, size, epoch)
        return sum(1 for _ in update_batches(order, size, epoch))

    @property
    def order(self) -> EpochOrder:
        """The batches of every epoch."""
        return self._stream.order

    def __next__(self) -> list[Batch]:
        if self._prefetcher is None:
            self._prefetcher = Prefetcher(self._stream.updates(self._position))
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

    pairs: EncodedCorpus | ResampledPairs
    order: EpochOrder
    size: UpdateSize
    sequence_format: SequenceFormat
    pin_memory: bool
    share: Share = Share()  # noqa: RUF009 - frozen

    def shared(self, share: Share) -> Self:
        return replace(self, share=share)

    def updates(self, start: AnyPosition) -> Iterator[tuple[list[Batch], AnyPosition]]:
        """Each update with the position after it."""
        epoch, done = start.epoch, start.batch
        while True:
            groups = update_batches(self.order, self.size, epoch, first=done)
            for group, next_group in pairwise(chain(groups, [None])):
                assert group is not None
                done += len(group)
                position = Position(epoch, done) if next_group else Position(epoch + 1, 0)
                yield self.share.collated(group, partial(self._collate, epoch)), position
            epoch, done = epoch + 1, 0

    def _collate(self, epoch: int, indices: Indices) -> Batch:
        if isinstance(self.pairs, ResampledPairs):
            source, target = self.pairs.padded(epoch, indices, Tokenizer.pad_id)
        else:
            source, target = self.pairs.padded(indices, Tokenizer.pad_id)
        batch = collate_padded(
            source,
            target,
            sos_id=Tokenizer.sos_id,
            pad_id=Tokenizer.pad_id,
            sequence_format=self.sequence_format,
        )
        return batch.pin_memory() if self.pin_memory else batch


class Prefetcher(Iterator[Item]):
    """Reads items from an iterator in a thread, a few in advance, and returns them in order."""

    def __init__(self, items: Iterator[Item], *, ahead: int = UPDATES_AHEAD) -> None:
        self._queue: queue.Queue[Item | BaseException] = queue.Queue(ahead)
        self._is_stopped = threading.Event()
        arguments = (items, self._queue, self._is_stopped)
        self._thread = threading.Thread(target=_fill, args=arguments, name="batches", daemon=True)
        self._thread.start()
        weakref.finalize(self, self._is_stopped.set)

    def __next__(self) -> Item:
        item = self._queue.get()
        if isinstance(item, BaseException):
            self._queue.put(item)  # the next call must raise it too
            raise item
        return item

    def close(self) -> None:
        self._is_stopped.set()
        self._thread.join()


def _fill(items: Iterator[Any], waiting: queue.Queue[Any], is_stopped: threading.Event) -> None:
    """The thread's function; it does not refer to `Prefetcher`, so garbage collection of `Prefetcher` stops it."""
    try:
        for item in items:
            _put(item, waiting, is_stopped)
            if is_stopped.is_set():
                return
    except BaseException as error:  # the thread that reads the queue raises it
        _put(error, waiting, is_stopped)


def _put(item: Any, waiting: queue.Queue[Any], is_stopped: threading.Event) -> None:
    while not is_stopped.is_set():
        with suppress(queue.Full):
            return waiting.put(item, timeout=0.1)
