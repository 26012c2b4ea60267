"""Drift: the lines from which on the two sides of a corpus no longer belong together, and their pairs put together again.

Each line has features that its translation has too (`LineFeatures`); they tell how well lines of both sides fit together at each
offset (`OffsetModel`); an offset seldom changes, so the most likely offset of each line is a path (`OffsetPath`). Lengths, marks
and common words say little about short sentences in two scripts; there the strings of letters decide (`relations_by_offset`).
"""

import math
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from transformer_cli.extensions.corpora.pairs import NO_SOURCE, NO_TARGET, NumberedPair

NUM_ANCHORS = 12
"""At most this many numbers and words of a line are compared."""
_NUM_CHARACTERS = 2000
_MIN_LETTERS, _PREFIX_LETTERS = 3, 4
# Marks of several scripts that have the same meaning; each group is one bit.
_MARKS = (
    "?\uff1f\u061f;\u055e\u1367",
    "!\uff01\u055c",
    '"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f',
    ",\uff0c\u3001\u060c\u104a\u1363",
    "()\uff08\uff09[]",
    ":\uff1a\u1365",
    "%\u20ac$\u00a3\u00a5",
    "0123456789",
)
_BIT_OF_MARK = {mark: 1 << bit for bit, marks in enumerate(_MARKS) for mark in marks}
NUM_MARKS = len(_MARKS)
_MARK = re.compile("[" + re.escape("".join(_BIT_OF_MARK)) + "]")
_WORD = re.compile(r"\d+|[^\W\d_]+")
_DIGIT_OF_ANOTHER_SCRIPT = re.compile(r"(?![0-9])\d")

LineFeatures = tuple[float, int, tuple[int, ...]]
"""Logarithm of the length, punctuation marks as bits, and hashes of numbers and words."""
NO_LINE: LineFeatures = (0.0, 0, ())
"""The features of an empty line: they say nothing about its translation."""


def line_features(text: str) -> LineFeatures:
    """The features of a line; those of a long one come from its first 2,000 characters, except the length."""
    num_characters = len(text)
    if not num_characters or text.isspace():
        return NO_LINE
    beginning = _DIGIT_OF_ANOTHER_SCRIPT.sub(lambda match: str(unicodedata.decimal(match[0])), text[:_NUM_CHARACTERS])
    marks = 0
    for mark in set(_MARK.findall(beginning)):
        marks |= _BIT_OF_MARK[mark]
    anchors: dict[int, None] = {}
    for word in _WORD.findall(beginning.casefold()):
        if len(word) >= _MIN_LETTERS or word[0].isdecimal():
            # Related words of two languages often begin with the same letters; numbers must be equal.
            start = word if word[0].isdecimal() else word[:_PREFIX_LETTERS]
            anchors[crc32(start.encode()) or 1] = None
            if len(anchors) == NUM_ANCHORS:
                break
    return math.log(num_characters + 1), marks, tuple(anchors)


class FeatureTable:
    """The features of consecutive lines of one side, as arrays."""

    def __init__(self, lines: list[LineFeatures]) -> None:
        self.lengths = np.array([length for length, _, _ in lines], dtype=np.float64)
        self.marks = np.array([marks for _, marks, _ in lines], dtype=np.int64)
        self.anchors: NDArray[np.uint32] = np.zeros((len(lines), NUM_ANCHORS), dtype=np.uint32)
        for row, (_, _, anchors) in enumerate(lines):
            self.anchors[row, : len(anchors)] = anchors

    def __len__(self) -> int:
        return len(self.lengths)


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


def joined_pairings(parts: Sequence[Pairing]) -> Pairing:
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
        places = np.searchsorted(self._known, self.source.anchors).clip(max=max(0, len(self._known) - 1))
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
        shares = [_shares(np.bincount(one.overlaps, minlength=_NUM_CLASSES)) for one in (unrelated, aligned)]
        # Both histograms are drawn together where few pairs were counted.
        overlaps = np.log(shares[1] / shares[0])
        return cls(slope, intercept, deviation, (marginal[0], max(deviation, marginal[1])), marks, overlaps)

    def scores(self, pairs: Pairing) -> Array:
        """For each pair: log P(both | they belong together) - log P(both | they do not); 0 if a line is empty."""
        x, y = pairs.source_lengths, pairs.target_lengths
        given = _log_normal(y, self.intercept + self.slope * x, self.deviation)
        score = (given - _log_normal(y, *self.marginal)).clip(-2.0, 2.0)
        for bit in range(NUM_MARKS):
            score += self.marks[bit][(pairs.source_marks >> bit) & 1, (pairs.target_marks >> bit) & 1]
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


