"""The pairs in each batch of each epoch, and the batches of each update: a pure function of (seed, epoch).

The shuffled order of an epoch is computed, not stored: a small cipher (`permute`) maps a position to a
pair. The order is cut into pools. Each pool is sorted by length and cut into batches of limited size,
and its batches are shuffled. So there is little padding, the memory needed does not grow with the
corpus, and training can resume at any batch of any epoch.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import Config, FilesData, HubData, TrainingConfig
from transformer_cli.process.errors import DataError

POOL_SIZE = 200_000
# For estimates before `training.batch_tokens: auto` has found a number.
TOKENS_UNTIL_KNOWN = 4096
NUM_ROUNDS = 6

Indices = NDArray[np.int64]
Visits = Indices
"""Numbers of the visits of an epoch to pairs: visit = repetition * number of pairs + index of the pair.

Only where a pair changes from visit to visit (`EpochOrder.sampled_lengths`) is the repetition counted. Elsewhere it is 0,
and a visit is the index of its pair.
"""
# From indices of pairs to the number of source tokens and of target tokens of each.
Lengths = Callable[[Indices], tuple[NDArray[np.int64], NDArray[np.int64]]]
# The same for lengths that differ between epochs: from an epoch and visits in it.
LengthsInEpoch = Callable[[int, Visits], tuple[NDArray[np.int64], NDArray[np.int64]]]


class Budget(NamedTuple):
    """The limit of a batch: tokens of its longer side with padding, or sentences."""

    tokens: int | None = None
    sentences: int | None = None

    @classmethod
    def of(cls, training: TrainingConfig) -> "Budget":
        """The limit that a config asks for."""
        if training.batch_tokens == "auto":
            return cls(tokens=TOKENS_UNTIL_KNOWN)
        return cls(training.batch_tokens, training.batch_sentences)


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """The batches of every epoch.

    Args:
        lengths: gives the number of source and target tokens of pairs.
        sizes: number of pairs of each corpus; the corpora are stored one after the other.
        weights: visits per epoch of each pair of a corpus; with 1.5, each epoch visits every pair once
            and a random half of the pairs again. Or a function from an epoch to its weights.
        budget: limit of a batch; a single pair that exceeds it is a batch of its own.
        seed: different seeds give different orders.
        pool_size: the maximal number of pairs that are sorted by length together.
        sampled_lengths: the lengths of pairs whose subwords are sampled anew in each visit; then each visit of an
            epoch has a number of its own (`Visits`).
    """

    lengths: Lengths
    sizes: Sequence[int]
    weights: Sequence[float] | Callable[[int], Sequence[float]]
    budget: Budget
    seed: int
    pool_size: int = POOL_SIZE
    sampled_lengths: LengthsInEpoch | None = None

    def batches(self, epoch: int, *, first: int = 0) -> Iterator[Visits]:
        """Yield the visits of each batch of an epoch, starting at batch `first`."""
        if not self.num_pairs(epoch):
            raise DataError(
                f"epoch {epoch} has no training pair: the corpora that have a weight in it are empty",
                hint="change data.corpora, or their weights from this epoch on",
            )
        pools = (self.pool_batches(epoch, pool) for pool in range(self.num_pools(epoch)))
        return itertools.islice(itertools.chain.from_iterable(pools), first, None)

    def weights_in(self, epoch: int) -> Sequence[float]:
        """Visits of each pair of a corpus in an epoch."""
        return self.weights(epoch) if callable(self.weights) else self.weights

    def num_pairs(self, epoch: int = 0) -> int:
        """Number of pairs that an epoch visits, repeated visits included."""
        return sum(map(_num_visits, self.sizes, self.weights_in(epoch)))

    def num_pools(self, epoch: int = 0) -> int:
        """Number of pools of an epoch."""
        return math.ceil(self.num_pairs(epoch) / self.pool_size)

    def lengths_of(self, batch: Visits, epoch: int) -> tuple[Indices, Indices]:
        """Number of source tokens and of target tokens of the pairs of a batch of an epoch."""
        if self.sampled_lengths is not None:
            return self.sampled_lengths(epoch, batch)
        return self.lengths(batch)

    def growth(self) -> float:
        """Target tokens with sampled subwords, which this order has, divided by those without; measured on some batches."""
        assert self.sampled_lengths is not None
        visits = np.concatenate(self.pool_batches(0, 0)[:20])
        _, sampled = self.sampled_lengths(0, visits)
        _, ordinary = self.lengths(visits % sum(self.sizes))
        return float(sampled.sum() / ordinary.sum())

    def pool_batches(self, epoch: int, pool: int) -> list[Visits]:
        """The batches of one pool of an epoch."""
        num_pairs, num_pools = self.num_pairs(epoch), self.num_pools(epoch)
        start, end = (edge * num_pairs // num_pools for edge in (pool, pool + 1))
        positions = np.arange(start, end, dtype=np.int64)
        visits = self._visits(permute(positions, num_pairs, (self.seed, epoch, 0)), epoch)
        source_lengths, target_lengths = self.lengths_of(visits, epoch)
        longest = np.maximum(source_lengths, target_lengths)
        # A stable sort leaves pairs of equal length shuffled, so batches differ from epoch to epoch.
        by_length = np.argsort(longest, kind="stable")
        batches = np.split(visits[by_length], _batch_boundaries(longest[by_length], self.budget))
        shuffled = permute(np.arange(len(batches)), len(batches), (self.seed, epoch, 1, pool))
        return [batches[index] for index in shuffled]

    def _visits(self, positions: Indices, epoch: int) -> Visits:
        """The visits at these positions of the unshuffled epoch: of each corpus, all pairs as often as its weight says, then a random part."""
        visits = np.empty_like(positions)
        first_position = first_pair = 0
        weights = self.weights_in(epoch)
        for corpus, (size, weight) in enumerate(zip(self.sizes, weights, strict=True)):
            num_visits = _num_visits(size, weight)
            here = (positions >= first_position) & (positions < first_position + num_visits)
            within = positions[here] - first_position
            whole = within < math.floor(weight) * size
            repetition = within // max(size, 1)
            within[whole] %= size
            drawn = within[~whole] - math.floor(weight) * size
            within[~whole] = permute(drawn, size, (self.seed, epoch, 2, corpus))
            visits[here] = first_pair + within
            if self.sampled_lengths is not None:
                visits[here] += repetition * sum(self.sizes)
            first_position += num_visits
            first_pair += size
        return visits


def epoch_order(lengths: Lengths, corpus_sizes: Sequence[int], config: Config) -> EpochOrder:
    """The epoch order for the settings of a config."""
    budget = Budget.of(config.training)
    weights = _weights(corpus_sizes, config.data) if isinstance(config.data, FilesData | HubData) else [1.0]
    return EpochOrder(lengths, corpus_sizes, weights, budget, config.seed)


def _weights(
    corpus_sizes: Sequence[int], data: FilesData | HubData
) -> Sequence[float] | Callable[[int], Sequence[float]]:
    corpora, until = data.corpora, data.reversed_epochs

    def written(epoch: int) -> list[float]:
        if data.temperature is not None:
            return tempered_weights(corpus_sizes[: len(corpora)], data.temperature)
        return [corpus.weight_in(epoch) for corpus in corpora]

    if until is not None:
        return lambda epoch: [*(of := written(epoch)), *(of if epoch < until else [0.0] * len(of))]
    changes = data.temperature is None and any(isinstance(corpus.weight, tuple) for corpus in corpora)
    return written if changes else written(0)


def tempered_weights(sizes: Sequence[int], temperature: float) -> list[float]:
    """Weights that give each corpus a share proportional to size^(1 / temperature) of as many pairs as there are.

    Source: Arivazhagan et al. 2019, "Massively Multilingual Neural Machine Translation in the Wild: Findings and Challenges".
    """
    # Sizes are divided by the largest one, so that no power overflows.
    shares = [(size / max(sizes)) ** (1.0 / temperature) if size else 0.0 for size in sizes]
    factor = sum(sizes) / sum(shares) if any(shares) else 0.0
    return [factor * share / size if size else 1.0 for share, size in zip(shares, sizes, strict=True)]


def padding_share(order: EpochOrder, *, max_batches: int = 1000) -> float:
    """Share of padding (0 to 1) in source and target of the first batches of the first epoch."""
    num_tokens = num_cells = 0
    for batch in itertools.islice(order.batches(0), max_batches):
        for lengths in order.lengths_of(batch, 0):
            num_tokens += int(lengths.sum())
            num_cells += len(batch) * int(lengths.max())
    return 1.0 - num_tokens / num_cells if num_cells else 0.0


def permute(positions: Indices, size: int, key: Sequence[int]) -> Indices:
    """The numbers at these positions of a shuffled 0 ... size - 1, without storing the whole shuffle.

    `key` selects the shuffle. A Feistel network over the next power of four is applied until the result
    is below `size` (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
    """
    round_keys = np.random.SeedSequence(key).generate_state(NUM_ROUNDS, np.uint64)
    half_bits = np.uint64(max(1, math.ceil((size - 1).bit_length() / 2)))
    values = positions.astype(np.uint64)
    is_outside = np.ones(len(values), dtype=bool)
    mask = (np.uint64(1) << half_bits) - np.uint64(1)
    while is_outside.any():
        outside = values[is_outside]
        left, right = outside >> half_bits, outside & mask
        for round_key in round_keys:
            # A well-spread 64-bit hash (the finaliser of SplitMix64, Steele et al. 2014).
            mixed = right ^ round_key
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            left, right = right, left ^ (mixed & mask)
        values[is_outside] = (left << half_bits) | right
        is_outside = values >= size
    return values.astype(np.int64)


def _num_visits(size: int, weight: float) -> int:
    whole = math.floor(weight)
    return whole * size + math.ceil(round((weight - whole) * size, 6))


def _batch_boundaries(longest: Indices, budget: Budget) -> list[int]:
    """Indices at which to cut pairs into batches within the budget; pairs are sorted by their longer side."""
    if budget.tokens is None:
        return list(range(budget.sentences or 1, len(longest), budget.sentences or 1))
    cuts, start = [], 0
    for index, length in enumerate(longest.tolist()):
        if (index - start + 1) * length > budget.tokens and index > start:
            cuts.append(index)
            start = index
    return cuts


# The batches of one optimizer update: a fixed number of batches, or about a number of target tokens.


@dataclass(frozen=True, slots=True)
class UpdateSize:
    """How many batches an update has; the last update of an epoch has those that are left."""

    num_batches: int = 1
    """`training.accumulate`; used only if `target_tokens` is None."""
    target_tokens: int | None = None
    """`training.update_tokens`: a batch is added as long as that brings the update closer to this number."""


def update_batches(
    batches: Iterable[Visits], order: EpochOrder, size: UpdateSize, epoch: int
) -> Iterator[list[Visits]]:
    """Yield all micro-batches of each update, before several processes share them out.

    They are a pure function of the order: an update that begins at a batch is the same one, whether `batches` begin
    there or earlier.

    Args:
        batches: of the epoch, from the first batch of the first update on.
        order: of these batches.
        size: how many of them an update has.
        epoch: the number of the epoch, from 0.
    """
    group: list[Visits] = []
    num_tokens = 0
    for batch in batches:
        added, is_complete = 0, len(group) >= size.num_batches
        if size.target_tokens is not None:
            # Complete is an update that is as close to its size without the next batch.
            added = int(order.lengths_of(batch, epoch)[1].sum())
            missing = size.target_tokens - num_tokens
            is_complete = added - missing >= missing
        if group and is_complete:
            yield group
            group, num_tokens = [], 0
        group.append(batch)
        num_tokens += added
    if group:
        yield group


def estimated_updates(order: EpochOrder, size: UpdateSize, epoch: int = 0) -> int:
    """Number of updates of an epoch: exact if it has one pool, else estimated from its first pool."""
    first_pool = order.pool_batches(epoch, 0)
    num_pools = order.num_pools(epoch)
    if size.target_tokens is None:
        return -(-len(first_pool) * num_pools // size.num_batches)
    return num_pools * sum(1 for _ in update_batches(first_pool, order, size, epoch))
