"""The pairs in each batch of each epoch: a pure function of (seed, epoch).

The shuffled order of an epoch is computed, not stored: a small cipher (`permute`) maps a position to a
pair. The order is cut into pools. Each pool is sorted by length and cut into batches of limited size,
and its batches are shuffled. So there is little padding, the memory needed does not grow with the
corpus, and training can resume at any batch of any epoch.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import Config, FilesData, HubData

POOL_SIZE = 200_000
NUM_ROUNDS = 6

Indices = NDArray[np.int64]
# From indices of pairs to the number of source tokens and of target tokens of each.
Lengths = Callable[[Indices], tuple[NDArray[np.int64], NDArray[np.int64]]]


class Budget(NamedTuple):
    """The limit of a batch: tokens of its longer side with padding, or sentences."""

    tokens: int | None = None
    sentences: int | None = None


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """The batches of every epoch.

    Args:
        lengths: gives the number of source and target tokens of pairs.
        sizes: number of pairs of each corpus; the corpora are stored one after the other.
        weights: visits per epoch of each pair of a corpus; with 1.5, each epoch visits every pair once
            and a random half of the pairs again.
        budget: limit of a batch; a single pair that exceeds it is a batch of its own.
        seed: different seeds give different orders.
        pool_size: the maximal number of pairs that are sorted by length together.
    """

    lengths: Lengths
    sizes: Sequence[int]
    weights: Sequence[float]
    budget: Budget
    seed: int
    pool_size: int = POOL_SIZE

    def batches(self, epoch: int, *, first: int = 0) -> Iterator[Indices]:
        """Yield the indices of the pairs of each batch of an epoch, starting at batch `first`."""
        pools = (self._pool_batches(epoch, pool) for pool in range(self._num_pools()))
        return itertools.islice(itertools.chain.from_iterable(pools), first, None)

    def estimated_batches(self) -> int:
        """Number of batches of an epoch: exact if it has one pool, else estimated from the first."""
        return len(self._pool_batches(0, 0)) * self._num_pools()

    def num_pairs(self) -> int:
        """Number of pairs that an epoch visits, repeated visits included."""
        return sum(map(_num_visits, self.sizes, self.weights))

    def _num_pools(self) -> int:
        return math.ceil(self.num_pairs() / self.pool_size)

    def _pool_batches(self, epoch: int, pool: int) -> list[Indices]:
        num_pairs, num_pools = self.num_pairs(), self._num_pools()
        start, end = (edge * num_pairs // num_pools for edge in (pool, pool + 1))
        positions = np.arange(start, end, dtype=np.int64)
        pairs = self._visited_pairs(permute(positions, num_pairs, (self.seed, epoch, 0)), epoch)
        source_lengths, target_lengths = self.lengths(pairs)
        longest = np.maximum(source_lengths, target_lengths)
        # A stable sort leaves pairs of equal length shuffled, so batches differ from epoch to epoch.
        by_length = np.argsort(longest, kind="stable")
        batches = np.split(pairs[by_length], _batch_boundaries(longest[by_length], self.budget))
        shuffled = permute(np.arange(len(batches)), len(batches), (self.seed, epoch, 1, pool))
        return [batches[index] for index in shuffled]

    def _visited_pairs(self, visits: Indices, epoch: int) -> Indices:
        """Map visit numbers to pair indices; each corpus has its full repetitions, then a random part."""
        pairs = np.empty_like(visits)
        first_visit = first_pair = 0
        for corpus, (size, weight) in enumerate(zip(self.sizes, self.weights, strict=True)):
            num_visits = _num_visits(size, weight)
            here = (visits >= first_visit) & (visits < first_visit + num_visits)
            within = visits[here] - first_visit
            whole = within < math.floor(weight) * size
            within[whole] %= size
            drawn = within[~whole] - math.floor(weight) * size
            within[~whole] = permute(drawn, size, (self.seed, epoch, 2, corpus))
            pairs[here] = first_pair + within
            first_visit += num_visits
            first_pair += size
        return pairs


def epoch_order(lengths: Lengths, corpus_sizes: Sequence[int], config: Config) -> EpochOrder:
    """The epoch order for the settings of a config."""
    weights = [1.0]
    if isinstance(config.data, FilesData | HubData):
        weights = [corpus.weight for corpus in config.data.corpora]
    budget = Budget(config.training.batch_tokens, config.training.batch_sentences)
    return EpochOrder(lengths, corpus_sizes, weights, budget, config.seed)


def padding_share(order: EpochOrder, *, max_batches: int = 1000) -> float:
    """Share of padding (0 to 1) in source and target of the first batches of the first epoch."""
    num_tokens = num_cells = 0
    for batch in itertools.islice(order.batches(0), max_batches):
        for lengths in order.lengths(batch):
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
    while is_outside.any():
        values[is_outside] = _feistel(values[is_outside], half_bits, round_keys)
        is_outside = values >= size
    return values.astype(np.int64)


def _feistel(
    values: NDArray[np.uint64], half_bits: np.uint64, round_keys: NDArray[Any]
) -> NDArray[np.uint64]:
    mask = (np.uint64(1) << half_bits) - np.uint64(1)
    left, right = values >> half_bits, values & mask
    for round_key in round_keys:
        left, right = right, left ^ (_mix(right ^ round_key) & mask)
    return (left << half_bits) | right


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A well-spread 64-bit hash (the finaliser of SplitMix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


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