NUM_COMPARED_LINES = 500
"""So many lines at the beginning are compared by their strings of letters."""
_COMPARED_CHARACTERS = 200
_STRING_LENGTHS = (2, 3)
_NUM_STRING_CLASSES = 2048
_MAX_FAR_SHIFTS = 100
_LEAST_DEVIATION = 1e-6
# In standard deviations: aligned lines had 10 and more from 40 lines on, shuffled ones at most 2.4 (docs/experiments.md).
_CLEAR_RELATION = 5.0
_ENOUGH_LINES = 100


def relations_by_offset(source: Sequence[str], target: Sequence[str]) -> dict[int, float]:
    """For each offset up to `MAX_OFFSET` how much more the lines have to do with each other than lines far apart.

    Lines are alike if they have strings of two and three characters in common. If the lines of the target are translations, two
    of them are alike where their sources are; this holds in every pair of scripts, with and without spaces between words.

    Returns:
        the Hilbert-Schmidt criterion at each offset, in standard deviations from its mean over larger shifts; nothing if there are
        too few lines for such shifts, or if all lines are alike.

    Source: Gretton et al. 2008, "A kernel statistical test of independence"; shifts instead of permutations, because neighbours of
        a corpus are alike as well.
    """
    num_lines = min(len(source), len(target))
    num_shifts = num_lines - 2 * MAX_OFFSET - 1
    if num_shifts <= MAX_OFFSET:
        return {}
    likeness = _likeness(source[:num_lines]), _likeness(target[:num_lines])

    def criterion(offset: int) -> float:
        rows = (np.arange(num_lines) + offset) % num_lines
        return float((likeness[0] * likeness[1][np.ix_(rows, rows)]).sum())

    shifts = np.linspace(MAX_OFFSET + 1, num_lines - MAX_OFFSET - 1, min(num_shifts, _MAX_FAR_SHIFTS))
    far = [criterion(shift) for shift in np.unique(shifts.astype(int)).tolist()]
    mean, deviation = float(np.mean(far)), float(np.std(far))
    if deviation < _LEAST_DEVIATION:
        return {}
    return {offset: (criterion(offset) - mean) / deviation for offset in _NEAR}


def _likeness(lines: Sequence[str]) -> NDArray[np.float32]:
    """(lines, lines): the cosine of the centred vectors of strings, weighted by rarity; 0 on the diagonal."""
    are_present = np.zeros((len(lines), _NUM_STRING_CLASSES), dtype=np.float32)
    for row, line in enumerate(lines):
        text = f" {line.casefold()} "
        strings = {
            text[start : start + length] for length in _STRING_LENGTHS for start in range(len(text) - length + 1)
        }
        places = [crc32(string.encode("utf-8", "surrogatepass")) for string in strings]
        are_present[row, np.array(places, dtype=np.int64) % _NUM_STRING_CLASSES] = 1.0
    shares = are_present.mean(axis=0)
    vectors = are_present * np.log(1.0 / np.maximum(shares, 1.0 / len(lines)))
    vectors /= np.maximum(1e-9, np.linalg.norm(vectors, axis=1, keepdims=True))
    vectors -= vectors.mean(axis=0)
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, 0.0)
    return likeness


COST_OF_CHANGE = 30.0
"""How much better a new offset must fit, as a log-ratio summed over the lines, before it is believed."""


