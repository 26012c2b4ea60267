"""The part of the training pairs that a process reads, where several processes share a corpus that is streamed."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

Row = TypeVar("Row")

_LEAST_SHARE = 0.9
"""The size of the smallest part, divided by that of the largest one, from which parts count as equal."""


class CorpusPart(NamedTuple):
    """One of several parts of a corpus; together they have each row once."""

    number: int = 0
    """From 0."""
    num_parts: int = 1

    def rows(self, rows: Iterable[Row], *, first: int = 0) -> Iterator[Row]:
        """The rows of this part, from its row `first` on: of n parts, part p has the rows p, p + n, p + 2n, ..."""
        return islice(rows, self.row(first), None, self.num_parts)

    def row(self, number: int) -> int:
        """The number that a row of this part has in the whole corpus."""
        return self.number + number * self.num_parts

    def num_rows(self, total: int) -> int:
        """How many of the first `total` rows of the corpus are in this part."""
        return max(0, -(-(total - self.number) // self.num_parts))

    def files(self, files: Sequence[Row], sizes: Sequence[int]) -> list[Row] | None:
        """The files of this part, if the files can be dealt out equally; None: each file must be split by rows.

        Args:
            files: of a corpus.
            sizes: of the files, in bytes. Each part gives as many batches as the others, so a part with less text would be
                read more often.
        """
        dealt = [sizes[number :: self.num_parts] for number in range(self.num_parts)]
        of_parts = list(map(sum, dealt))
        if len(files) % self.num_parts or min(of_parts) < _LEAST_SHARE * max(of_parts):
            return None
        return list(files[self.number :: self.num_parts])


WHOLE = CorpusPart()
