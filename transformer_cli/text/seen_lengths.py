"""The lengths of the texts that a model was trained on: beyond them, a model loses text."""

from typing import Any, NamedTuple

SEEN_LENGTHS = "seen_lengths"
"""The key of these lengths in state.json."""
FEWEST_TOKENS = 6
"""Ratios are those of sources with at least so many tokens: the lengths of shorter texts differ too much."""


class SeenLengths(NamedTuple):
    """Lengths of the training pairs, in tokens as the model reads and writes them: with [EOS] and tags."""

    longest: int | None = None
    """99 % of the sources have at most so many tokens; None: not known."""
    smallest_ratio: float | None = None
    """99 % of the pairs have at least so many target tokens for each source token; None: not known."""

    def joined(self, other: "SeenLengths") -> "SeenLengths":
        """The lengths of a model that has seen two corpora; a length that is not known of one is not known."""
        longest, ratio = None, None
        if self.longest is not None and other.longest is not None:
            longest = max(self.longest, other.longest)
        if self.smallest_ratio is not None and other.smallest_ratio is not None:
            ratio = min(self.smallest_ratio, other.smallest_ratio)
        return SeenLengths(longest, ratio)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for state.json."""
        return self._asdict()


UNKNOWN_LENGTHS = SeenLengths()
