"""One part of a streamed corpus as updates: read in buffers, cleaned, encoded, shuffled and cut into batches."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple

from transformer_cli.config import Config, FilesData, HubData
from transformer_cli.data.batches.batch import Batch, collate_padded
from transformer_cli.data.batches.encoded import EncodedPairs, encode_short_pairs
from transformer_cli.data.batches.grouping import UpdateSize, update_batches
from transformer_cli.data.batches.order import Budget, EpochOrder, Indices
from transformer_cli.data.batches.updates import Prefetcher, Share, StreamPosition
from transformer_cli.data.corpus_part import CorpusPart
from transformer_cli.data.pairs import SentencePair, rows_of
from transformer_cli.data.selection.cleaning import CleaningReport, clean
from transformer_cli.data.streaming.resumable import Place, StreamedCorpora
from transformer_cli.process.errors import DataError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.tokenizer import Tokenizers

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
            groups = update_batches(self._order_of(buffer), self.size, number, first=done)
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
        rules = self.config.cleaning
        kept = list(clean(pairs, rules, CleaningReport(), held_out=held_out))
        sequence_format, max_length = SequenceFormat.of(self.data), self.config.model.max_length
        rows = rows_of(kept)
        return encode_short_pairs(rows, self.tokenizers, sequence_format, max_length)[0]
