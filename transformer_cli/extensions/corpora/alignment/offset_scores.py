"""How well lines of both sides fit together at each offset, as logarithms of probability ratios."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transformer_cli.extensions.corpora.alignment.line_features import NUM_MARKS, FeatureTable

Array = NDArray[np.float64]
# The overlap of two lines: the sum of log(lines / lines with this word) over their common words, in classes.
_OVERLAP_CLASSES = np.array([1e-9, 2.0, 4.0, 6.0, 9.0, 13.0])
_NUM_CLASSES = len(_OVERLAP_CLASSES) + 1
_LIKELY_OVERLAP = np.array([-0.2, 0.2, 0.6, 1.0, 2.0, 3.0, 4.0])
_LIKELY_DEVIATION = 0.4
_MIN_DEVIATION = 0.05
# One line alone says at most so much, because single lines may be translated freely, or not at all.
_LEAST, _MOST = -3.0, 4.0
_PSEUDO_COUNT = 20.0
_NUM_BACKGROUND_SHIFTS = 5
# How many offsets are tried for lines without translations nearby, and how frequent a rare word may be.
_NUM_TRIED, _RARE = 8, 20


@dataclass(frozen=True, slots=True)
class Pairing:
    """Lines of the source, each with the line of the target at the same offset from it."""

    source_lengths: Array
    target_lengths: Array
    source_marks: NDArray[np.int64]
    target_marks: NDArray[np.int64]
    overlaps: NDArray[np.int64]
    """The class of the overlap of each pair."""
    are_real: NDArray[np.bool_]
    """Whether both lines exist and are not empty."""

    def of(self, rows: NDArray[np.bool_]) -> Self:
        """The pairs of some rows."""
        columns = (getattr(self, name)[rows] for name in self.__dataclass_fields__)
        return type(self)(*columns)


def joined(parts: Sequence[Pairing]) -> Pairing:
    """The pairs of several groups, one after the other."""
    names = Pairing.__dataclass_fields__
    return Pairing(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class Window:
    """Consecutive lines of the source, and the lines of the target around them.

    Args:
        source: the lines of the source.
        target: the lines of the target from `num_before` lines before the first line of the source on.
    """

    def __init__(self, source: FeatureTable, target: FeatureTable, *, num_before: int) -> None:
        self.source, self.target, self._num_before = source, target, num_before
        self._real_rows = np.flatnonzero(target.lengths > 0)
        present = target.anchors[target.anchors > 0]
        self._known, counts = np.unique(present, return_counts=True)
        num_real = max(1, len(self._real_rows))
        self._weights = np.log(num_real / np.maximum(1, counts)).clip(min=0.0)

    def __len__(self) -> int:
        return len(self.source)

    def pairing(self, offset: int) -> Pairing:
        """Each line of the source with the target line that stands `offset` lines after it."""
        rows = np.arange(len(self)) + self._num_before + offset
        exist = (rows >= 0) & (rows < len(self.target))
        return self._pairing(np.where(exist, rows, 0), exist)

    def background(self) -> list[Pairing]:
        """Lines that do not belong together: from far places of the window."""
        real = self._real_rows
        if not len(real):
            return [self.pairing(0)]
        rows = np.arange(len(self)) * len(real) // max(1, len(self))
        exist = np.full(len(self), True)
        shifts = np.linspace(0, len(real), _NUM_BACKGROUND_SHIFTS + 2)[1:-1].astype(int)
        return [self._pairing(real[(rows + shift) % len(real)], exist) for shift in shifts]

    def likely_offsets(self, first: int, last: int) -> list[int]:
        """The offsets at which some lines of the source may fit, out of all that the window has.

        By correlation of the lengths and marks of the lines, and by rare words that both sides have.
        """
        rows = slice(first, last + 1)
        num_offsets = len(self.target) - (last - first)
        if num_offsets <= 0:  # the target has ended
            return []
        correlation = np.zeros(num_offsets)
        channels = [(self.source.lengths, self.target.lengths)]
        for bit in range(NUM_MARKS):
            sides = (self.source.marks >> bit & 1, self.target.marks >> bit & 1)
            channels.append((sides[0].astype(np.float64), sides[1].astype(np.float64)))
        for source, target in channels:
            correlation += np.correlate(_standardized(target), _standardized(source[rows]), "valid")
        common = np.zeros(num_offsets)
        np.add.at(common, *self._common_words(rows, num_offsets))
        best = [*np.argsort(correlation)[-_NUM_TRIED:], *np.argsort(common)[-_NUM_TRIED:]]
        return [int(place) - self._num_before - first for place in dict.fromkeys(best)]

    def _common_words(self, rows: slice, num_offsets: int) -> tuple[NDArray[np.intp], Array]:
        """For each rare word that a line of the source and one of the target have: their distance, its weight."""
        flat = self.target.anchors.ravel()
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        words = self.source.anchors[rows]
        distances: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp)]
        weights: list[Array] = [np.zeros(0)]
        for line, column in zip(*np.nonzero(words), strict=True):
            word = words[line, column]
            start, end = (
                np.searchsorted(ordered, word),
                np.searchsorted(ordered, word, side="right"),
            )
            if 0 < end - start <= _RARE:
                distance = order[start:end] // self.target.anchors.shape[1] - line
                inside = distance[(distance >= 0) & (distance < num_offsets)]
                distances.append(inside)
                weights.append(np.full(len(inside), 1.0 / (end - start)))
        return np.concatenate(distances), np.concatenate(weights)

    def _pairing(self, rows: NDArray[np.intp], exist: NDArray[np.bool_]) -> Pairing:
        lengths, anchors = self.target.lengths[rows], self.target.anchors[rows]
        are_common = np.zeros(self.source.anchors.shape, dtype=bool)
        for column in range(anchors.shape[1]):
            are_common |= self.source.anchors == anchors[:, column : column + 1]
        are_common &= self.source.anchors > 0
        places = np.searchsorted(self._known, self.source.anchors).clip(
            max=max(0, len(self._known) - 1)
        )
        weights = self._weights[places] if len(self._known) else np.zeros(places.shape)
        overlaps = np.digitize((weights * are_common).sum(axis=1), _OVERLAP_CLASSES)
        are_real = exist & (self.source.lengths > 0) & (lengths > 0)
        return Pairing(
            self.source.lengths,
            lengths,
            self.source.marks,
            self.target.marks[rows],
            overlaps,
            are_real,
        )


@dataclass(frozen=True, slots=True)
class OffsetModel:
    """What lengths, marks and common words say about whether two lines belong together."""

    slope: float
    intercept: float
    deviation: float
    """Standard deviation of the logarithm of the target length, given the source length."""
    marginal: tuple[float, float]
    """Mean and standard deviation of the logarithm of the target length."""
    marks: Array
    """(NUM_MARKS, 2, 2): log-ratio, by whether the source and the target have the mark."""
    overlaps: Array
    """Log-ratio for each class of overlap."""

    @classmethod
    def likely(cls, window: Window) -> Self:
        """A model for the first look, before any lines are known to belong together."""
        sides = [table.lengths[table.lengths > 0] for table in (window.source, window.target)]
        source, target = (float(np.median(side)) if len(side) else 0.0 for side in sides)
        spread = float(sides[1].std()) if len(sides[1]) else 1.0
        marks = np.zeros((NUM_MARKS, 2, 2))
        marks[:, [0, 1], [0, 1]], marks[:, [0, 1], [1, 0]] = 0.2, -0.4
        mean = float(sides[1].mean()) if len(sides[1]) else 0.0
        marginal = (mean, max(_MIN_DEVIATION, spread))
        return cls(1.0, target - source, _LIKELY_DEVIATION, marginal, marks, _LIKELY_OVERLAP)

    @classmethod
    def fitted(cls, aligned: Pairing, unrelated: Pairing) -> Self:
        """The model that pairs of lines show which belong together, and others that do not."""
        x, y = aligned.source_lengths, aligned.target_lengths
        slope = float(np.cov(x, y, bias=True)[0, 1] / max(1e-9, float(x.var())))
        intercept = float(y.mean() - slope * x.mean())
        deviation = max(_MIN_DEVIATION, float((y - intercept - slope * x).std()))
        marginal = float(unrelated.target_lengths.mean()), float(unrelated.target_lengths.std())
        marks = np.zeros((NUM_MARKS, 2, 2))
        for bit in range(NUM_MARKS):
            sides = ((aligned.source_marks >> bit) & 1, (aligned.target_marks >> bit) & 1)
            table = np.bincount(2 * sides[0] + sides[1], minlength=4).reshape(2, 2)
            marks[bit] = _information(table.astype(np.float64))
        shares = [
            _shares(np.bincount(one.overlaps, minlength=_NUM_CLASSES))
            for one in (unrelated, aligned)
        ]
        # Both histograms are drawn together where few pairs were counted.
        overlaps = np.log(shares[1] / shares[0])
        return cls(
            slope, intercept, deviation, (marginal[0], max(deviation, marginal[1])), marks, overlaps
        )

    def scores(self, pairs: Pairing) -> Array:
        """For each pair: log P(both | they belong together) - log P(both | they do not); 0 if a line is empty."""
        x, y = pairs.source_lengths, pairs.target_lengths
        given = _log_normal(y, self.intercept + self.slope * x, self.deviation)
        score = (given - _log_normal(y, *self.marginal)).clip(-2.0, 2.0)
        for bit in range(NUM_MARKS):
            score += self.marks[bit][
                (pairs.source_marks >> bit) & 1, (pairs.target_marks >> bit) & 1
            ]
        score += self.overlaps[pairs.overlaps]
        return np.where(pairs.are_real, score.clip(_LEAST, _MOST), 0.0)


def _standardized(values: Array) -> Array:
    return (values - values.mean()) / max(1e-9, float(values.std()))


def _log_normal(values: Array, mean: Array | float, deviation: float) -> Array:
    return -0.5 * ((values - mean) / deviation) ** 2 - np.log(deviation)


def _information(table: Array) -> Array:
    """log P(x, y) / (P(x) P(y)) of a 2 x 2 table of counts, drawn to 0 where few pairs were counted."""
    total = table.sum()
    rows = (table.sum(axis=1, keepdims=True) + 0.5) / (total + 1.0)
    columns = (table.sum(axis=0, keepdims=True) + 0.5) / (total + 1.0)
    expected = rows * columns
    smoothed = (table + _PSEUDO_COUNT * expected) / (total + _PSEUDO_COUNT)
    return np.log(smoothed / expected)


def _shares(counts: NDArray[np.int64]) -> Array:
    return (counts + 1.0) / (counts.sum() + len(counts))
