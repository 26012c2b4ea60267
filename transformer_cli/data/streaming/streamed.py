"""The batches of each update of a corpus that is read while the model trains, for corpora that no disk holds.

The corpus is read in buffers. The pairs of a buffer are cleaned, encoded, shuffled, sorted by length and cut into
batches, as those of a pool of a stored corpus (order.py). A thread fills the next buffer while the batches of this one
are used. The place where a buffer begins in the corpus is part of the position, so that a resumed run reads the same
buffer again and goes on with the next batch. Duplicates are noticed inside a buffer only; held-out pairs everywhere.

With `data.stream_parts: n` the corpus has n parts with buffers of their own, and batch i of an update comes from part
i mod n. So the updates do not depend on the number of processes, but each process reads only the parts of its batches.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Self

from transformer_cli.config import Config, FilesData, HubData
from transformer_cli.data.batches.batch import Batch
from transformer_cli.data.batches.grouping import UpdateSize
from transformer_cli.data.batches.order import EpochOrder
from transformer_cli.data.batches.updates import (
    AnyPosition,
    Position,
    Share,
    StreamPosition,
    Updates,
)
from transformer_cli.data.corpus_part import CorpusPart
from transformer_cli.data.selection.held_out import all_held_out_pairs, held_out_digests
from transformer_cli.data.streaming.buffers import BufferStart, PartStream
from transformer_cli.data.streaming.resumable import training_corpora
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.text.tokenizer import Tokenizers

logger = logging.getLogger(__name__)


class StreamedUpdates(Updates):
    """As `Updates`, for a config with `data.streaming`; the last update of a buffer may have fewer batches.

    Args:
        config: the corpora, the cleaning, the limits of a batch, and the seed.
        tokenizers: of source and target.
        order: that of the stored pairs, which are the first ones of the corpus; only for estimates.
        size: how many batches make an update, over all processes.
        position: that of an earlier iterator, which this one continues.
        pin_memory: put batches in pinned memory, from which copies to a GPU are fast.

    Raises:
        DataError: the position is not one of these corpora.
        ConfigError: the parts of the stream cannot be shared out.
    """

    def __init__(
        self,
        config: Config,
        tokenizers: Tokenizers,
        order: EpochOrder,
        *,
        size: UpdateSize = UpdateSize(),  # noqa: B008 - immutable
        position: AnyPosition = Position(),  # noqa: B008 - immutable
        pin_memory: bool = False,
    ) -> None:
        assert isinstance(config.data, FilesData | HubData)
        stream = _Stream(config, config.data, tokenizers, order, size, pin_memory)
        stream.positions_at(
            position
        )  # an error about the position comes now, and not from the thread
        logger.info(
            "data.streaming: the number of pairs is not known, so the plan takes the first %s pairs, from which the tokenizers were learned, for an epoch",
            f"{order.num_pairs():,}",
        )
        self._stream = stream
        self._position = position
        self._prefetcher = None


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


@dataclass(frozen=True, slots=True)
class _Stream:
    """Makes the updates; the thread refers to this object only."""

    config: Config
    data: FilesData | HubData
    tokenizers: Tokenizers
    order: EpochOrder
    size: UpdateSize
    pin_memory: bool
    share: Share = field(default=Share())

    def __post_init__(self) -> None:
        require_shareable(self.data, self.size.num_batches, self.share.num_processes)

    def shared(self, share: Share) -> Self:
        if share.num_processes > self.data.stream_parts and share.rank == 0:
            logger.info(
                "the stream has %d %s for %d processes, so %d processes read the same part, and each trains on its share; in a new run with data.stream_parts: %d, each process would read a part of its own",
                self.data.stream_parts,
                "part" if self.data.stream_parts == 1 else "parts",
                share.num_processes,
                share.num_processes // self.data.stream_parts,
                share.num_processes,
            )
        return replace(self, share=share)

    def updates(self, start: AnyPosition) -> Iterator[tuple[list[Batch], AnyPosition]]:
        """Each update with the position after it, in which only the parts of this process are known."""
        held_out = held_out_digests(self.config, all_held_out_pairs(self.config))
        starts = dict(enumerate(self.positions_at(start)))
        positions: dict[int, StreamPosition] = {}
        streams = {
            part.number: self._part_stream(part).updates(
                BufferStart.of(starts[part.number], self._num_corpora),
                starts[part.number].batch,
                held_out,
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
        return [
            StreamPosition.of(numbers[at : at + length]) for at in range(0, len(numbers), length)
        ]

    def _joined(self, positions: Mapping[int, StreamPosition]) -> StreamPosition:
        """One position of all parts, with zeros for those of other processes; epoch and batch are those of part 0."""
        num_parts = self.data.stream_parts
        if num_parts == 1:
            return positions[0]
        unknown = [0] * (3 + 2 * self._num_corpora)
        numbers = [
            positions[part].numbers() if part in positions else unknown for part in range(num_parts)
        ]
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

    def _part_stream(self, part: CorpusPart) -> PartStream:
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
