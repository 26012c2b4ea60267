"""Ranges of a text in order, of which those at a place are found without a look at all of them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from transformer_cli.extensions.documents.translator import Extent


class OrderedExtents:
    """Ranges of a text, by their beginnings and ends."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        """
        Args:
            extents: in the order of their beginnings.
        """
        self._extents = extents
        self._starts = [start for start, _ in extents]
        # The last end up to each of them: where some hold others, the ends have no order.
        self._ends = list(accumulate((end for _, end in extents), max))

    def between(self, first: int, last: int) -> Sequence[int]:
        """The indices of all that begin before `last` and end behind `first`, perhaps with others that do not."""
        return range(bisect_right(self._ends, first), bisect_left(self._starts, last))

    def num_before(self, place: int) -> int:
        """How many end before a place or at it."""
        return bisect_right(self._ends, place)

    def around(self, extent: Extent) -> list[int]:
        """The indices of those that hold a range, or a place."""
        start, end = extent
        near = range(bisect_left(self._ends, end), bisect_right(self._starts, start))
        return [index for index in near if self._extents[index][1] >= end]

    def first_from(self, place: int) -> int:
        """The index of the first that begins at a place or behind it."""
        return bisect_left(self._starts, place)


class FreeRanges:
    """The parts of a text that are still free. They are in order and do not overlap; an empty one may touch another."""

    def __init__(self, text: str, outer: Extent, words: Sequence[Extent]) -> None:
        """
        Args:
            outer: what is free at first.
            words: of the text, in order.
        """
        self._text = text
        self._parts = [outer]
        self._words = words
        self._free_words = [number for number, word in enumerate(words) if outer[0] <= word[0] and word[1] <= outer[1]]
        # The places of some texts that may be free.
        self._places: dict[str, list[int]] = {}

    def take(self, taken: Extent) -> None:
        """Take a range out; an empty part stays at each side of it."""
        touched = self._touched(taken)
        left = [part for each in touched for part in _without(self._parts[each], taken)]
        # Without this, equal empty parts double with each range that has no words.
        self._parts[touched.start : touched.stop] = dict.fromkeys(left)
        words = self._free_words
        first = bisect_right(words, taken[0], key=lambda number: self._words[number][1])
        last = bisect_left(words, taken[1], key=lambda number: self._words[number][0])
        del words[first : max(first, last)]

    def holds(self, extent: Extent, outer: Extent) -> bool:
        """Whether a range is free, and inside an outer one."""
        start, end = extent
        return outer[0] <= start and end <= outer[1] and self._part_with(extent) is not None

    def part_with_word(self, number: int, outer: Extent) -> Extent | None:
        """The free part of an outer range that holds a word; None if there is none."""
        start, end = self._words[number]
        part = self._part_with((start, end)) if outer[0] <= start and end <= outer[1] else None
        return None if part is None else _inside(part, outer)

    def words_before(self, place: int, outer: Extent) -> Iterator[int]:
        """The numbers of the free words of an outer range that begin before a place, from the last one on."""
        for at in range(self._first_word(place) - 1, self._first_word(outer[0]) - 1, -1):
            if self._words[self._free_words[at]][1] <= outer[1]:
                yield self._free_words[at]

    def words_behind(self, place: int, outer: Extent) -> Iterator[int]:
        """The numbers of the free words of an outer range that begin at a place or behind it, in order."""
        for at in range(self._first_word(max(place, outer[0])), len(self._free_words)):
            if self._words[self._free_words[at]][1] > outer[1]:
                return
            yield self._free_words[at]

    def nearest_part(self, place: int, outer: Extent) -> Extent:
        """The free part of an outer range that is nearest to a place; if there is none, the free place nearest to the range."""
        parts = self._parts
        touched = self._touched(outer)
        first, last = touched.start, touched.stop
        if not touched:
            before = parts[first - 1][1] if first else None
            behind = parts[first][0] if first < len(parts) else None
            if before is None or (behind is not None and behind - outer[1] < outer[0] - before):
                return (behind or 0,) * 2
            return before, before

        def end_of(part: Extent) -> int:
            return min(part[1], outer[1])

        at = bisect_left(parts, place, first, last, key=end_of)
        after = _inside(parts[at], outer) if at < last else None
        if at == first or (after is not None and after[0] <= place):
            assert after is not None
            return after
        end = end_of(parts[at - 1])
        if after is not None and after[0] - place < place - end:
            return after
        return _inside(parts[bisect_left(parts, end, first, at, key=end_of)], outer)

    def nearest_place_of(self, part: str, place: int, outer: Extent) -> int | None:
        """Where a part of the text stands in the outer range that is free and nearest to a place; None if it stands nowhere."""
        if part not in self._places:
            self._places[part] = list(_places_of(part, self._text))
        places, length = self._places[part], len(part)
        best: tuple[int, int] | None = None
        taken: list[int] = []
        middle = bisect_left(places, place)
        for indices in (range(middle - 1, -1, -1), range(middle, len(places))):
            for index in indices:
                at = places[index]
                if best is not None and abs(at - place) - length > best[0]:
                    break
                if self._part_with((at, at + length)) is None:
                    taken.append(index)
                elif outer[0] <= at and at + length <= outer[1]:
                    found = min(abs(at - place), abs(at + length - place)), at
                    best = found if best is None else min(best, found)
        for index in sorted(taken, reverse=True):
            del places[index]  # it does not become free again
        return None if best is None else best[1]

    def _first_word(self, place: int) -> int:
        """The index of the first free word that begins at a place or behind it."""
        return bisect_left(self._free_words, place, key=lambda number: self._words[number][0])

    def _part_with(self, extent: Extent) -> Extent | None:
        start, end = extent
        at = bisect_left(self._parts, end, key=lambda part: part[1])
        is_inside = at < len(self._parts) and self._parts[at][0] <= start
        return self._parts[at] if is_inside else None

    def _touched(self, extent: Extent) -> range:
        """The indices of the parts that a range touches or overlaps."""
        start, end = extent
        return range(
            bisect_left(self._parts, start, key=lambda part: part[1]),
            bisect_right(self._parts, end, key=lambda part: part[0]),
        )


def _inside(part: Extent, outer: Extent) -> Extent:
    """What an outer range has of a part that it touches."""
    return max(part[0], outer[0]), min(part[1], outer[1])


def _places_of(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _without(part: Extent, taken: Extent) -> list[Extent]:
    """What is left of a part when another range that touches it is taken out of it; an empty part stays at each side."""
    return [(part[0], max(part[0], taken[0])), (min(part[1], taken[1]), part[1])]
