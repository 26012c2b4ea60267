"""Drift: the lines from which on the two sides of a corpus no longer belong together."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.extensions.corpora.alignment.line_features import (
    NO_LINE,
    FeatureTable,
    LineFeatures,
    line_features,
)
from transformer_cli.extensions.corpora.alignment.offset_path import COST_OF_CHANGE, OffsetPath
from transformer_cli.extensions.corpora.alignment.offset_scores import (
    OffsetModel,
    Pairing,
    Window,
    joined,
)

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
    """Consecutive lines of the source whose translations stand at the same offset."""

    first_line: int
    """Its number, from 1."""
    last_line: int
    offset: int | None
    """Line N of the source belongs to line N + offset of the target; None: to no line nearby."""


class DriftFinder:
    """Finds drift while a corpus is read; it keeps the features of some thousand lines."""

    def __init__(self) -> None:
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
        if min(len(self._source), len(self._target) - 2 * FAR_LINES) >= WINDOW_LINES:
            self._look(WINDOW_LINES)

    def finish(self) -> list[Stretch]:
        """All stretches of the corpus, in order; a clean corpus has one, with offset 0."""
        while self._source:
            self._look(min(len(self._source), WINDOW_LINES))
        self._settle(self._path.finish())
        if self._path.score < _MIN_INFORMATION * self._num_informed:
            return [Stretch(1, self._num_settled, None)]
        return self._stretches

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
            model = self._model = OffsetModel.fitted(aligned, joined(background))
        return model

    def _scores(self, model: OffsetModel, pairings: list[Pairing]) -> NDArray[np.float64]:
        """(lines, states): how well each offset fits each line; 0 for the state of unrelated lines."""
        scores = np.stack([model.scores(pairing) for pairing in pairings], axis=1)
        # Before the first look nothing is known that would tell related lines from others.
        scores[:, _UNRELATED] = 0.0 if self._model is not None else -np.inf
        return scores

    def _add_far_offset(
        self, window: Window, model: OffsetModel, scores: NDArray[np.float64]
    ) -> bool:
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
    return joined(
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
