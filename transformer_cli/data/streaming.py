"""The batches of each update of a corpus that is read while the model trains, for corpora that no disk holds.

The corpus is read in buffers. The pairs of a buffer are cleaned, encoded, shuffled, sorted by length and cut into
batches, as those of a pool of a stored corpus (order.py). A thread fills the next buffer while the batches of this one
are used. The place where a buffer begins in the corpus is part of the position, so that a resumed run reads the same
buffer again and goes on with the next batch. Duplicates are noticed inside a buffer only; held-out pairs everywhere.

With `data.stream_parts: n` the corpus has n parts with buffers of their own, and batch i of an update comes from part
i mod n. So the updates do not depend on the number of processes, but each process reads only the parts of its batches.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple

from transformer_cli.config import Config, FilesData, HubData
from transformer_cli.data.encoded import EncodedPairs, encode_short_pairs
from transformer_cli.data.order import Budget, EpochOrder, Indices, UpdateSize, update_batches
from transformer_cli.data.pairs import CleaningReport, SentencePair, rows_of_pairs
from transformer_cli.data.selection import all_held_out_pairs, clean, held_out_digests
from transformer_cli.data.sources.corpus import Place, StreamedCorpora, training_corpora
from transformer_cli.data.sources.local_files import CorpusPart
from transformer_cli.data.updates import (
    AnyPosition,
    Batch,
    Position,
    Prefetcher,
    Share,
    StreamPosition,
    Updates,
    collate_padded,
)
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.tokenizer import Tokenizers

logger = logging.getLogger(__name__)


def open_stream(
    config: Config,
    tokenizers: Tokenizers,
    order: EpochOrder,
    *,
    size: UpdateSize = UpdateSize(),  # noqa: B008 - immutable
    position: AnyPosition = Position(),  # noqa: B008 - immutable
    pin_memory: bool = False,
    share: Share = Share(),  # noqa: B008 - immutable
) -> Updates:
    """The updates for a config with `data.streaming`; the last update of a buffer may have fewer batches.

    Args:
        config: the corpora, the cleaning, the limits of a batch, and the seed.
        tokenizers: of source and target.
        order: that of the stored pairs, which are the first ones of the corpus; only for estimates.
        size: how many batches make an update, over all processes.
        position: that of an earlier iterator, which this one continues.
        pin_memory: put batches in pinned memory, from which copies to a GPU are fast.
        share: the part of each update that this process does.

    Raises:
        DataError: the position is not one of these corpora.
        ConfigError: the parts of the stream cannot be shared out.
    """
    assert isinstance(config.data, FilesData | HubData)
    stream = _Stream(config, config.data, tokenizers, order, size, pin_memory, share)
    stream.positions_at(position)  # an error about the position comes now, and not from the thread
    logger.info(
        "data.streaming: the number of pairs is not known, so the plan takes the first %s pairs, from which the tokenizers were learned, for an epoch",
        f"{order.num_pairs():,}",
    )
    _tell_of_shared_parts(config.data.stream_parts, share)
    return Updates(stream, position)


def require_shareable(data: FilesData | HubData, num_batches: int, num_processes: int) -> None:
    """Raise ConfigError if the parts of a stream cannot be shared out.

    Args:
        data: a data section with `streaming`.
        num_batches: of an update, over all processes.
        num_processes: which train together.
    """
    num_parts = data.stream_parts
    if num_parts > 1 and num_batches % num_parts:
        noun = "batch" if num_batches == 1 else "batches"
        raise ConfigError(
            f"data.stream_parts: an update has {num_batches} {noun} over all processes, and {num_parts} parts cannot give equally many",
            hint="choose training.accumulate so that training.accumulate times the number of processes is a multiple of data.stream_parts",
        )
    if num_parts % num_processes and num_processes % num_parts:
        raise ConfigError(
            f"data.stream_parts: {num_parts} parts cannot be shared out among {num_processes} processes",
            hint="one of the two numbers must be a multiple of the other",
        )


def _tell_of_shared_parts(num_parts: int, share: Share) -> None:
    if share.num_processes > num_parts and share.rank == 0:
        logger.info(
            "the stream has %d %s for %d processes, so %d processes read the same part, and each trains on its share; in a new run with data.stream_parts: %d, each process would read a part of its own",
            num_parts,
            "part" if num_parts == 1 else "parts",
            share.num_processes,
            share.num_processes // num_parts,
            share.num_processes,
        )


@dataclass(frozen=True, slots=True)
class _Stream:
    """Makes the updates; the thread refers to this object only."""

    config: Config
    data: FilesData | HubData
    tokenizers: Tokenizers
    order: EpochOrder
    size: UpdateSize
    pin_memory: bool
    share: Share

    def __post_init__(self) -> None:
        require_shareable(self.data, self.size.num_batches, self.share.num_processes)

    def updates(self, start: AnyPosition) -> Iterator[tuple[list[Batch], AnyPosition]]:
        """Each update with the position after it, in which only the parts of this process are known."""
        held_out = held_out_digests(self.config, all_held_out_pairs(self.config))
        starts = dict(enumerate(self.positions_at(start)))
        positions: dict[int, StreamPosition] = {}
        streams = {
            part.number: self._part_stream(part).updates(
                BufferStart.of(starts[part.number], self._num_corpora), starts[part.number].batch, held_out
            )
            for part in self._own_parts()
        }
        while True:
            update: list[Batch] = []
            for number, stream in streams.items():
                batches, positions[number] = next(stream)
                update += self._in_update(batches, CorpusPart(number, self.data.stream_parts))
            yield sorted(update, key=lambda batch: batch.number), self._joined(positions)

    def positions_at(self, position: AnyPosition) -> list[StreamPosition]:
        """The position in each part.

        Raises:
            DataError: the position is not one of these corpora and parts.
        """
        num_parts = self.data.stream_parts
        if isinstance(position, Position) or not position.stream:
            return [StreamPosition(position.epoch, 0, ())] * num_parts
        numbers = position.numbers() if num_parts == 1 else list(position.stream)
        length = 3 + 2 * self._num_corpora
        if len(numbers) != num_parts * length:
            raise DataError(
                f"the position in the data has {len(numbers)} numbers, where {self._num_corpora} corpora are streamed in {num_parts} parts",
                hint="undo the change of data.corpora or data.stream_parts, or start again, with another name or with --from-scratch",
            )
        return [StreamPosition.of(numbers[at : at + length]) for at in range(0, len(numbers), length)]

    def _joined(self, positions: Mapping[int, StreamPosition]) -> StreamPosition:
        """One position of all parts, with zeros for those of other processes; epoch and batch are those of part 0."""
        num_parts = self.data.stream_parts
        if num_parts == 1:
            return positions[0]
        unknown = [0] * (3 + 2 * self._num_corpora)
        numbers = [positions[part].numbers() if part in positions else unknown for part in range(num_parts)]
        epoch, batch, *_ = numbers[0]
        return StreamPosition(epoch, batch, tuple(chain(*numbers)))

    @property
    def _num_corpora(self) -> int:
        return len(training_corpora(self.data))

    def _own_parts(self) -> list[CorpusPart]:
        """Those from which the batches of this process come: batch i, of part i mod n, is of process i mod m."""
        num_parts, (rank, num_processes) = self.data.stream_parts, self.share
        own = range(rank % num_parts, num_parts, num_processes)
        return [CorpusPart(number, num_parts) for number in own]

    def _part_stream(self, part: CorpusPart) -> "PartStream":
        num_batches, target_tokens = self.size.num_batches, self.size.target_tokens
        rank, num_processes = self.share
        return PartStream(
            self.config,
            self.data,
            self.tokenizers,
            UpdateSize(num_batches // part.num_parts, target_tokens),
            self.pin_memory,
            part,
            Share(rank // part.num_parts, -(-num_processes // part.num_parts)),
        )

    def _in_update(self, batches: list[Batch], part: CorpusPart) -> list[Batch]:
        """The batches that a part gives to an update, with their numbers in it.

        With several parts, batches without targets are added to the last ones of a buffer: then all processes make
        equally many passes, without knowing of each other's buffers.
        """
        if part.num_parts == 1:
            return batches
        num_sharing = -(-self.share.num_processes // part.num_parts)
        num_missing = -(-self.size.num_batches // (part.num_parts * num_sharing)) - len(batches)
        batches = batches + [batches[0].without_targets()] * num_missing
        return [replace(batch, number=part.row(batch.number)) for batch in batches]


# One part of a streamed corpus as updates: read in buffers, cleaned, encoded, shuffled and cut into batches.


BUFFER_PAIRS = 50_000
"""Pairs that are shuffled and sorted together."""
_MOST_BUFFERS = 1 << 32  # of an epoch; no two buffers of a run are shuffled alike


class BufferStart(NamedTuple):
    """Where a buffer begins, within its part of the corpora."""

    epoch: int
    number: int
    """Of the buffer, within the epoch."""
    places: tuple[Place, ...]

    @classmethod
    def of(cls, position: StreamPosition, num_corpora: int) -> "BufferStart":
        """The beginning of the buffer in which a position lies.

        Raises:
            ValueError: the position has another number of corpora.
        """
        if not position.stream:
            return cls(position.epoch, 0, (Place(),) * num_corpora)
        number, *numbers = position.stream
        if len(numbers) != 2 * num_corpora:
            raise ValueError(f"{len(numbers)} numbers for {num_corpora} corpora")
        places = zip(numbers[::2], numbers[1::2], strict=True)
        return cls(position.epoch, number, tuple(map(Place._make, places)))

    def position(self, num_batches: int) -> StreamPosition:
        """The position after so many batches of this buffer."""
        return StreamPosition(self.epoch, num_batches, (self.number, *chain(*self.places)))


class _Buffer(NamedTuple):
    """Some pairs, and where the part goes on after them."""

    start: BufferStart
    pairs: EncodedPairs
    after: BufferStart

    @property
    def number(self) -> int:
        """Of the buffer, within the part and the run."""
        return self.start.epoch * _MOST_BUFFERS + self.start.number


@dataclass(frozen=True, slots=True)
class PartStream:
    """Makes the updates of one part of the corpora.

    Args:
        data: the data section of `config`.
        size: how many batches of this part an update has.
        part: which part.
        share: the batches of the part that this process does.
    """

    config: Config
    data: FilesData | HubData
    tokenizers: Tokenizers
    size: UpdateSize
    pin_memory: bool
    part: CorpusPart
    share: Share

    def updates(
        self, start: BufferStart, num_done: int, held_out: Collection[bytes]
    ) -> Iterator[tuple[list[Batch], StreamPosition]]:
        """The batches of each update with the position after it; `num_done` batches of the first buffer were used."""
        done = num_done
        for buffer in Prefetcher(self._buffers(start, held_out), ahead=1):
            collate = partial(self._collate, buffer.pairs)
            number = self.part.row(buffer.number)  # no two buffers of all parts have the same
            order = self._order_of(buffer)
            groups = update_batches(order.batches(number, first=done), order, self.size, number)
            for group, next_group in pairwise(chain(groups, [None])):
                assert group is not None
                done += len(group)
                position = buffer.start.position(done) if next_group else buffer.after.position(0)
                yield self.share.collated(group, collate), position
            done = 0

    def _buffers(self, start: BufferStart, held_out: Collection[bytes]) -> Iterator[_Buffer]:
        while True:
            corpora = StreamedCorpora(self.data, list(start.places), self.part)
            is_whole_epoch, num_kept = start.number == 0, 0
            while pairs := corpora.take(BUFFER_PAIRS):
                after = BufferStart(start.epoch, start.number + 1, tuple(corpora.places))
                encoded = self._encode(pairs, held_out)
                if len(encoded.corpora):
                    yield _Buffer(start, encoded, after)
                num_kept += len(encoded.corpora)
                start = after
            if is_whole_epoch and not num_kept:
                raise self._emptiness()
            start = BufferStart(start.epoch + 1, 0, (Place(),) * len(start.places))

    def _emptiness(self) -> DataError:
        number, num_parts = self.part
        if num_parts == 1:
            return DataError("the streamed corpora have no pair that cleaning keeps")
        return DataError(
            f"part {number + 1} of the {num_parts} parts of the streamed corpora has no pair that cleaning keeps",
            hint="set data.stream_parts to a smaller number",
        )

    def _order_of(self, buffer: _Buffer) -> EpochOrder:
        """The order in which the pairs of a buffer are shuffled, as an epoch of its own."""
        budget, num_pairs = Budget.of(self.config.training), len(buffer.pairs.corpora)
        lengths, seed = buffer.pairs.lengths, self.config.seed
        return EpochOrder(lengths, [num_pairs], [1.0], budget, seed, pool_size=num_pairs)

    def _collate(self, pairs: EncodedPairs, indices: Indices) -> Batch:
        batch = collate_padded(
            *pairs.padded(indices, Tokenizer.pad_id),
            sos_id=Tokenizer.sos_id,
            pad_id=Tokenizer.pad_id,
            sequence_format=SequenceFormat.of(self.data),
        )
        return batch.pin_memory() if self.pin_memory else batch

    def _encode(self, pairs: Sequence[SentencePair], held_out: Collection[bytes]) -> EncodedPairs:
        rules = self.config.applied_cleaning
        kept = list(clean(pairs, rules, CleaningReport(), held_out=held_out))
        sequence_format, max_length = SequenceFormat.of(self.data), self.config.model.max_length
        rows = rows_of_pairs(kept)
        return encode_short_pairs(rows, self.tokenizers, sequence_format, max_length)[0]
