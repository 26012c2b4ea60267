"""Unigram sampling: the segmentation of a word into subwords is drawn with its probability under a unigram model.

Source: Kudo 2018, "Subword Regularization: Improving Neural Network Translation Models with Multiple Subword
Candidates", sections 3.2 and 3.3. A segmentation is drawn from all segmentations (l = infinity in the paper), by
forward filtering and backward sampling.
"""

import math
from bisect import bisect
from itertools import accumulate
from random import Random
from typing import NamedTuple

from transformer_cli.text.tokenizer_file import TokenizerParts
from transformer_cli.text.tokenizer_layout import BYTE_TOKENS
from transformer_cli.text.word_split import UNK

# The `tokenizers` library gives an unknown character the lowest score of the vocabulary minus this.
_UNKNOWN_PENALTY = 10.0


class Edge(NamedTuple):
    """A subword at a place of a word."""

    start: int
    """The number of characters before it."""
    ids: list[int]
    """Its id; several ids if it is an unknown character, which is encoded as bytes."""
    score: float
    """The logarithm of its probability."""


class Lattice(NamedTuple):
    """All segmentations of a word, and the most probable one."""

    ends: list[list[Edge]]
    """For each number of characters from 1 on, the subwords that end there."""
    shares: list[list[float]]
    """For each of these places, the cumulative probabilities of the subwords that end there, given a cut there."""
    ids: list[int]
    """The ids of the most probable segmentation."""


class LatticeSampling:
    """Draws a segmentation; its probability is proportional to the product of its subwords' probabilities ^ alpha.

    (The `tokenizers` library does the same for alpha 1. For other values it raises the probability of the first
    subwords to the power more than once.)

    Args:
        parts: a Unigram tokenizer.
        alpha: 0: all segmentations are equally probable; the larger it is, the more often the best one is drawn.
    """

    def __init__(self, parts: TokenizerParts, alpha: float) -> None:
        scores: list[tuple[str, float]] = parts.model["vocab"]
        self._entries = {piece: (index, score) for index, (piece, score) in enumerate(scores)}
        self._longest = max(map(len, self._entries))
        self._unknown_score = min(score for _, score in scores) - _UNKNOWN_PENALTY
        self._has_byte_fallback = parts.layout.has_byte_fallback
        self._alpha = alpha

    def prepare(self, piece: str) -> Lattice:
        """All segmentations of a word, which is given in the characters of the vocabulary."""
        ends = self._edges(piece)
        best, log_sums, shares = [0.0], [0.0], []
        best_edges: list[Edge] = []
        for edges in ends:
            # Of equally probable segmentations, the library takes the one whose last subword is the longest.
            totals = [best[edge.start] + edge.score for edge in edges]
            best.append(max(totals))
            best_edges.append(edges[totals.index(best[-1])])
            weights = [log_sums[edge.start] + self._alpha * edge.score for edge in edges]
            highest = max(weights)
            sums = list(accumulate(math.exp(weight - highest) for weight in weights))
            log_sums.append(highest + math.log(sums[-1]))
            shares.append([one / sums[-1] for one in sums])
        return Lattice(ends, shares, _joined(best_edges))

    def ordinary(self, piece: Lattice) -> list[int]:
        """The ids of the most probable segmentation."""
        return piece.ids

    def sample(self, piece: Lattice, numbers: Random) -> list[int]:
        """The ids of one segmentation: the last subword is drawn first, then the one before it."""
        ends, shares, chosen = piece.ends, piece.shares, list[list[int]]()
        place = len(ends)
        while place:
            number = (
                bisect(shares[place - 1], numbers.random()) if len(shares[place - 1]) > 1 else 0
            )
            edge = ends[place - 1][number]
            chosen.append(edge.ids)
            place = edge.start
        return [index for ids in reversed(chosen) for index in ids]

    def _edges(self, piece: str) -> list[list[Edge]]:
        ends: list[list[Edge]] = [[] for _ in piece]
        for start, character in enumerate(piece):
            for end in range(start + 1, min(len(piece), start + self._longest) + 1):
                entry = self._entries.get(piece[start:end])
                if entry is not None:
                    ends[end - 1].append(Edge(start, [entry[0]], entry[1]))
            if character not in self._entries:
                unknown = Edge(start, self._unknown_ids(character), self._unknown_score)
                ends[start].append(unknown)
        return ends

    def _unknown_ids(self, character: str) -> list[int]:
        names = [UNK]
        if self._has_byte_fallback:
            names = [BYTE_TOKENS[byte] for byte in character.encode()]
        return [self._entries[name][0] for name in names]


def _joined(last_edges: list[Edge]) -> list[int]:
    """The ids of the best segmentation; edge i is the last subword of the best segmentation of i + 1 characters."""
    ids: list[int] = []
    place = len(last_edges)
    while place:
        edge = last_edges[place - 1]
        ids[:0] = edge.ids
        place = edge.start
    return ids
