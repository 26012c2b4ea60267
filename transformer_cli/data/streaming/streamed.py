"""The batches of each update of a corpus that is read while the model trains, for corpora that no disk holds.

The corpus is read in buffers. The pairs of a buffer are cleaned, encoded, shuffled, sorted by length and cut into
batches, as those of a pool of a stored corpus (order.py). A thread fills the next buffer while the batches of this one
are used. The place where a buffer begins in the corpus is part of the position, so that a resumed run reads the same
buffer again and goes on with the next batch. Duplicates are noticed inside a buffer only; held-out pairs everywhere.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple, Self

from transformer_cli.config import Config, FilesData, HubData
from transformer_cli.data.batches.batch import Batch, collate_padded
from transformer_cli.data.batches.encoded import EncodedPairs, encode_short_pairs
from transformer_cli.data.batches.grouping import UpdateSize, update_batches
from transformer_cli.data.batches.order import Budget, EpochOrder, Indices
from transformer_cli.data.batches.updates import (
    AnyPosition,
    Position,
    Prefetcher,
    Share,
    StreamPosition,
    Updates,
)
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.selection.cleaning import CleaningReport, clean
from transformer_cli.data.selection.held_out import all_held_out_pairs, held_out_digests
from transformer_cli.data.streaming.resumable import Place, StreamedCorpora, training_corpora
from transformer_cli.errors import DataError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.tokenizer_pair import Tokenizers

logger = logging.getLogger(__name__)

BUFFER_PAIRS = 50_000
"""Pairs that are shuffled and sorted together."""
_MOST_BUFFERS = 1 << 32  # of an epoch; no two buffers of a run are shuffled alike


class StreamedUpdates(Updates):
    """As `Updates`, for a config with `data.streaming`; the last update of a buffer may have fewer batches.

    Args:
        config: the corpora, the cleaning, the limits of a batch, and the seed.
        tokenizers: of source and target.
        order: that of the stored pairs, which are the first ones of the corpus; only for estimates.
        size: how many batches make an update, over all processes; each process reads the whole stream.
        position: that of an earlier iterator, which this one continues.
        pin_memory: put batches in pinned memory, from which copies to a GPU are fast.

    Raises:
        DataError: the position is not one of these corpora.
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
        stream.buffer_at(position)  # an error about the position comes now, and not from the thread
        logger.info(
            "data.streaming: how many pairs an epoch has is not known; the figures given for an epoch count the first %s pairs only",
            f"{order.num_pairs():,}",
        )
        self._stream = stream
        self._position = position
        self._prefetcher = None


class _Buffer(NamedTuple):
    """Some pairs, and where the corpus goes on after them."""

    start: "_Start"
    pairs: EncodedPairs
    after: "_Start"

    @property
    def number(self) -> int:
        """Of the buffer, within the run."""
        return self.start.epoch * _MOST_BUFFERS + self.start.number


class _Start(NamedTuple):
    """Where a buffer begins."""

    epoch: int
    number: int
    """Of the buffer, within the epoch."""
    places: tuple[Place, ...]

    def position(self, num_batches: int) -> StreamPosition:
        """The position after so many batches of this buffer."""
        return StreamPosition(self.epoch, num_batches, (self.number, *chain(*self.places)))


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

    def shared(self, share: Share) -> Self:
        return replace(self, share=share)

    def updates(self, start: AnyPosition) -> Iterator[tuple[list[Batch], AnyPosition]]:
        """Each update with the position after it."""
        done = start.batch
        for buffer in Prefetcher(self._buffers(self.buffer_at(start)), ahead=1):
            collate = partial(self._collate, buffer.pairs)
            groups = update_batches(self._order_of(buffer), self.size, buffer.number, first=done)
            for group, next_group in pairwise(chain(groups, [None])):
                assert group is not None
                done += len(group)
                position = buffer.start.position(done) if next_group else buffer.after.position(0)
                yield self.share.collated(group, collate), position
            done = 0

    def buffer_at(self, position: AnyPosition) -> _Start:
        """The buffer in which a position lies."""
        num_corpora = len(training_corpora(self.data))
        if isinstance(position, Position) or not position.stream:
            return _Start(position.epoch, 0, (Place(),) * num_corpora)
        number, *numbers = position.stream
        if len(numbers) != 2 * num_corpora:
            raise DataError(
                f"the position in the data has {len(numbers)} numbers, where {num_corpora} corpora are streamed",
                hint="undo the change of data.corpora, or start again, with another name or with --from-scratch",
            )
        places = zip(numbers[::2], numbers[1::2], strict=True)
        return _Start(position.epoch, number, tuple(map(Place._make, places)))

    def _buffers(self, start: _Start) -> Iterator[_Buffer]:
        held_out = held_out_digests(self.config, all_held_out_pairs(self.config))
        while True:
            corpora = StreamedCorpora(self.data, list(start.places))
            is_whole_epoch, num_kept = start.number == 0, 0
            while pairs := corpora.take(BUFFER_PAIRS):
                after = _Start(start.epoch, start.number + 1, tuple(corpora.places))
                encoded = self._encode(pairs, held_out)
                if len(encoded.corpora):
                    yield _Buffer(start, encoded, after)
                num_kept += len(encoded.corpora)
                start = after
            if is_whole_epoch and not num_kept:
                raise DataError("the streamed corpora have no pair that cleaning keeps")
            start = _Start(start.epoch + 1, 0, (Place(),) * len(start.places))

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
        rules = self.config.data.cleaning
        kept = list(clean(pairs, rules, CleaningReport(), held_out=held_out))
        sequence_format, max_length = SequenceFormat.of(self.data), self.config.model.max_length
        return encode_short_pairs(kept, self.tokenizers, sequence_format, max_length)[0]
