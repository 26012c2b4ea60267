"""The most likely offset of each line, when an offset seldom changes: the Viterbi algorithm."""

import numpy as np
from numpy.typing import NDArray

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


def _backward(
    changed: NDArray[np.bool_], previous: NDArray[np.int64], last: int
) -> tuple[NDArray[np.int64], int]:
    """The states of the lines, and the state before the first of them."""
    states = np.zeros(len(changed), dtype=np.int64)
    state = last
    for line in range(len(changed) - 1, -1, -1):
        states[line] = state
        if changed[line, state]:
            state = int(previous[line])
    return states, state
