"""Drift: the lines from which on the two sides of a corpus no longer belong together."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.corpora.alignment.line_features import (
    NO_LINE,
    FeatureTable,
    LineFeatures,
    line_features,
)
from transformer_cli.corpora.alignment.offset_path import OffsetPath
from transformer_cli.corpora.alignment.offset_scores import (
    OffsetModel,
    Pairing,
    Window,
    joined,
)

MAX_OFFSET = 10
"""Line N of the source is compared with the lines N - 10 to N + 10 of the target."""
WINDOW_LINES = 10_000
_OFFSETS = range(-MAX_OFFSET, MAX_OFFSET + 1)
_UNRELATED = len(_OFFSETS)
_ALIGNED = MAX_OFFSET
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
        self._target: list[LineFeatures] = [NO_LINE] * MAX_OFFSET
        self._path = OffsetPath(len(_OFFSETS) + 1, first=_ALIGNED)
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
        if min(len(self._source), len(self._target) - 2 * MAX_OFFSET) >= WINDOW_LINES:
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
            FeatureTable(self._target[: num_lines + 2 * MAX_OFFSET]),
            num_before=MAX_OFFSET,
        )
        del self._source[:num_lines], self._target[:num_lines]
        pairings = [window.pairing(offset) for offset in _OFFSETS]
        model = self._learn(window, pairings)
        scores = _scores(model, pairings, may_be_unrelated=self._model is not None)
        self._num_informed += int(pairings[_ALIGNED].are_real.sum())
        self._settle(self._path.add(scores))

    def _learn(self, window: Window, pairings: list[Pairing]) -> OffsetModel:
        """The model of these lines: fitted to the pairs that the model before takes for aligned."""
        model = self._model or OffsetModel.likely(window)
        background = [pairing.of(pairing.are_real) for pairing in window.background()]
        for _ in range(_NUM_LOOKS if self._model is None else 1):
            scores = _scores(model, pairings, may_be_unrelated=self._model is not None)
            aligned = _along(self._path.trial(scores), pairings)
            if len(aligned.are_real) < _FEW_PAIRS:
                break
            model = self._model = OffsetModel.fitted(aligned, joined(background))
        return model

    def _settle(self, states: NDArray[np.int64]) -> None:
        for first, last in _runs(states):
            state = int(states[first])
            offset = None if state == _UNRELATED else state - MAX_OFFSET
            stretch = Stretch(self._num_settled + first + 1, self._num_settled + last + 1, offset)
            if self._stretches and self._stretches[-1].offset == offset:
                stretch = stretch._replace(first_line=self._stretches.pop().first_line)
            self._stretches.append(stretch)
        self._num_settled += len(states)


def _scores(
    model: OffsetModel, pairings: list[Pairing], *, may_be_unrelated: bool
) -> NDArray[np.float64]:
    """(lines, states): how well each offset fits each line; 0 for the state of unrelated lines."""
    num_lines = len(pairings[0].are_real)
    unrelated = np.full(num_lines, 0.0 if may_be_unrelated else -np.inf)
    return np.stack([*map(model.scores, pairings), unrelated], axis=1)


def _along(states: NDArray[np.int64], pairings: list[Pairing]) -> Pairing:
    """The pairs of a path, without unrelated and empty lines."""
    return joined(
        [
            pairing.of((states == state) & pairing.are_real)
            for state, pairing in enumerate(pairings)
            if (states == state).any()
        ]
        or [pairings[0].of(np.zeros(len(states), dtype=bool))]
    )


def _runs(states: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last index of each run of equal states."""
    starts = np.flatnonzero(np.diff(states, prepend=-1))
    ends = [*(starts[1:] - 1).tolist(), len(states) - 1] if len(states) else []
    yield from zip(starts.tolist(), ends, strict=True)
