"""Where the markup of a segment stands in its translation."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType

from transformer_cli.decoding.translation import PlacedPiece
from transformer_cli.extensions.documents.free_ranges import FreeRanges, OrderedExtents
from transformer_cli.extensions.documents.inline_text import (
    DIVISION,
    InlineText,
    MarkedPoint,
    MarkedRange,
)
from transformer_cli.extensions.documents.page_templates import encloses_ending
from transformer_cli.extensions.documents.segments import (
    Markup,
    Piece,
    Role,
    WithoutWords,
    merged,
)
from transformer_cli.extensions.documents.translator import Extent, LinkedWords
from transformer_cli.text.normalization import has_word
from transformer_cli.text.spans import Span, SpanKind, find_spans, masked

_NOTHING_KNOWN: Mapping[int, int] = MappingProxyType({})


@dataclass(slots=True)
class _Node:
    """A range with what stands directly in it; the whole text is the outermost."""

    source: Extent
    marked: MarkedRange | None = None
    children: list["_Node"] = field(default_factory=list)
    points: list[MarkedPoint] = field(default_factory=list)
    own: tuple[int, ...] = ()
    """The numbers of the target words that are linked to its source words, in order."""
    target: Extent = (0, 0)
    lack: WithoutWords | None = None
    """What became of it if it has words in the source, and none in the translation."""


@dataclass(frozen=True, slots=True)
class PlacedMarkup:
    """A translation with its markup."""

    pieces: list[Piece]
    num_empty: int
    """How many ranges have words in the source and none in the translation."""
    num_left_out: int = 0
    """How many of these are left out, since they must not be empty."""
    num_at_nearest: int = 0
    """How many others have none of their own, and stand around the nearest word."""


def place_markup(
    source: InlineText,
    target: str,
    links: Sequence[LinkedWords],
    known: Mapping[int, int] = _NOTHING_KNOWN,
    pieces: Sequence[PlacedPiece] = (),
) -> PlacedMarkup:
    """The translation of a text with the markup of the text.

    Args:
        source: the text and its markup.
        target: its translation, with the same labels in place of each WORD.
        links: of words of both texts, with their places.
        known: places of the text, such as those between two sentences, and the same places of the translation.
        pieces: what was translated by itself, in order: the markup of one piece stands in the translation of this piece.
    """
    return _Placement(source, target, links, known, pieces).placed()


class _Placement:
    def __init__(
        self,
        source: InlineText,
        target: str,
        links: Sequence[LinkedWords],
        known: Mapping[int, int],
        pieces: Sequence[PlacedPiece],
    ) -> None:
        self._source = source
        self._translated = pieces
        self._known = known
        self._target = target
        parts = _links_of_parts(links, source, target)
        self._links = sorted(parts, key=lambda link: link.source)
        self._sources = OrderedExtents([link.source for link in self._links])
        # The end of the last word that translates a word.
        self._ends: dict[Extent, int] = {}
        for word, (_, end) in self._links:
            self._ends[word] = max(end, self._ends.get(word, 0))
        self._words = sorted({link.target for link in self._links})
        self._number_of = {word: number for number, word in enumerate(self._words)}
        # Nothing inside a placeholder or a URL is punctuation of the sentence, either.
        span_extents = [(span.start, span.end) for span in _words_among_spans(target)]
        self._labels = sorted({*source.labels_in(target), *span_extents})
        self._labels_in_order = OrderedExtents(self._labels)
        # No markup belongs inside these.
        self._whole = sorted({*self._labels, *((span.start, span.end) for span in find_spans(target))})
        self._whole_in_order = OrderedExtents(self._whole)
        self._cores = [self._core(word) for word in self._words]
        # A label is a word: letters in place of its braces.
        visible = masked(source.text, _words_among_spans(source.text), "x")
        self._masked = source.without_labels(visible, "x")
        # With their ranks: of two that hold the same place, the first one counts.
        self._copied = sorted(enumerate(self._copied_texts()), key=lambda each: each[1].source)
        self._copied_in_order = OrderedExtents([copied.source for _, copied in self._copied])
        self._pieces_in_order = OrderedExtents([piece.source for piece in pieces])
        self._divisions = [[match.start() for match in re.finditer(DIVISION, text)] for text in (source.text, target)]
        self._num_empty = self._num_left_out = self._num_at_nearest = 0

    def placed(self) -> PlacedMarkup:
        root = self._tree()
        root.target = (0, len(self._target))
        self._place_children(root)
        pieces = _with_partners_in_order(self._pieces(root))
        return PlacedMarkup(pieces, self._num_empty, self._num_left_out, self._num_at_nearest)

    def _tree(self) -> _Node:
        root = _Node((0, len(self._source.text)))
        nodes: dict[int, _Node] = {}
        for marked in self._source.ranges:
            node = _Node((marked.start, marked.end), marked)
            near = (self._links[index] for index in self._sources.between(*node.source))
            own = {
                self._number_of[link.target]
                for link in near
                if _is_word_of(link.source, node.source, self._source.text)
            }
            node.own = tuple(sorted(own))
            nodes[marked.opening.number] = node
            (nodes[marked.parents[-1]] if marked.parents else root).children.append(node)
        for point in self._source.points:
            (nodes[point.parents[-1]] if point.parents else root).points.append(point)
        return root

    def _copied_texts(self) -> list[LinkedWords]:
        """The words and protected spans that stand in the translation as in the source, and that have markup inside.

        A span, a label or a word such as 5th that is the whole of a range counts, too: the range belongs around it.
        """
        text, target = self._source.text, self._target
        places = {place for marked in self._source.ranges for place in (marked.start, marked.end)}
        inner = sorted(places | {point.place for point in self._source.points})
        found = [link for link in self._links if text[slice(*link.source)] == target[slice(*link.target)]]
        # The first of several equal spans belongs to the first one of the translation, and so on.
        searched: dict[str, int] = {}
        spans = [(span.start, span.end) for span in find_spans(text)] if inner else []
        spans += self._source.labels_in(text)
        names = _kept_words(text, target) if inner else []
        whole = {(marked.start, marked.end) for marked in self._source.ranges}
        names += _kept_compounds(text, target, sorted(whole))
        found += names
        whole &= {*spans, *(name.source for name in names)}
        for first, last in spans:
            start = target.find(text[first:last], searched.get(text[first:last], 0))
            if start >= 0:
                searched[text[first:last]] = end = start + last - first
                found.append(LinkedWords((first, last), (start, end)))
        return [
            copied
            for copied in found
            if copied.source in whole or bisect_left(inner, copied.source[1]) > bisect_right(inner, copied.source[0])
        ]

    def _in_copied_text(self, source: Extent) -> Extent | None:
        """The same place in the translation, if a range of the source lies inside a text that is copied."""
        around = [self._copied[index] for index in self._copied_in_order.around(source)]
        if not around:
            return None
        _, ((first, _), (start, _)) = min(around)
        return start + source[0] - first, start + source[1] - first

    def _place_children(self, parent: _Node) -> None:
        """Give each child a range of the parent's range; ranges of siblings do not overlap.

        Those whose place is sure have the first choice, then those with the most words; or those with the fewest, if that fits
        better: a range of several sentences would take their words away.
        """
        children = parent.children
        by_size = sorted(children, key=lambda node: (not self._is_sure(node), -len(node.own)))
        self._choose_in_order(by_size, parent.target)
        if sum(bool(child.own) for child in children) > 1:
            fit, found = self._fit(children), [(child.target, child.lack) for child in children]
            by_size.sort(key=lambda node: (not self._is_sure(node), len(node.own)))
            self._choose_in_order(by_size, parent.target)
            if self._fit(children) <= fit:
                for child, (target, lack) in zip(children, found, strict=True):
                    child.target, child.lack = target, lack
        for child in children:
            self._num_empty += child.lack is WithoutWords.EMPTY
            self._num_at_nearest += child.lack is WithoutWords.AT_NEAREST
            self._place_children(child)

    def _choose_in_order(self, nodes: Sequence[_Node], outer: Extent) -> None:
        free = FreeRanges(self._target, outer, self._cores)
        for node in nodes:
            node.lack = None
            node.target = self._range_of(node, free)
            free.take(node.target)

    def _fit(self, nodes: Sequence[_Node]) -> tuple[int, int]:
        """How good the ranges of some nodes are: the number of those with words that belong to no other, and of own words without others."""
        owners = Counter(number for node in nodes for number in node.own)
        own = [
            [number in own_words and owners[number] for number in self._words_inside(node.target)]
            for node in nodes
            for own_words in [frozenset(node.own)]
        ]
        num_words = sum(map(len, own))
        return sum(1 in each for each in own), 2 * sum(map(bool, chain(*own))) - num_words

    def _words_inside(self, extent: Extent) -> range:
        """The numbers of the words of the translation that lie in a range of it."""
        first = bisect_left(self._cores, (extent[0], extent[0]))
        end = first
        while end < len(self._cores) and self._cores[end][1] <= extent[1]:
            end += 1
        return range(first, end)

    def _is_sure(self, node: _Node) -> bool:
        return self._in_copied_text(node.source) is not None

    def _range_of(self, node: _Node, free: FreeRanges) -> Extent:
        """The range of the translation that holds as many words of a node and as few others as possible."""
        outer = self._extent_of_pieces(node.source)
        sure = self._in_copied_text(node.source)
        if sure and free.holds(sure, outer):
            return sure
        inner = self._masked[slice(*node.source)].strip()
        if inner and not has_word(inner):
            return self._range_of_marks(node, inner, free, outer)
        own_words: dict[Extent, list[int]] = {}
        for number in node.own:
            if (part := free.part_with_word(number, outer)) is not None:
                own_words.setdefault(part, []).append(number)
        runs = [(_best_run(numbers), part) for part, numbers in own_words.items()]
        if runs:
            (_, first, last), part = max(runs, key=lambda found: found[0][0])
            start, end = self._without_outer_marks(node, first, last)
            start = self._behind_first_marks(inner, max(start, part[0]), min(end, part[1]))
            found = self._outside_spans((start, min(end, part[1])), part)
            # Words of which only the comma is left have vanished.
            if not has_word(inner) or has_word(self._target[slice(*found)]):
                return found
        # The range around it may have no words of its piece.
        nearest = self._nearest_word(node, free, outer)
        nearest = nearest or self._nearest_word(node, free, (0, len(self._target)))
        if inner and nearest is not None:
            node.lack = WithoutWords.AT_NEAREST
            return nearest
        is_left_out = node.marked is not None and node.marked.opening.without_words is WithoutWords.LEFT_OUT
        node.lack = WithoutWords.EMPTY if inner and not is_left_out else None
        return self._empty_range(node, free, outer)

    def _extent_of_pieces(self, source: Extent) -> Extent:
        """The part of the translation that belongs to the pieces of a range of the source, or to what is between two of them."""
        first, last = source
        pieces = self._translated
        touched = self._pieces_in_order.between(first, last)
        if not touched:
            behind = self._pieces_in_order.num_before(first)
            start, end = self._end_before(behind), self._start_of(behind)
            if behind and pieces[behind - 1].source[1] == first:
                # The mark of a footnote behind a word goes where the word goes.
                is_at_word = has_word(self._source.text[first - 1])
                if is_at_word:
                    return pieces[behind - 1].target[0], end
                # What is between two pieces stands there in the translation, too, as [2] behind a sentence.
                return start, end if first < last else start
            is_at_next = behind < len(pieces) and last == pieces[behind].source[0]
            return (end, end) if is_at_next else (start, end)
        number, until = touched[0], touched[-1]
        is_at_start = pieces[number].source[0] <= first
        is_at_end = last <= pieces[until].source[1]
        return (
            self._start_of(number) if is_at_start else self._end_before(number),
            pieces[until].target[1] if is_at_end else self._start_of(until + 1),
        )

    def _start_of(self, number: int) -> int:
        """Where a piece begins in the translation; its end behind the last one."""
        return self._translated[number].target[0] if number < len(self._translated) else len(self._target)

    def _end_before(self, number: int) -> int:
        """Where the piece before one ends in the translation; its beginning before the first one."""
        return self._translated[number - 1].target[1] if number else 0

    def _nearest_word(self, node: _Node, free: FreeRanges, outer: Extent) -> Extent | None:
        """The free word beside the place of a range that must stand around one; None if there is none, or it may be empty."""
        assert node.marked is not None
        if node.marked.opening.without_words is not WithoutWords.AT_NEAREST:
            return None
        place = self._place_beside(node.source[0])
        best: tuple[int, Extent] | None = None
        for words in (free.words_before(place, outer), free.words_behind(place, outer)):
            for number in words:
                core, part = self._cores[number], free.part_with_word(number, outer)
                if part is None or not has_word(self._target[core[0]]):
                    continue
                start, end = self._outside_spans(core, part)
                distance = max(start - place, place - end, 0)
                if best is not None and distance > best[0]:
                    break
                found = distance, (start, end)
                best = found if best is None else min(best, found)
        return None if best is None else best[1]

    def _empty_range(self, node: _Node, free: FreeRanges, outer: Extent) -> Extent:
        place = self._place_beside(node.source[0])
        start, end = free.nearest_part(place, outer)
        place = min(max(place, start), end)
        return self._outside_spans((place, place), (start, end))

    def _outside_spans(self, extent: Extent, free: Extent) -> Extent:
        """A range that neither begins nor ends inside a protected span: it holds the whole span, or nothing of it."""
        start, end = extent
        at = self._whole_in_order.num_before(start)
        while at < len(self._whole) and self._whole[at][0] < max(start, end):
            first, last = self._whole[at]
            at += 1
            if first < start < last:
                start = first if first >= free[0] else min(last, free[1])
            if first < end < last:
                end = last if last <= free[1] else max(first, free[0])
        return start, max(start, end)

    def _range_of_marks(self, node: _Node, inner: str, free: FreeRanges, outer: Extent) -> Extent:
        """The range of a node without letters and digits, such as an arrow: the same marks beside the same word."""
        place = self._place_beside(node.source[0])
        nearest = free.nearest_place_of(inner, place, outer)
        if nearest is None:
            return self._empty_range(node, free, outer)
        return nearest, nearest + len(inner)

    def _without_outer_marks(self, node: _Node, first: int, last: int) -> Extent:
        """The range of some words, without the punctuation at its ends that is outside the node in the source."""
        start, end = self._words[first][0], self._words[last][1]
        inner = self._masked[slice(*node.source)].strip()
        # No translated word ends with more than itself.
        most = end - start + 1
        begin, stop = node.source
        before = re.split(r"\s", self._masked[max(0, begin - most) : begin])[-1]
        after = re.split(r"\s", self._masked[stop : stop + most], maxsplit=1)[0]
        target = self._masked_target(start, end)
        num_before = _num_outside(target[::-1], inner[::-1], before[::-1])
        num_after = _num_outside(target, inner, after)
        kept = self._target[start + num_before : end - num_after]
        if not kept.strip():
            return start, end
        # No range begins or ends with white space, which Markdown would not read as one.
        return end - num_after - len(kept.lstrip()), start + num_before + len(kept.rstrip())

    def _behind_first_marks(self, inner: str, start: int, end: int) -> int:
        """Where a range begins without the comma or full stop of a word before it, such as one that vanished."""
        place = start
        while place < end and self._target[place] in _NEVER_FIRST and not inner.startswith(self._target[place]):
            if self._whole_in_order.around((place, place + 1)):
                break
            place += 1
        return place

    def _masked_target(self, start: int, end: int) -> str:
        """A part of the translation, with letters in place of the braces of labels."""
        signs = list(self._target[start:end])
        for index in self._labels_in_order.between(start, end):
            first, last = self._labels[index]
            if start <= first and last <= end:
                signs[first - start : last - start] = "x" * (last - first)
        return "".join(signs)

    def _core(self, word: Extent) -> Extent:
        """A word without the punctuation at its ends, which may stand outside of a range that holds the word."""
        start, end = word
        while start < end and self._is_mark(start):
            start += 1
        while start < end and self._is_mark(end - 1):
            end -= 1
        return (start, end) if start < end else word

    def _is_mark(self, place: int) -> bool:
        """Whether punctuation stands at a place of the translation, and not a character of a label."""
        is_inside = self._labels_in_order.around((place, place + 1))
        return not is_inside and not has_word(self._target[place])

    def _place_beside(self, place: int) -> int:
        """The place of the translation that belongs to a place of the source: beside the nearest linked word."""
        if self._is_at_division(place):
            return self._place_at_division(place)
        if place in self._known:
            return self._known[place]
        if sure := self._in_copied_text((place, place)):
            return sure[0]
        inside = self._sources.between(place, place)
        if inside:
            return self._place_in_word(self._links[inside[0]], place)
        behind = self._sources.first_from(place)
        after = self._links[behind] if behind < len(self._links) else None
        # The last that ends here or before: also one without letters, which begins here.
        while behind < len(self._links) and self._links[behind].source == (place, place):
            behind += 1
        before = self._links[behind - 1] if behind else None
        touches_before = before is not None and before.source[1] == place
        touches_after = after is not None and after.source[0] == place
        if after is not None and (touches_after or before is None) and not touches_before:
            start, end = after.target
            is_mark = before and not has_word(self._masked[slice(*after.source)])
            num_marks = len(_marks_at_end(self._masked_target(start, end)))
            # A full stop that stands alone in the source is a part of the last word of the translation.
            return end - num_marks if is_mark and num_marks < end - start else start
        if before is None:
            return len(self._target)
        if touches_before:
            return self._ends[before.source]
        return after.target[0] if after is not None else before.target[1]

    def _is_at_division(self, place: int) -> bool:
        return DIVISION in self._source.text[max(0, place - 1) : place + 1]

    def _place_at_division(self, place: int) -> int:
        """The place beside the same division; the translation has as many as the source."""
        source_divisions, found = self._divisions
        number = bisect_left(source_divisions, place)
        is_behind = self._source.text[place - 1 : place] == DIVISION
        at = number - 1 if is_behind else number
        return found[at] + is_behind if at < len(found) else len(self._target)

    def _place_in_word(self, link: LinkedWords, place: int) -> int:
        """The place in the translation of a word: the same in an equal word, else beside its letters or behind it."""
        (first, last), (start, end) = link
        if self._source.text[first:last] == self._target[start:end]:
            return start + place - first
        if not has_word(self._source.text[first:place]):
            while start < end and self._is_mark(start):
                start += 1
            return start
        if not has_word(self._source.text[place:last]):
            inner, after = self._masked[first:place], self._masked[place:last]
            end -= _num_outside(self._masked_target(start, end), inner, after)
        return end

    def _pieces(self, node: _Node) -> list[Piece]:
        """The text of a node's range, with all markup in it."""
        start, end = node.target
        inner: list[tuple[int, int, int, list[Piece]]] = []
        for number, child in enumerate(node.children):
            first, last = child.target
            assert child.marked is not None
            pieces = self._pieces(child)
            if child.marked.opening.without_words is WithoutWords.LEFT_OUT and not any(map(_is_shown, pieces)):
                self._num_left_out += 1
            else:
                pieces = [child.marked.opening, *pieces, child.marked.closing]
                if child.marked.is_apart and first == last:
                    pieces = self._with_space(pieces, first)
            inner.append((first, last, number, pieces))
        taken = sorted(child.target for child in node.children if child.target[0] < child.target[1])
        taken_in_order = OrderedExtents(taken)
        places = []
        for point in node.points:
            place = self._place_beside(point.place)
            if not self._is_at_division(point.place):  # whose place is sure
                first, last = self._extent_of_pieces((point.place, point.place))
                place = min(max(place, first), last)
            place = min(max(place, start), end)
            around = taken_in_order.between(place, place)
            place = taken[around[0]][1] if around else place
            if self._in_copied_text((point.place, point.place)) is None:
                place = self._outside_spans((place, place), (start, end))[1]
            places.append(place)
        for number, point in enumerate(node.points):
            place = places[number]
            if number + 1 < len(places) and self._loses_its_ending(
                node.points[number : number + 2], place, places[number + 1]
            ):
                place = places[number + 1]
            pieces = [point.markup]
            apart = self._with_space(pieces, place) if point.is_apart else pieces
            inner.append((place, place, number, apart))
        result: list[Piece] = []
        for first, last, _, pieces in sorted(inner, key=lambda each: each[:3]):
            result += self._source.with_words(self._target[start:first])
            result += pieces
            start = last
        return merged([*result, *self._source.with_words(self._target[start:end])])

    def _loses_its_ending(self, points: Sequence[MarkedPoint], place: int, end: int) -> bool:
        """Whether a condition that encloses the ending of a word would enclose anything else at these places of its two points."""
        text, (condition, following) = self._source.text, points
        first, last = condition.place, following.place
        ending = text[first:last]
        is_of_ending = encloses_ending(text[first - 1 : first], condition.markup.raw, ending, text[last : last + 1])
        return is_of_ending and self._target[place:end] != ending

    def _with_space(self, pieces: list[Piece], place: int) -> list[Piece]:
        """Markup that had white space on both sides, with some on the side where the translation has none."""
        is_behind_space = place == 0 or self._target[place - 1].isspace()
        return [*pieces, " "] if is_behind_space else [" ", *pieces]


