"""Batches of padded sentence pairs, and the batches of each optimizer update, resumable at any update; pairs that change in each epoch; a thread that prepares ahead."""

import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain, pairwise
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.config import Config, NoiseConfig, TrainingConfig
from transformer_cli.data.encoded import EncodedCorpus, TokenPair
from transformer_cli.data.order import (
    EpochOrder,
    Indices,
    UpdateSize,
    Visits,
    epoch_order,
    estimated_updates,
    update_batches,
)
from transformer_cli.process.device import derive_seed, to_device
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.sampling import LatticeSampling, MergeDropout, WordSampler, with_noise
from transformer_cli.text.token_ids import Padded, pad_ids


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs as tensors; each side is padded at its end to its longest sentence."""

    source_ids: Tensor  # (B, S) int64
    source_mask: Tensor  # (B, S) bool, True where there is a token
    decoder_input_ids: Tensor  # (B, T) int64, in the ordinary format begins with [SOS]
    target_ids: Tensor  # (B, T) int64, in the ordinary format ends with [EOS]
    num_source_tokens: int  # padding excluded
    num_target_tokens: int  # padding excluded
    pad_id: int
    number: int = 0  # its index among the micro-batches of an update; halves of a batch have the same number
    alignment: Tensor | None = None  # (B, T, S) bool, True where given word alignments link both
    sources_have_tokens: bool = False  # whether each source is known to have a token

    @property
    def num_cells(self) -> int:
        """Number of positions on the longer side, padding included, as `training.batch_tokens` counts them."""
        return len(self.target_ids) * max(self.source_ids.size(1), self.target_ids.size(1))

    @property
    def padding_mask(self) -> Tensor | None:
        """`source_mask`, or None if the source has no padding; the count of tokens tells, without a wait."""
        return None if self.num_source_tokens == self.source_ids.numel() > 0 else self.source_mask

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device; the CPU does not wait for copies to a GPU."""
        return self._map(lambda tensor: to_device(tensor, torch.device(device)))

    def pin_memory(self) -> "Batch":
        """The same batch in pinned (page-locked) memory, from which copies to a GPU are fast."""
        return self._map(Tensor.pin_memory)

    def halves(self) -> list["Batch"]:
        """Two batches with half of the sentences each; a batch of one sentence is returned alone."""
        num_first = len(self.target_ids) // 2
        if not num_first:
            return [self]
        return [self._part(slice(num_first)), self._part(slice(num_first, None))]

    def without_targets(self) -> "Batch":
        """A batch that adds nothing to losses, gradients and counts."""
        nothing = torch.full_like(self.target_ids, self.pad_id)
        return replace(self, target_ids=nothing, num_source_tokens=0, num_target_tokens=0, alignment=None)

    def _part(self, rows: slice) -> "Batch":
        part = self._map(lambda tensor: tensor[rows])
        return replace(
            part,
            num_source_tokens=int(part.source_mask.sum()),
            num_target_tokens=int((part.target_ids != part.pad_id).sum()),
        )

    def _map(self, function: Any) -> "Batch":
        values = [getattr(self, one.name) for one in fields(self)]
        return Batch(*(function(value) if isinstance(value, Tensor) else value for value in values))


def collate(
    pairs: Sequence[TokenPair],
    *,
    sos_id: int,
    pad_id: int,
    sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
) -> Batch:
    """A padded batch of one or more pairs.

    Args:
        pairs: B pairs; each side is padded to its longest sentence.
        sos_id: the id of [SOS], the first token that the decoder reads in the ordinary format.
        pad_id: the id of [PAD].
        sequence_format: how decoder input ids are made from target ids.
    """
    sides = (pad_ids([pair[side] for pair in pairs], pad_id) for side in (0, 1))
    return collate_padded(*sides, sos_id=sos_id, pad_id=pad_id, sequence_format=sequence_format)