class OffsetPath:
    """The states of consecutive lines; they are settled one call of `add` later, when what follows is known.

    Args:
        num_states: one for each offset, and one for lines that belong to no line nearby.
        first: the state in which the first line probably is.
    """

    def __init__(self, num_states: int, *, first: int) -> None:
        self._best = np.full(num_states, -COST_OF_CHANGE)
        """(states,) the score of the best path that ends in each state, compared with the best of them."""
        self._best[first] = 0.0
        self.score = 0.0
        """The score of the best path, without the costs before its first line."""
        self._unsettled: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = None

    def add_states(self, number: int) -> None:
        """Add states, which the lines before now cannot have."""
        self._best = np.append(self._best, np.full(number, -np.inf))

    def trial(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The states of the next lines if nothing followed them; the path stays as it is."""
        changed, previous, best = _forward(self._best, scores)
        return _backward(changed, previous, int(best.argmax()))[0]

    def add(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Add lines, and return the states of the lines of the call before.

        Args:
            scores: (lines, states).
        """
        changed, previous, self._best = _forward(self._best, scores)
        self.score += float(self._best.max())
        self._best -= self._best.max()
        settled = np.zeros(0, dtype=np.int64)
        if self._unsettled is not None:
            _, state = _backward(changed, previous, int(self._best.argmax()))
            settled, _ = _backward(*self._unsettled, state)
        self._unsettled = (changed, previous)
        return settled

    def finish(self) -> NDArray[np.int64]:
        """The states of the lines that are not settled yet."""
        if self._unsettled is None:
            return np.zeros(0, dtype=np.int64)
        return _backward(*self._unsettled, int(self._best.argmax()))[0]


def _forward(
    best: NDArray[np.float64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """For each line and state whether the state is new, for each line the state before a change, and the end."""
    changed = np.zeros(scores.shape, dtype=bool)
    previous = np.zeros(len(scores), dtype=np.int64)
    for line, row in enumerate(scores):
        top = best.argmax()
        from_top = best[top] - COST_OF_CHANGE
        changed[line], previous[line] = best < from_top, top
        best = np.maximum(best, from_top) + row
    return changed, previous, best


def _backward(changed: NDArray[np.bool_], previous: NDArray[np.int64], last: int) -> tuple[NDArray[np.int64], int]:
    """The states of the lines, and the state before the first of them."""
    states = np.zeros(len(changed), dtype=np.int64)
    state = last
    for line in range(len(changed) - 1, -1, -1):
        states[line] = state
        if changed[line, state]:
            state = int(previous[line])
    return states, state


MAX_OFFSET = 10
"""Line N of the source is compared with the lines N - 10 to N + 10 of the target."""
WINDOW_LINES = 10_000
FAR_LINES = 2000
"""Where its translation is not among them, it is searched among the lines N - 2,000 to N + 2,000."""
_NEAR = range(-MAX_OFFSET, MAX_OFFSET + 1)
_UNRELATED = len(_NEAR)
_ALIGNED = MAX_OFFSET
# So many lines without translations nearby let the others be searched, by at most so many of them.
_MIN_LOST_LINES, _MAX_SEARCHED_LINES = 60, 1000
# With an offset that was found, those next to it are possible too, but not more states than this in all.
_NEIGHBOURS, _MAX_STATES = 3, 80
_NUM_LOOKS = 3
_FEW_PAIRS = 30
# With less information per line than this, in nats, the sides do not belong together anywhere.
_MIN_INFORMATION = 0.04


class Stretch(NamedTuple):
    """Consecutive lines of the source whose translations stand at the same offset; in a table, a row counts as a line."""

    first_line: int
    """Its number, from 1."""
    last_line: int
    offset: int | None
    """Line N of the source belongs to line N + offset of the target; None: to no line nearby."""


Relation = Literal["related", "unrelated", "unclear"]
"""Whether lines of the two sides translate each other; unclear: the corpus is too small, or its lines too alike, to tell."""


class DriftFinder:
    """Finds drift while a corpus is read; it keeps the features of some thousand lines."""

    def __init__(self) -> None:
        self.relation: Relation = "related"
        """Known after `finish`."""
        self._first: tuple[list[str], list[str]] = ([], [])
        """The beginning of each side, as text."""
        self._source: list[LineFeatures] = []
        self._target: list[LineFeatures] = [NO_LINE] * FAR_LINES
        self._offsets: list[int | None] = [*_NEAR, None]
        """The offset of each state; None: a line that belongs to no line of the target."""
        self._path = OffsetPath(len(self._offsets), first=_ALIGNED)
        self._model: OffsetModel | None = None
        self._stretches: list[Stretch] = []
        self._num_settled = 0
        self._num_informed = 0
        """How many lines of the source had a line of the target beside them, both not empty."""

    def add(self, source: str | None, target: str | None) -> None:
        """Add a line of each side; None for a side that has ended."""
        if source is not None:
            self._source.append(line_features(source))
        if target is not None:
            self._target.append(line_features(target))
        for first, text in zip(self._first, (source, target), strict=True):
            if text is not None and len(first) < NUM_COMPARED_LINES:
                first.append(text[:_COMPARED_CHARACTERS])
        if min(len(self._source), len(self._target) - 2 * FAR_LINES) >= WINDOW_LINES:
            self._look(WINDOW_LINES)

    def finish(self) -> list[Stretch]:
        """All stretches of the corpus, in order; a clean corpus has one, with offset 0.

        If the relation is unclear, the lines count as they stand: one stretch with offset 0.
        """
        while self._source:
            self._look(min(len(self._source), WINDOW_LINES))
        self._settle(self._path.finish())
        are_lost = all(stretch.offset is None for stretch in self._stretches)
        if are_lost or self._path.score < _MIN_INFORMATION * self._num_informed:
            self._stretches = self._by_strings()
        return self._stretches

    def _by_strings(self) -> list[Stretch]:
        """One stretch for all lines, by `relations_by_offset`."""
        if not self._num_settled:
            return []
        relations = relations_by_offset(*self._first)
        offset = max(relations, key=relations.__getitem__, default=0)
        if relations.get(offset, 0.0) >= _CLEAR_RELATION:
            return [Stretch(1, self._num_settled, offset)]
        has_enough = bool(relations) and min(map(len, self._first)) >= _ENOUGH_LINES
        self.relation = "unrelated" if has_enough else "unclear"
        return [Stretch(1, self._num_settled, None if has_enough else 0)]

    def _look(self, num_lines: int) -> None:
        """Score the next lines at each offset, and continue the path."""
        window = Window(
            FeatureTable(self._source[:num_lines]),
            FeatureTable(self._target[: num_lines + 2 * FAR_LINES] or [NO_LINE]),
            num_before=FAR_LINES,
        )
        del self._source[:num_lines], self._target[:num_lines]
        pairings = self._pairings(window)
        model = self._learn(window, pairings)
        scores = self._scores(model, pairings)
        while self._model is not None and self._add_far_offset(window, model, scores):
            pairings = self._pairings(window)
            scores = self._scores(model, pairings)
        self._num_informed += int(pairings[_ALIGNED].are_real.sum())
        self._settle(self._path.add(scores))

    def _pairings(self, window: Window) -> list[Pairing]:
        """For each state the lines at its offset; for the state without one, those at offset 0."""
        return [window.pairing(offset or 0) for offset in self._offsets]

    def _learn(self, window: Window, pairings: list[Pairing]) -> OffsetModel:
        """The model of these lines: fitted to the pairs that the model before takes for aligned."""
        model = self._model or OffsetModel.likely(window)
        background = [pairing.of(pairing.are_real) for pairing in window.background()]
        for _ in range(_NUM_LOOKS if self._model is None else 1):
            aligned = _along(self._path.trial(self._scores(model, pairings)), pairings)
            if len(aligned.are_real) < _FEW_PAIRS:
                break
            model = self._model = OffsetModel.fitted(aligned, joined_pairings(background))
        return model

    def _scores(self, model: OffsetModel, pairings: list[Pairing]) -> NDArray[np.float64]:
        """(lines, states): how well each offset fits each line; 0 for the state of unrelated lines."""
        scores = np.stack([model.scores(pairing) for pairing in pairings], axis=1)
        # Before the first look nothing is known that would tell related lines from others.
        scores[:, _UNRELATED] = 0.0 if self._model is not None else -np.inf
        return scores

    def _add_far_offset(self, window: Window, model: OffsetModel, scores: NDArray[np.float64]) -> bool:
        """Whether an offset was found for lines without translations nearby; it becomes a state of the path."""
        states = self._path.trial(scores)
        for first, last in _searched(states):
            rows = np.zeros(len(window), dtype=bool)
            rows[first : last + 1] = True
            gains = {
                offset: float(model.scores(window.pairing(offset).of(rows)).sum())
                for offset in window.likely_offsets(first, last)
                if offset not in self._offsets
            }
            best = max(gains, key=gains.__getitem__, default=0)
            if gains.get(best, 0.0) < 2 * COST_OF_CHANGE or len(self._offsets) >= _MAX_STATES:
                continue
            around = range(best - _NEIGHBOURS, best + _NEIGHBOURS + 1)
            new = [offset for offset in around if offset not in self._offsets]
            self._offsets += new
            self._path.add_states(len(new))
            return True
        return False

    def _settle(self, states: NDArray[np.int64]) -> None:
        for first, last in _runs(states):
            offset = self._offsets[int(states[first])]
            stretch = Stretch(self._num_settled + first + 1, self._num_settled + last + 1, offset)
            if self._stretches and self._stretches[-1].offset == offset:
                stretch = stretch._replace(first_line=self._stretches.pop().first_line)
            self._stretches.append(stretch)
        self._num_settled += len(states)


def _searched(states: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The ends and beginnings of the runs of lines without translations nearby, as first and last index.

    The ends come first: where lines of the target are missing, those at the beginning have no translation at all.
    """
    for first, last in _runs(states):
        if states[first] == _UNRELATED and last - first + 1 >= _MIN_LOST_LINES:
            length = min(last - first + 1, _MAX_SEARCHED_LINES)
            yield last - length + 1, last
            yield first, first + length - 1


def _along(states: NDArray[np.int64], pairings: list[Pairing]) -> Pairing:
    """The pairs of a path, without unrelated and empty lines."""
    return joined_pairings(
        [
            pairing.of((states == state) & pairing.are_real)
            for state, pairing in enumerate(pairings)
            if state != _UNRELATED and (states == state).any()
        ]
        or [pairings[0].of(np.zeros(len(states), dtype=bool))]
    )


def _runs(states: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last index of each run of equal states."""
    starts = np.flatnonzero(np.diff(states, prepend=-1))
    ends = [*(starts[1:] - 1).tolist(), len(states) - 1] if len(states) else []
    yield from zip(starts.tolist(), ends, strict=True)


WITHOUT_TRANSLATION = "no translation near this line"
# The place where the offset changes is known to a few lines only.
_UNSURE_LINES = 4


def realigned(pairs: Iterable[NumberedPair], stretches: Sequence[Stretch]) -> Iterator[NumberedPair]:
    """Each source with the target that belongs to it; `damage` says where there is none.

    The number of pairs stays the same, so that each can be counted.

    Args:
        pairs: the pairs as they stand in the files.
        stretches: the offsets of all lines, in order.
    """
    if all(stretch.offset == 0 for stretch in stretches):
        yield from pairs
        return
    remaining = deque(stretches)
    unsure = {
        line
        for stretch in stretches[1:]
        for line in range(stretch.first_line - _UNSURE_LINES, stretch.first_line + _UNSURE_LINES)
    }
    reach = max(abs(stretch.offset or 0) for stretch in stretches)
    window: deque[NumberedPair] = deque()  # the current pair, and `reach` pairs before and after it
    current, number = 0, 1  # place in the window, and among all pairs: a row of a table may have several lines

    def current_pairs(is_end: bool) -> Iterator[NumberedPair]:
        nonlocal current, number
        while current < len(window) and (is_end or current + reach < len(window)):
            while remaining[0].last_line < number and len(remaining) > 1:
                remaining.popleft()
            offset = None if number in unsure else remaining[0].offset
            yield _with_target(window, current, offset)
            current += 1
            number += 1
            if current > reach:
                window.popleft()
                current -= 1

    for pair in pairs:
        window.append(pair)
        yield from current_pairs(is_end=False)
    yield from current_pairs(is_end=True)


def _with_target(window: Sequence[NumberedPair], current: int, offset: int | None) -> NumberedPair:
    pair = window[current]
    if offset is None or not 0 <= current + offset < len(window) or pair.damage == NO_SOURCE:
        return pair._replace(damage=pair.damage or WITHOUT_TRANSLATION)
    other = window[current + offset]
    # The source of one pair and the target of the other are used, so the other two sides may be missing.
    source_damage = "" if pair.damage == NO_TARGET else pair.damage
    target_damage = "" if other.damage == NO_SOURCE else other.damage
    return pair._replace(target=other.target, offset=other.line - pair.line, damage=source_damage or target_damage)