_NEVER_FIRST = " ,.;:!?\u2026)]}"


def _is_shown(piece: Piece) -> bool:
    """Whether a piece is text or stands for some, and does not only begin or end a range."""
    return bool(piece.strip()) if isinstance(piece, str) else piece.role in (Role.WORD, Role.POINT)


def _with_partners_in_order(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces in which no point stands before its partner that begins the same thing."""
    result = list(pieces)
    places = {
        piece.number: at for at, piece in enumerate(pieces) if isinstance(piece, Markup) and piece.role is Role.POINT
    }
    for at, piece in enumerate(pieces):
        if isinstance(piece, Markup) and piece.partner is not None:
            end = places.get(piece.partner, at)
            if end < at:
                result[at], result[end] = pieces[end], pieces[at]
    return result


def _kept_words(text: str, target: str) -> list[LinkedWords]:
    """The words with digits or with capitals behind their first letter, such as 5th and NATO, that a translation has as often.

    Others can be the same by chance, as the Italian a is.
    """
    source_places, target_places = _places_of_names(text), _places_of_names(target)
    return [
        LinkedWords(*places)
        for name, found in source_places.items()
        if len(found) == len(target_places.get(name, ()))
        for places in zip(found, target_places[name], strict=True)
    ]


def _kept_compounds(text: str, target: str, ranges: Sequence[Extent]) -> list[LinkedWords]:
    """The ranges of one word with marks inside it, such as house:dog.zip and user#2, that a translation has as often."""
    whole = dict.fromkeys(text[start:end] for start, end in ranges)
    compounds = [each for each in whole if _COMPOUND.fullmatch(each)]
    source_places, target_places = (_places_of_compounds(compounds, each) for each in (text, target))
    return [
        LinkedWords(*places)
        for compound in compounds
        if len(source_places[compound]) == len(target_places[compound])
        for places in zip(source_places[compound], target_places[compound], strict=True)
    ]


def _places_of_compounds(compounds: Sequence[str], text: str) -> dict[str, list[Extent]]:
    """Where each compound stands in a text as a whole, without overlaps."""
    found: dict[str, list[Extent]] = {compound: [] for compound in compounds}
    words = [match.span() for match in _WORD.finditer(text)]
    for num_words in {len(_WORD.findall(compound)) for compound in compounds}:
        for (start, _), (_, end) in zip(words, words[num_words - 1 :], strict=False):
            # A mark such as # may begin one.
            for first in (start - 1, start):
                places = found.get(text[max(0, first) : end])
                if places is None or first < 0 or has_word(text[max(0, first - 1) : first]):
                    continue
                if not places or places[-1][1] <= first:
                    places.append((first, end))
    return found


def _places_of_names(text: str) -> dict[str, list[Extent]]:
    found: dict[str, list[Extent]] = {}
    has_small_letters = not text.isupper()
    for match in _WORD.finditer(text):
        has_capitals = has_small_letters and any(map(str.isupper, match[0][1:]))
        if has_capitals or any(map(str.isdigit, match[0])):
            found.setdefault(match[0], []).append(match.span())
    return found


_WORD = re.compile(r"\w+")
_COMPOUND = re.compile(r"#?\w+(?:[^\w\s]+\w+)+")
# A dash or another mark between two words without white space; an apostrophe, a hyphen and a point are inside of one word.
_BETWEEN_WORDS = re.compile(r"(?<=\w)[^\w\s'\u2019.\u00b7\u2010\u2011-]+(?=\w)|(?<=\w)(?:-{2,}|\.{2,})(?=\w)")


def _links_of_parts(links: Sequence[LinkedWords], source: InlineText, target: str) -> set[LinkedWords]:
    """The links, in which dog\u2014a is two words in the place of one; words with as many parts are linked part by part.

    Marks between two parts belong to the part with which they share a range, such as the bracket in `dog<b>[edit]</b>`;
    and marks at the end of a word that share one with the next word are a part: `dog<b>= cat</b>`.
    """
    text = source.text
    cuts = [
        [match.span() for match in _BETWEEN_WORDS.finditer(masked(each, find_spans(each), "x"))]
        for each in (text, target)
    ]
    shared = _SharedMarks(source)
    if not any(cuts) and not source.ranges:
        return set(links)
    found: set[LinkedWords] = set()
    for link in links:
        inside = [
            each[bisect_left(each, word) : bisect_left(each, (word[1], word[1]))]
            for word, each in zip(link, cuts, strict=True)
        ]
        if len(inside[0]) == len(inside[1]):
            inside = shared.divided(link, inside, target)
        sources, targets = map(_parts_of, link, inside)
        if len(sources) == len(targets):
            found.update(map(LinkedWords, sources, targets))
        else:
            found.update(LinkedWords(one, other) for one in sources for other in targets)
    return found


class _SharedMarks:
    """Which marks of a text share a range with the word before or behind them."""

    def __init__(self, source: InlineText) -> None:
        self._text = source.text
        self._starts = sorted((each.start, each.end) for each in source.ranges)
        self._ends = sorted((each.end, each.start) for each in source.ranges)

    def divided(self, link: LinkedWords, inside: Sequence[Sequence[Extent]], target: str) -> list[list[Extent]]:
        """The cuts of a word and of its translation, narrower where the marks in them share a range with a part."""
        (first, last), (start, end) = link
        num_before = len(_marks_at_end(self._text[first:last][::-1]))
        num_behind = len(_marks_at_end(self._text[first:last]))
        pairs = list(zip(*inside, strict=True))
        if num_before < last - first:
            at_start = (first, first + num_before), (start, start + num_before)
            at_end = (last - num_behind, last), (end - num_behind, end)
            pairs = [at_start, *pairs, at_end]
        found: list[list[Extent]] = [[], []]
        for marks, others in pairs:
            begin, stop = self._outside(marks)
            is_at_end = marks[0] == first or marks[1] == last
            if is_at_end:  # one place, or none
                begin, stop = (begin, begin) if marks[0] == first else (stop, stop)
                if begin in (first, last):
                    continue
            if self._text[slice(*marks)] == target[slice(*others)]:
                move = others[0] - marks[0]
                found[0].append((begin, stop))
                found[1].append((begin + move, stop + move))
            elif not is_at_end:
                found[0].append(marks)
                found[1].append(others)
        return found

    def _outside(self, marks: Extent) -> Extent:
        """Marks without those that share a range with the text before them, or behind them."""
        first, last = marks
        begun = self._starts[bisect_left(self._starts, (first,)) : bisect_left(self._starts, (last,))]
        ended = self._ends[bisect_left(self._ends, (first + 1,)) : bisect_left(self._ends, (last + 1,))]
        return (
            next((end for end, start in reversed(ended) if start < first), first),
            next((start for start, end in begun if end > last), last),
        )


def _parts_of(word: Extent, cuts: Sequence[Extent]) -> list[Extent]:
    """A word without the cuts inside it, as the ranges between them."""
    places = [word[0], *chain(*cuts), word[1]]
    return list(zip(places[::2], places[1::2], strict=True))


def _words_among_spans(text: str) -> list[Span]:
    """The protected spans of a text that take the place of a word, such as {name}."""
    return [span for span in find_spans(text) if span.kind is SpanKind.WORD]


def _num_outside(target: str, inner: str, after: str) -> int:
    """How many characters at the end of translated words belong behind a range, and not into it.

    Args:
        target: the words.
        inner: what the range holds in the source.
        after: what stands behind the range there, up to the next white space.
    """
    if after and target.endswith(after):
        return len(after)
    marks = _marks_at_end(target)
    own = _marks_at_end(inner)
    if own and (not after or has_word(after[0])):
        return 0
    # A range that ends with a letter can hold the marks of another word, which is the last one now.
    num_own = next((at for at, sign in enumerate(marks) if sign not in (own or inner)), len(marks))
    return len(marks) - num_own


def _marks_at_end(text: str) -> str:
    end = len(text)
    while end and not has_word(text[end - 1]):
        end -= 1
    return text[end:]


def _best_run(own: Sequence[int]) -> tuple[int, int, int]:
    """Of the runs of words from an own one to another, the one with the largest number of own words minus others.

    Args:
        own: the numbers of the own words of a part, in order.

    Returns:
        This number, and the first and the last word.
    """
    best: tuple[int, int, int] | None = None
    start, total, before = own[0], 0, own[0] - 1
    for number in own:
        total -= number - before - 1
        if total <= 0:
            start, total = number, 0
        total += 1
        if best is None or total > best[0]:
            best = (total, start, number)
        before = number
    assert best is not None
    return best


def _is_word_of(word: Extent, outer: Extent, text: str) -> bool:
    """Whether a word belongs to a range: at least half of its letters are in it, or the range is inside the word."""
    if word[0] <= outer[0] and outer[1] <= word[1]:
        return outer[0] < outer[1]
    inside = text[max(word[0], outer[0]) : min(word[1], outer[1])]
    return 2 * _weight(inside) >= _weight(text[slice(*word)]) and bool(inside)


def _weight(text: str) -> int:
    """The number of letters and digits of a text, or of its characters if it has none."""
    return sum(map(str.isalnum, text)) or len(text)