def collate_padded(
    source: Padded,
    target: Padded,
    *,
    sos_id: int,
    pad_id: int,
    sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
) -> Batch:
    """The batch of `collate`, from pairs whose two sides are padded already."""
    (source_ids, source_mask), (target_ids, target_mask) = source, target
    decoder_input_ids = sequence_format.decoder_inputs(target_ids, target_mask, sos_id=sos_id, pad_id=pad_id)
    return Batch(
        source_ids=torch.from_numpy(source_ids),
        source_mask=torch.from_numpy(source_mask),
        decoder_input_ids=torch.from_numpy(decoder_input_ids),
        target_ids=torch.from_numpy(target_ids),
        num_source_tokens=int(source_mask.sum()),
        num_target_tokens=int(target_mask.sum()),
        pad_id=pad_id,
        sources_have_tokens=bool(source_mask.any(1).all()),
    )


# The batches of each update.


UPDATES_AHEAD = 4
MAX_STAGED_EPOCHS = 10_000
"""Weights of corpora that change later are not counted."""
MAX_COUNTED_EPOCHS, MAX_COUNTED_PAIRS = 100, 1_000_000
"""To count the updates of so many epochs, or pairs, takes a quarter of a second."""


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

    def collated(self, micro_batches: Sequence[Indices], collate: Callable[[Indices], Batch]) -> list[Batch]:
        """The batches of this process, and batches without targets until it has as many as the process that has the most.

        Processes that share one model in shards must all call each layer equally often: each call gathers its weights.
        """
        own = [
            replace(collate(indices), number=number)
            for number, indices in list(enumerate(micro_batches))[self.rank :: self.num_processes]
        ]
        if num_missing := -(-len(micro_batches) // self.num_processes) - len(own):
            own += [collate(micro_batches[0]).without_targets()] * num_missing
        return own


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


class UpdateProducer(Protocol):
    """Makes the updates in the thread: `StoredUpdates`, or those of a stream (streaming.py)."""

    @property
    def order(self) -> EpochOrder:
        """The pairs of each batch; of a stream, those of its first pairs, for estimates."""

    @property
    def size(self) -> UpdateSize:
        """How many batches make an update."""

    def updates(self, start: AnyPosition) -> Iterator[tuple[list[Batch], AnyPosition]]:
        """Each update after a position, with the position after it."""


@dataclass(eq=False)
class Updates(AbstractContextManager["Updates"], Iterator[list[Batch]]):
    """An endless iterator over the batches of each optimizer update, prepared by a thread.

    The last update of an epoch may have fewer batches than the others. An iterator started at
    the `position` of an earlier one continues exactly where that one stopped.
    """

    producer: UpdateProducer
    """Makes the updates."""
    position: AnyPosition = Position()  # noqa: RUF009 - immutable
    """That of the first update; then the position after the last returned update: prepared updates do not count."""
    _prefetcher: "Prefetcher[tuple[list[Batch], AnyPosition]] | None" = field(default=None, init=False)

    @property
    def num_updates(self) -> int:
        """Number of updates of the current epoch; counting them takes as long as planning the epoch.

        Where subwords are sampled it is estimated: counting would sample the whole corpus.
        """
        return self._num_updates_of(self.position.epoch)

    def _num_updates_of(self, epoch: int) -> int:
        order, size = self.producer.order, self.producer.size
        if order.sampled_lengths is not None:
            return estimated_updates(order, size, epoch)
        return sum(1 for _ in update_batches(order.batches(epoch), order, size, epoch))

    def num_updates_in_all(self, num_epochs: int) -> int:
        """Number of updates of the first epochs: counted if these are small and few, as the epochs of a small corpus differ much.

        Else those of one epoch stand for all of its stage. A stage ends where the weights of the corpora change.
        """
        order, num_pairs, num_counted, total = self.producer.order, 0, 0, 0
        counted: dict[tuple[float, ...], int] = {}
        for epoch in range(min(num_epochs, MAX_STAGED_EPOCHS)):
            stage = tuple(order.weights_in(epoch))
            is_small = num_counted < MAX_COUNTED_EPOCHS and num_pairs < MAX_COUNTED_PAIRS
            if stage not in counted or (is_small and order.sampled_lengths is None):
                counted[stage] = self._num_updates_of(epoch)
                num_pairs, num_counted = num_pairs + order.num_pairs(epoch), num_counted + 1
            total += counted[stage]
        return total + max(0, num_epochs - MAX_STAGED_EPOCHS) * counted[stage]

    def __next__(self) -> list[Batch]:
        if self._prefetcher is None:
            self._prefetcher = Prefetcher(self.producer.updates(self.position))
        update, self.position = next(self._prefetcher)
        return update

    def __exit__(self, *_: object) -> None:
        """Stop the thread; the next update starts a new thread at `position`."""
        if self._prefetcher is not None:
            self._prefetcher.close()
            self._prefetcher = None


@dataclass(frozen=True, slots=True)
class StoredUpdates:
    """Makes the updates of a stored corpus; the thread refers to this object only, so `Updates` can be garbage-collected."""

    pairs: "EncodedCorpus | ResampledPairs"
    """The training split as token ids; perhaps with subwords that are sampled in each epoch."""
    order: EpochOrder
    size: UpdateSize = UpdateSize()  # noqa: RUF009 - frozen
    """How many batches make an update (gradient accumulation), over all processes."""
    sequence_format: SequenceFormat = SequenceFormat()  # noqa: RUF009 - frozen
    pin_memory: bool = False
    """Whether batches wait in pinned memory, from which copies to a GPU are fast."""
    share: Share = Share()  # noqa: RUF009 - frozen
    """The part of each update that this process does. Where the batches of an update cannot be shared out equally, some
    processes get a batch without targets, so that all processes do the same steps."""

    def updates(self, start: AnyPosition) -> Iterator[tuple[list[Batch], AnyPosition]]:
        """Each update with the position after it."""
        epoch, done = start.epoch, start.batch
        while True:
            groups = update_batches(self.order.batches(epoch, first=done), self.order, self.size, epoch)
            for group, next_group in pairwise(chain(groups, [None])):
                assert group is not None
                done += len(group)
                position = Position(epoch, done) if next_group else Position(epoch + 1, 0)
                yield self.share.collated(group, partial(self._collate, epoch)), position
            epoch, done = epoch + 1, 0

    def _collate(self, epoch: int, visits: Visits) -> Batch:
        if isinstance(self.pairs, ResampledPairs):
            source, target = self.pairs.padded(epoch, visits, Tokenizer.pad_id)
            links = None
        else:
            source, target = self.pairs.padded(visits, Tokenizer.pad_id)
            links = self.pairs.links(visits)
        batch = collate_padded(
            source, target, sos_id=Tokenizer.sos_id, pad_id=Tokenizer.pad_id, sequence_format=self.sequence_format
        )
        if links is not None:
            shape = *batch.target_ids.shape, batch.source_ids.size(1)
            batch = replace(batch, alignment=torch.from_numpy(_linked_positions(links, shape)))
        return batch.pin_memory() if self.pin_memory else batch


# Training pairs that change in each epoch: by training noise, and by subword regularisation.
#
# Noise changes the text of a pair; subword regularisation cuts its words into other subwords. The ids of a pair are a
# pure function of (seed, epoch, visit), so a resumed run gets the same ids. They are drawn for a whole pool of pairs at
# once, because the pool is divided into batches by the new lengths.


Ids = NDArray[Any]
SAMPLED_POOL_SIZE = 10_000
MAX_KEPT_PAIRS = 15_000


class PairNoise:
    """Training noise for pairs of ids: it changes their texts, and encodes them again.

    Args:
        tokenizers: of source and target.
        noise: the probability of each change.
    """

    def __init__(self, tokenizers: tuple[Tokenizer, Tokenizer], noise: NoiseConfig) -> None:
        self._tokenizers = tokenizers
        self._noise = noise

    def changed(self, pair: TokenPair, numbers: Random) -> TokenPair:
        """The pair with the changes that are drawn for it; tags and [EOS] stay.

        A pair with [UNK] stays as it is, because its text is not known.
        """
        sides = [np.asarray(ids) for ids in pair]
        tokenizers = self._tokenizers
        if any(tokenizer.unk_id in ids for tokenizer, ids in zip(tokenizers, sides, strict=True)):
            return pair
        texts = [tokenizer.decode(ids.tolist()) for tokenizer, ids in zip(tokenizers, sides, strict=True)]
        if not all(texts):
            return pair
        changed = with_noise(texts[0], texts[1], self._noise, numbers)
        parts = zip(tokenizers, sides, texts, changed, strict=True)
        return TokenPair(
            *(ids if new == old else _encoded_like(tokenizer, ids, new) for tokenizer, ids, old, new in parts)
        )


def _encoded_like(tokenizer: Tokenizer, ids: Ids, text: str) -> Ids:
    """The ids of a text, between the special tokens and tags that begin and end `ids`."""
    is_text = np.flatnonzero(~np.isin(ids, [*range(len(tokenizer.special_tokens)), *tokenizer.tag_ids]))
    before, after = ids[: is_text[0]], ids[is_text[-1] + 1 :]
    return np.concatenate([before, np.array(tokenizer.encode(text), ids.dtype), after])


class ResampledPairs:
    """The pairs of a corpus as they are in an epoch.

    Args:
        corpus: the training split in its ordinary encoding.
        samplers: cut the words of source and target; None: the subwords stay.
        noise: changes the texts; None: they stay.
        seed: different seeds give different noise and different subwords.
        max_length: a pair with a longer side keeps its ordinary encoding, which is not longer than this.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        samplers: tuple[WordSampler, WordSampler] | None,
        *,
        noise: PairNoise | None = None,
        seed: int,
        max_length: int,
    ) -> None:
        self._corpus = corpus
        self._samplers = samplers
        self._noise = noise
        self._seed = seed
        self._max_length = max_length
        self._kept: dict[tuple[int, int], TokenPair] = {}  # (epoch, visit) -> pair

    def lengths(self, epoch: int, visits: Visits) -> tuple[Indices, Indices]:
        """Number of source tokens and of target tokens at these visits of an epoch."""
        pairs = self.pairs(epoch, visits)
        lengths = np.array([(len(source), len(target)) for source, target in pairs], np.int64)
        return lengths[:, 0], lengths[:, 1]

    def pairs(self, epoch: int, visits: Visits) -> list[TokenPair]:
        """The pairs at these visits of an epoch."""
        keys = [(epoch, visit) for visit in visits.tolist()]
        kept = self._kept
        if len(kept) + sum(key not in kept for key in keys) > MAX_KEPT_PAIRS:
            kept = self._kept = {}
        found = []
        for key in keys:
            pair = kept.get(key)
            if pair is None:
                pair = kept[key] = self._drawn(*key)
            found.append(pair)
        return found

    def padded(self, epoch: int, visits: Visits, pad_id: int) -> tuple[Padded, Padded]:
        """The source ids and the target ids of the pairs at these visits of an epoch."""
        sources, targets = zip(*self.pairs(epoch, visits), strict=True)
        return pad_ids(sources, pad_id), pad_ids(targets, pad_id)

    def _drawn(self, epoch: int, visit: int) -> TokenPair:
        ordinary = drawn = self._corpus[visit % len(self._corpus)]
        if self._noise is not None:
            drawn = self._noise.changed(drawn, Random(derive_seed(self._seed, "noise", epoch, visit)))
        if self._samplers is not None:
            numbers = Random(derive_seed(self._seed, "subwords", epoch, visit))
            sides = zip(self._samplers, drawn, strict=True)
            drawn = TokenPair(*(sampler.sample(ids, numbers) for sampler, ids in sides))
        is_too_long = max(map(len, drawn)) > self._max_length
        return ordinary if is_too_long else drawn


def open_updates(
    config: Config,
    corpus: EncodedCorpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    is_streamed: bool,
    num_batches: int,
    position: AnyPosition,
    pin_memory: bool,
    share: Share,
) -> Updates:
    """The updates of a run from a position on.

    Args:
        corpus: the encoded pairs of the training; of a stream, the first ones.
        is_streamed: whether the corpus is read while the model trains.
        num_batches: of an update, over all processes.
        pin_memory: whether batches wait in page-locked memory, from which a GPU copies while it computes.
        share: the part of each update that this process does.
    """
    pairs, order = training_pairs(corpus, tokenizers, config)
    size = UpdateSize(num_batches, config.training.update_tokens)
    if is_streamed:
        from transformer_cli.data.streaming import open_stream  # it imports this module

        return open_stream(config, tokenizers, order, size=size, position=position, pin_memory=pin_memory, share=share)
    producer = StoredUpdates(pairs, order, size, SequenceFormat.of(config.data), pin_memory, share)
    # A run that has read a stream until now continues with the epoch and batch that it has reached.
    return Updates(producer, Position(*position[:2]))


def num_steps_of(training: TrainingConfig, updates: Updates) -> int:
    """The last step of a run, estimated from the number of batches of some epochs."""
    limits = [] if training.max_steps is None else [training.max_steps]
    if training.max_epochs is not None:
        limits.append(updates.num_updates_in_all(training.max_epochs))
    return min(limits)


def draws_ids_anew(training: TrainingConfig) -> bool:
    """Whether the ids of a training pair are drawn anew in each epoch."""
    settings = training.bpe_dropout, training.unigram_alpha, training.noise
    return any(setting is not None for setting in settings)


def training_pairs(
    corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer], config: Config
) -> tuple[EncodedCorpus | ResampledPairs, EpochOrder]:
    """The pairs that training reads, and their order, for the settings of a config."""
    order, training = epoch_order(corpus.lengths, corpus.corpus_sizes, config), config.training
    if not draws_ids_anew(training):
        return corpus, order
    pairs = ResampledPairs(
        corpus,
        _word_samplers(tokenizers, training),
        noise=None if training.noise is None else PairNoise(tokenizers, training.noise),
        seed=config.seed,
        max_length=config.model.max_length,
    )
    return pairs, replace(order, sampled_lengths=pairs.lengths, pool_size=SAMPLED_POOL_SIZE)


def _word_samplers(
    tokenizers: tuple[Tokenizer, Tokenizer], training: TrainingConfig
) -> tuple[WordSampler, WordSampler] | None:
    if training.bpe_dropout is None and training.unigram_alpha is None:
        return None
    source, target = tokenizers
    source_sampler = _word_sampler(source, training)
    return source_sampler, source_sampler if target is source else _word_sampler(target, training)


def _word_sampler(tokenizer: Tokenizer, training: TrainingConfig) -> WordSampler:
    if training.bpe_dropout is not None:
        return WordSampler(tokenizer, MergeDropout(tokenizer.parts, training.bpe_dropout))
    assert training.unigram_alpha is not None
    return WordSampler(tokenizer, LatticeSampling(tokenizer.parts, training.unigram_alpha))


# Items read in advance by a thread.


Item = TypeVar("Item")


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
    has_failed = False
    while not (is_stopped.is_set() or has_failed):
        try:
            item = next(items)
        except StopIteration:
            return
        except BaseException as error:  # the thread that reads the queue raises it
            item, has_failed = error, True
        while not is_stopped.is_set():
            with suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                break


def _linked_positions(links: Sequence[NDArray[np.integer]], shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    """(B, T, S) bool: True where a target position is linked to a source position.

    Args:
        links: of each pair, as `links_of_tokens` lists them.
        shape: B, T and S.
    """
    found = np.zeros(shape, bool)
    for row, pair_links in enumerate(links):
        found[row, pair_links[0::2], pair_links[1::2]] = True
    return found
