"""How probable a target token is as the translation of a source token: counted from training pairs, by given links or by IBM model 1."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.encoded import EncodedCorpus

Numbers = NDArray[np.int64]

_PAIRS_AT_ONCE = 5_000
_ITERATIONS = 5
# Cells are places in memory: 8 bytes each for their index among the distinct ones.
_MOST_CELLS_KEPT = 40_000_000


class Lexicon(NamedTuple):
    """The most probable translations of each source token, and all target tokens by frequency."""

    starts: Numbers
    """(source vocabulary + 1,): the translations of source token s are those from starts[s] to starts[s + 1]."""
    translations: Numbers
    """Target tokens; those of one source token are sorted, the most probable first."""
    by_frequency: Numbers
    """Target tokens that occur, the most frequent first."""
    num_pairs: int
    """How many training pairs were read."""


def learn_lexicon(train: EncodedCorpus, vocab_sizes: tuple[int, int], *, num_best: int, max_pairs: int) -> Lexicon:
    """The lexicon of a training split.

    With given word alignments, the probability of t after s is the share of t among the links of s. Else IBM model 1 finds the
    links: each target token of a pair comes from one of its source tokens, with a probability that is learned by expectation
    maximisation. [EOS] of the source takes the part of the empty word.

    Args:
        train: the pairs as token ids.
        vocab_sizes: of source and target.
        num_best: how many translations each source token gets at most.
        max_pairs: of a larger corpus, so many pairs are read, evenly spread.

    Source: Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4.2.
    """
    num_pairs = min(len(train), max_pairs)
    chosen = np.linspace(0, len(train) - 1, num_pairs).round().astype(np.int64)
    chunks = [chosen[first : first + _PAIRS_AT_ONCE] for first in range(0, num_pairs, _PAIRS_AT_ONCE)]
    frequencies = np.zeros(vocab_sizes[1], np.int64)
    for chunk in chunks:
        (_, _), (ids, is_real) = train.padded(chunk, 0)
        frequencies += np.bincount(ids[is_real], minlength=vocab_sizes[1])
    codes, counts = (
        _counted_links(train, chunks, vocab_sizes[1])
        if train.links(chosen[:1]) is not None
        else _expected_links(train, chunks, vocab_sizes[1])
    )
    sources, targets = np.divmod(codes, vocab_sizes[1])
    order = np.lexsort((targets, -counts, sources))
    sources, targets = sources[order], targets[order]
    firsts = np.searchsorted(sources, np.arange(vocab_sizes[0] + 1))
    is_best = np.arange(len(sources)) - firsts[sources] < num_best
    starts = np.searchsorted(sources[is_best], np.arange(vocab_sizes[0] + 1))
    by_frequency = np.argsort(-frequencies, kind="stable")
    return Lexicon(starts, targets[is_best], by_frequency[: int((frequencies > 0).sum())], num_pairs)


def _counted_links(
    train: EncodedCorpus, chunks: list[Numbers], num_targets: int
) -> tuple[Numbers, NDArray[np.float64]]:
    """The linked pairs of tokens, as source * num_targets + target, and how often each is linked."""
    found: list[Numbers] = []
    for chunk in chunks:
        for index, links in zip(chunk.tolist(), train.links(chunk) or [], strict=True):
            source, target = (np.asarray(ids).astype(np.int64) for ids in train[index])
            found.append(source[links[1::2]] * num_targets + target[links[0::2]])
    codes, counts = np.unique(np.concatenate([np.empty(0, np.int64), *found]), return_counts=True)
    return codes, counts.astype(np.float64)


def _expected_links(
    train: EncodedCorpus, chunks: list[Numbers], num_targets: int
) -> tuple[Numbers, NDArray[np.float64]]:
    """The same for links that are not given: the expected numbers under IBM model 1."""
    codes = np.empty(0, np.int64)
    num_cells = 0
    for cells, _ in _cells(train, chunks, num_targets):
        codes = np.union1d(codes, cells)
        num_cells += len(cells)
    sources = codes // num_targets
    kept: list[tuple[Numbers, Numbers]] | None = None
    if num_cells <= _MOST_CELLS_KEPT:
        kept = [(np.searchsorted(codes, cells), firsts) for cells, firsts in _cells(train, chunks, num_targets)]
    probabilities, counts = np.ones(len(codes)), np.ones(len(codes))
    for _ in range(_ITERATIONS):
        counts = np.zeros(len(codes))
        located = kept or (
            (np.searchsorted(codes, cells), firsts) for cells, firsts in _cells(train, chunks, num_targets)
        )
        for places, firsts in located:
            if not len(places):
                continue
            cell_probabilities = probabilities[places]
            totals = np.add.reduceat(cell_probabilities, firsts)
            sizes = np.diff(firsts, append=len(places))
            counts += np.bincount(places, cell_probabilities / np.repeat(totals, sizes), minlength=len(codes))
        source_counts = np.bincount(sources, counts)
        probabilities = counts / source_counts[sources]
    return codes, counts


def _cells(train: EncodedCorpus, chunks: list[Numbers], num_targets: int) -> Iterator[tuple[Numbers, Numbers]]:
    """For each chunk the pairs of a target token and a source token of one sentence pair, as source * num_targets + target.

    The cells of a target token stand side by side; the second array has the place of the first cell of each.
    """
    for chunk in chunks:
        (source_ids, is_source), (target_ids, is_target) = train.padded(chunk, 0)
        source_lengths, target_lengths = is_source.sum(1), is_target.sum(1)
        sources = source_ids[is_source].astype(np.int64)
        targets = target_ids[is_target].astype(np.int64)
        first_sources = np.repeat(np.cumsum(source_lengths) - source_lengths, target_lengths)
        sizes = np.repeat(source_lengths, target_lengths)  # for each target token: cells
        firsts = np.cumsum(sizes) - sizes
        within = np.arange(int(sizes.sum())) - np.repeat(firsts, sizes)
        cells = sources[np.repeat(first_sources, sizes) + within] * num_targets
        yield cells + np.repeat(targets, sizes), firsts[sizes > 0]
