"""Where the markup of a segment stands in its translation: the segment as one text with the places of its markup, and these places found again."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, pairwise
from types import MappingProxyType
from typing import NamedTuple

from transformer_cli.decoding.translation import PlacedPiece
from transformer_cli.extensions.documents.segments import (
    Markup,
    Piece,
    Role,
    Segment,
    WithoutWords,
    merged,
    plain_text,
)
from transformer_cli.extensions.documents.translator import Extent, LinkedWords
from transformer_cli.text.spans import Span, SpanKind, find_spans, masked

# A text with more is no text of a person. The time of the placement grows with the product of markup and words.
MAX_MARKUP = 1000
MAX_DEPTH = 50
DIVISION = "\x1d"
"""Ends a line of a segment that keeps spaces, and is no character of the document: markup beside it stays beside it."""
_SPACES = re.compile(r"[ \t\r\n\f\v]+")


class MarkedRange(NamedTuple):
    """A range of a text between an OPEN and its CLOSE: text[start:end]."""

    start: int
    end: int
    opening: Markup
    closing: Markup
    parents: tuple[int, ...]
    """The numbers of the ranges around it, the outermost first."""
    is_apart: bool = False
    """Of one without text: whether white space stands on both sides of it; in the text, only that before it is left."""


class MarkedPoint(NamedTuple):
    """A point in a text, before text[place]."""

    place: int
    markup: Markup
    parents: tuple[int, ...]
    """As of `MarkedRange`."""
    is_apart: bool = False
    """Whether white space stands on both sides of it; in the text, only that before it is left."""


@dataclass(frozen=True, slots=True)
class InlineText:
    """The core of a segment: its text, and the markup inside it."""

    text: str
    """Begins and ends with a visible character. A label such as {{0}} stands for each WORD."""
    ranges: tuple[MarkedRange, ...]
    """In the order of their OPEN."""
    points: tuple[MarkedPoint, ...]
    words: dict[str, Markup]
    """Each label and what it stands for."""
    before: tuple[Piece, ...]
    """What stands before the core and never moves: white space, points, and markup around the whole core."""
    after: tuple[Piece, ...]

    @classmethod
    def of(cls, segment: Segment) -> "InlineText":
        """The core of a segment."""
        before, core, after = _cut_out(segment.pieces)
        core = core if segment.keeps_spaces else _with_single_spaces(core)
        text = ""
        opened: list[tuple[int, Markup, int]] = []
        ranges: list[MarkedRange | None] = []
        points: list[MarkedPoint] = []
        words: dict[str, Markup] = {}
        labels = _unused_labels(plain_text(core))
        followed = _followed_by_space(segment.pieces)
        for piece in core:
            if isinstance(piece, str):
                text += piece
            elif piece.role is Role.WORD:
                label = next(labels)
                words[label] = piece
                text += label
            elif piece.role is Role.POINT:
                parents = tuple(outer.number for _, outer, _ in opened)
                is_apart = text.endswith(" ") and piece in followed
                points.append(MarkedPoint(len(text), piece, parents, is_apart))
            elif piece.role is Role.OPEN:
                opened.append((len(text), piece, len(ranges)))
                ranges.append(None)
            else:
                start, opening, index = opened.pop()
                parents = tuple(outer.number for _, outer, _ in opened)
                is_apart = start == len(text) and text.endswith(" ") and piece in followed
                ranges[index] = MarkedRange(start, len(text), opening, piece, parents, is_apart)
        complete = tuple(each for each in ranges if each is not None)
        return cls(text, complete, tuple(points), words, before, after)

    def with_words(self, text: str) -> list[Piece]:
        """A text as pieces, in which each label becomes its WORD again."""
        if not self.words:
            return [text] if text else []
        parts = re.split(f"({'|'.join(map(re.escape, self.words))})", text)
        return [self.words.get(part, part) for part in parts if part]


def has_too_much_markup(pieces: Sequence[Piece]) -> bool:
    """Whether a segment has more markup, or deeper ranges, than are moved."""
    depth = num_markup = 0
    for piece in pieces:
        if isinstance(piece, Markup):
            num_markup += 1
            depth += (piece.role is Role.OPEN) - (piece.role is Role.CLOSE)
            if num_markup > MAX_MARKUP or depth > MAX_DEPTH:
                return True
    return False


def _with_single_spaces(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces with one space in place of all white space between two words, also where markup stands in it."""
    single: list[Piece] = []
    ends_with_space = False
    for piece in pieces:
        if not isinstance(piece, str):
            ends_with_space = ends_with_space and piece.role is not Role.WORD
            single.append(piece)
            continue
        text = _SPACES.sub(" ", piece)
        text = text[1:] if ends_with_space and text.startswith(" ") else text
        if text:
            single.append(text)
            ends_with_space = text.endswith(" ")
    return tuple(single)


def _followed_by_space(pieces: Sequence[Piece]) -> set[Piece]:
    """The markup before white space."""
    return {
        piece for piece, after in pairwise(pieces) if isinstance(after, str) and after[:1].isspace()
    }


def _cut_out(
    pieces: Sequence[Piece],
) -> tuple[tuple[Piece, ...], tuple[Piece, ...], tuple[Piece, ...]]:
    """What stands before the core of a segment, the core, and what stands after it."""
    start, end = 0, len(pieces)
    while True:
        first = start
        while start < end and (length := _length_of_edge(pieces[start:end])):
            start += length
        while start < end and (length := _length_of_edge(pieces[start:end][::-1])):
            end -= length
        if start < end and _is_range(pieces, start, end - 1):
            start, end = start + 1, end - 1
        elif start in (first, end):
            break
    before, core, after = list(pieces[:start]), list(pieces[start:end]), list(pieces[end:])
    if core and isinstance(core[0], str):
        stripped = core[0].lstrip()
        before.append(core[0][: len(core[0]) - len(stripped)])
        core[0] = stripped
    if core and isinstance(core[-1], str):
        stripped = core[-1].rstrip()
        after.insert(0, core[-1][len(stripped) :])
        core[-1] = stripped
    return tuple(filter(None, before)), tuple(filter(None, core)), tuple(filter(None, after))


def _length_of_edge(pieces: Sequence[Piece]) -> int:
    """How many pieces at the beginning hold no word: one, a range without words, or none."""
    first = pieces[0]
    if isinstance(first, str) or first.role not in (Role.OPEN, Role.CLOSE):
        return int(_is_edge(first))
    for number, piece in enumerate(pieces[1:], 2):
        if isinstance(piece, Markup) and piece.role in (Role.OPEN, Role.CLOSE):
            if piece.number == first.number:
                return number
        elif not _is_edge(piece):
            return 0
    return 0


def _is_edge(piece: Piece) -> bool:
    return not piece.strip() if isinstance(piece, str) else piece.role is Role.POINT


def _is_range(pieces: Sequence[Piece], first: int, last: int) -> bool:
    """Whether an OPEN and its CLOSE stand at both ends."""
    opening, closing = pieces[first], pieces[last]
    return (
        isinstance(opening, Markup)
        and isinstance(closing, Markup)
        and opening.role is Role.OPEN
        and closing.role is Role.CLOSE
        and opening.number == closing.number
    )


def _unused_labels(text: str) -> Iterator[str]:
    labels = (f"{{{{{number}}}}}" for number in count())
    return (label for label in labels if label not in text)


_NOTHING_KNOWN: Mapping[int, int] = MappingProxyType({})


@dataclass(slots=True)
class _Node:
    """A range with what stands directly in it; the whole text is the outermost."""

    source: Extent
    marked: MarkedRange | None = None
    children: list["_Node"] = field(default_factory=list)
    points: list[MarkedPoint] = field(default_factory=list)
    own: frozenset[int] = frozenset()
    """The indices of the target words that are linked to its source words."""
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
        parts = _links_of_parts(links, source.text, target)
        self._links = sorted(parts, key=lambda link: link.source)
        self._words = sorted({link.target for link in self._links})
        self._number_of = {word: number for number, word in enumerate(self._words)}
        self._labels = [
            match.span()
            for label in source.words
            for match in re.finditer(re.escape(label), target)
        ]
        # Nothing inside a placeholder or a URL is punctuation of the sentence, either.
        self._labels += [(span.start, span.end) for span in _words_among_spans(target)]
        # No markup belongs inside these.
        self._whole = sorted(
            {*self._labels, *((span.start, span.end) for span in find_spans(target))}
        )
        self._cores = [self._core(word) for word in self._words]
        # A label is a word: letters in place of its braces.
        self._masked = masked(source.text, _words_among_spans(source.text), "x")
        for label in source.words:
            self._masked = self._masked.replace(label, "x" * len(label))
        self._copied = self._copied_texts()
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
            node.own = frozenset(
                self._number_of[link.target]
                for link in self._links
                if _is_word_of(link.source, node.source, self._source.text)
            )
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
        found = [
            link for link in self._links if text[slice(*link.source)] == target[slice(*link.target)]
        ]
        # The first of several equal spans belongs to the first one of the translation, and so on.
        searched: dict[str, int] = {}
        spans = [(span.start, span.end) for span in find_spans(text)] if inner else []
        spans += [
            match.span()
            for label in self._source.words
            for match in re.finditer(re.escape(label), text)
        ]
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
            if copied.source in whole
            or bisect_left(inner, copied.source[1]) > bisect_right(inner, copied.source[0])
        ]

    def _in_copied_text(self, source: Extent) -> Extent | None:
        """The same place in the translation, if a range of the source lies inside a text that is copied."""
        for (first, last), (start, _) in self._copied:
            if first <= source[0] and source[1] <= last:
                return start + source[0] - first, start + source[1] - first
        return None

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
        free = [outer]
        for node in nodes:
            node.lack = None
            node.target = self._range_of(node, free)
            # Without this, equal empty parts double with each range that has no words.
            free = list(dict.fromkeys(part for each in free for part in _without(each, node.target)))  # fmt: skip

    def _fit(self, nodes: Sequence[_Node]) -> tuple[int, int]:
        """How good the ranges of some nodes are: the number of those with words that belong to no other, and of own words without others."""
        owners = Counter(number for node in nodes for number in node.own)
        own = [
            [number in node.own and owners[number] for number in self._words_inside(node.target)]
            for node in nodes
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

    def _range_of(self, node: _Node, free: Sequence[Extent]) -> Extent:
        """The range of the translation that holds as many words of a node and as few others as possible."""
        anywhere, free = free, _inside(free, self._extent_of_pieces(node.source))
        sure = self._in_copied_text(node.source)
        if sure and any(start <= sure[0] and sure[1] <= end for start, end in free):
            return sure
        inner = self._masked[slice(*node.source)].strip()
        if inner and not any(map(str.isalnum, inner)):
            return self._range_of_marks(node, inner, free)
        runs = [(run, part) for part in free if (run := self._best_run(node.own, part)) is not None]
        if runs:
            (first, last), part = max(runs, key=lambda found: self._score(node.own, *found[0]))
            start, end = self._without_outer_marks(node, first, last)
            start = self._behind_first_marks(inner, max(start, part[0]), min(end, part[1]))
            found = self._outside_spans((start, min(end, part[1])), part)
            # Words of which only the comma is left have vanished.
            if not any(map(str.isalnum, inner)) or any(
                map(str.isalnum, self._target[slice(*found)])
            ):
                return found
        # The range around it may have no words of its piece.
        nearest = self._nearest_word(node, free) or self._nearest_word(node, anywhere)
        if inner and nearest is not None:
            node.lack = WithoutWords.AT_NEAREST
            return nearest
        is_left_out = node.marked is not None and node.marked.opening.without_words is WithoutWords.LEFT_OUT  # fmt: skip
        node.lack = WithoutWords.EMPTY if inner and not is_left_out else None
        return self._empty_range(node, free)

    def _extent_of_pieces(self, source: Extent) -> Extent:
        """The part of the translation that belongs to the pieces of a range of the source, or to what is between two of them."""
        first, last = source
        pieces = self._translated
        touched = [
            number
            for number, ((start, end), _, _) in enumerate(pieces)
            if start < last and first < end
        ]
        if not touched:
            behind = sum(piece.source[1] <= first for piece in pieces)
            start, end = self._end_before(behind), self._start_of(behind)
            if behind and pieces[behind - 1].source[1] == first:
                # The mark of a footnote behind a word goes where the word goes.
                is_at_word = self._source.text[first - 1].isalnum()
                return (pieces[behind - 1].target[0], end) if is_at_word else (start, start)
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
        return self._translated[number].target[0] if number < len(self._translated) else len(self._target)  # fmt: skip

    def _end_before(self, number: int) -> int:
        """Where the piece before one ends in the translation; its beginning before the first one."""
        return self._translated[number - 1].target[1] if number else 0

    def _nearest_word(self, node: _Node, free: Sequence[Extent]) -> Extent | None:
        """The free word beside the place of a range that must stand around one; None if there is none, or it may be empty."""
        assert node.marked is not None
        if node.marked.opening.without_words is not WithoutWords.AT_NEAREST:
            return None
        place = self._place_beside(node.source[0])
        words = [
            self._outside_spans(core, part)
            for core in self._cores
            for part in free
            if part[0] <= core[0] and core[1] <= part[1] and self._target[core[0]].isalnum()
        ]
        return min(words, key=lambda word: max(word[0] - place, place - word[1], 0), default=None)

    def _empty_range(self, node: _Node, free: Sequence[Extent]) -> Extent:
        place = self._place_beside(node.source[0])
        start, end = min(free, key=lambda part: max(part[0] - place, place - part[1], 0))
        place = min(max(place, start), end)
        return self._outside_spans((place, place), (start, end))

    def _outside_spans(self, extent: Extent, free: Extent) -> Extent:
        """A range that neither begins nor ends inside a protected span: it holds the whole span, or nothing of it."""
        start, end = extent
        for first, last in self._whole:
            if first < start < last:
                start = first if first >= free[0] else min(last, free[1])
            if first < end < last:
                end = last if last <= free[1] else max(first, free[0])
        return start, max(start, end)

    def _range_of_marks(self, node: _Node, inner: str, free: Sequence[Extent]) -> Extent:
        """The range of a node without letters and digits, such as an arrow: the same marks beside the same word."""
        place = self._place_beside(node.source[0])
        found = [
            at
            for at in _places_of(inner, self._target)
            if any(start <= at and at + len(inner) <= end for start, end in free)
        ]
        if not found:
            return self._empty_range(node, free)
        nearest = min(found, key=lambda at: min(abs(at - place), abs(at + len(inner) - place)))
        return nearest, nearest + len(inner)

    def _score(self, own: frozenset[int], first: int, last: int) -> int:
        num_own = sum(number in own for number in range(first, last + 1))
        return 2 * num_own - (last - first + 1)

    def _best_run(self, own: frozenset[int], part: Extent) -> tuple[int, int] | None:
        """The words in a part with the largest number of own words minus others; None if there is no own word."""
        first = bisect_left(self._cores, (part[0], part[0]))
        best: tuple[int, int, int] | None = None
        start, total = first, 0
        for number in range(first, len(self._words)):
            if self._cores[number][1] > part[1]:
                break
            if total <= 0:
                start, total = number, 0
            total += 1 if number in own else -1
            if number in own and (best is None or total > best[0]):
                best = (total, start, number)
        return None if best is None else best[1:]

    def _without_outer_marks(self, node: _Node, first: int, last: int) -> Extent:
        """The range of some words, without the punctuation at its ends that is outside the node in the source."""
        start, end = self._words[first][0], self._words[last][1]
        inner = self._masked[slice(*node.source)].strip()
        before = re.split(r"\s", self._masked[: node.source[0]])[-1]
        after = re.split(r"\s", self._masked[node.source[1] :], maxsplit=1)[0]
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
        while place < end and self._target[place] in _NEVER_FIRST and not inner.startswith(self._target[place]):  # fmt: skip
            if any(first <= place < last for first, last in self._whole):
                break
            place += 1
        return place

    def _masked_target(self, start: int, end: int) -> str:
        """A part of the translation, with letters in place of the braces of labels."""
        inside = [(first, last) for first, last in self._labels if start <= first and last <= end]
        text = self._target[start:end]
        for first, last in inside:
            text = text[: first - start] + "x" * (last - first) + text[last - start :]
        return text

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
        is_inside = any(start <= place < end for start, end in self._labels)
        return not is_inside and not self._target[place].isalnum()

    def _place_beside(self, place: int) -> int:
        """The place of the translation that belongs to a place of the source: beside the nearest linked word."""
        if self._source.text[max(0, place - 1) : place + 1].count(DIVISION):
            return self._place_at_division(place)
        if place in self._known:
            return self._known[place]
        if sure := self._in_copied_text((place, place)):
            return sure[0]
        before = [link for link in self._links if link.source[1] <= place]
        after = [link for link in self._links if link.source[0] >= place]
        inside = [link for link in self._links if link.source[0] < place < link.source[1]]
        if inside:
            return self._place_in_word(inside[0], place)
        touches_before = bool(before) and before[-1].source[1] == place
        touches_after = bool(after) and after[0].source[0] == place
        if after and (touches_after or not before) and not touches_before:
            start, end = after[0].target
            is_mark = before and not any(map(str.isalnum, self._masked[slice(*after[0].source)]))
            num_marks = len(_marks_at_end(self._masked_target(start, end)))
            # A full stop that stands alone in the source is a part of the last word of the translation.
            return end - num_marks if is_mark and num_marks < end - start else start
        if touches_before:
            return self._behind(before[-1])
        if before and after:
            return after[0].target[0]
        return before[-1].target[1] if before else len(self._target)

    def _place_at_division(self, place: int) -> int:
        """The place beside the same division; the translation has as many as the source."""
        number = self._source.text.count(DIVISION, 0, place)
        is_behind = self._source.text[place - 1 : place] == DIVISION
        found = [match.start() for match in re.finditer(DIVISION, self._target)]
        at = number - 1 if is_behind else number
        return found[at] + is_behind if at < len(found) else len(self._target)

    def _place_in_word(self, link: LinkedWords, place: int) -> int:
        """The place in the translation of a word: the same in an equal word, else beside its letters or behind it."""
        (first, last), (start, end) = link
        if self._source.text[first:last] == self._target[start:end]:
            return start + place - first
        if not any(map(str.isalnum, self._source.text[first:place])):
            while start < end and self._is_mark(start):
                start += 1
            return start
        if not any(map(str.isalnum, self._source.text[place:last])):
            inner, after = self._masked[first:place], self._masked[place:last]
            end -= _num_outside(self._masked_target(start, end), inner, after)
        return end

    def _behind(self, link: LinkedWords) -> int:
        """The end of the last word that translates the same word as this one."""
        return max(other.target[1] for other in self._links if other.source == link.source)

    def _pieces(self, node: _Node) -> list[Piece]:
        """The text of a node's range, with all markup in it."""
        start, end = node.target
        inner: list[tuple[int, int, int, list[Piece]]] = []
        for number, child in enumerate(node.children):
            first, last = child.target
            assert child.marked is not None
            pieces = self._pieces(child)
            if child.marked.opening.without_words is WithoutWords.LEFT_OUT and not any(map(_is_shown, pieces)):  # fmt: skip
                self._num_left_out += 1
            else:
                pieces = [child.marked.opening, *pieces, child.marked.closing]
                if child.marked.is_apart and first == last:
                    pieces = self._with_space(pieces, first)
            inner.append((first, last, number, pieces))
        taken = [child.target for child in node.children]
        for number, point in enumerate(node.points):
            first, last = self._extent_of_pieces((point.place, point.place))
            place = min(max(self._place_beside(point.place), first), last)
            place = min(max(place, start), end)
            place = next((last for first, last in taken if first < place < last), place)
            if self._in_copied_text((point.place, point.place)) is None:
                place = self._outside_spans((place, place), (start, end))[1]
            pieces = [point.markup]
            apart = self._with_space(pieces, place) if point.is_apart else pieces
            inner.append((place, place, number, apart))
        result: list[Piece] = []
        for first, last, _, pieces in sorted(inner, key=lambda each: each[:3]):
            result += self._source.with_words(self._target[start:first])
            result += pieces
            start = last
        return merged([*result, *self._source.with_words(self._target[start:end])])

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
    places = {piece.number: at for at, piece in enumerate(pieces) if isinstance(piece, Markup) and piece.role is Role.POINT}  # fmt: skip
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
    of_source, of_target = _places_of_names(text), _places_of_names(target)
    return [
        LinkedWords(*places)
        for name, found in of_source.items()
        if len(found) == len(of_target.get(name, ()))
        for places in zip(found, of_target[name], strict=True)
    ]


def _kept_compounds(text: str, target: str, ranges: Sequence[Extent]) -> list[LinkedWords]:
    """The ranges of one word with marks inside it, such as house:dog.zip and user#2, that a translation has as often."""
    found: list[LinkedWords] = []
    for compound in dict.fromkeys(text[start:end] for start, end in ranges):
        if _COMPOUND.fullmatch(compound) is None:
            continue
        pattern = re.compile(rf"(?<!\w){re.escape(compound)}(?!\w)")
        of_source, of_target = (
            [match.span() for match in pattern.finditer(each)] for each in (text, target)
        )
        if len(of_source) == len(of_target):
            found += map(LinkedWords, of_source, of_target)
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
_BETWEEN_WORDS = re.compile(
    r"(?<=\w)[^\w\s'\u2019.\u00b7\u2010\u2011-]+(?=\w)|(?<=\w)(?:-{2,}|\.{2,})(?=\w)"
)


def _links_of_parts(links: Sequence[LinkedWords], text: str, target: str) -> set[LinkedWords]:
    """The links, in which dog\u2014a is two words in the place of one; words with as many parts are linked part by part."""
    if _BETWEEN_WORDS.search(text) is None and _BETWEEN_WORDS.search(target) is None:
        return set(links)
    cuts = [
        [match.span() for match in _BETWEEN_WORDS.finditer(masked(each, find_spans(each), "x"))]
        for each in (text, target)
    ]
    found: set[LinkedWords] = set()
    for link in links:
        sources, targets = (
            _parts_of(word, cuts_of_text) for word, cuts_of_text in zip(link, cuts, strict=True)
        )
        if len(sources) == len(targets):
            found.update(map(LinkedWords, sources, targets))
        else:
            found.update(LinkedWords(one, other) for one in sources for other in targets)
    return found


def _parts_of(word: Extent, cuts: Sequence[Extent]) -> list[Extent]:
    """A word without the cuts inside it, as the ranges between them."""
    first = bisect_left(cuts, word)
    last = bisect_left(cuts, (word[1], word[1]))
    inside = [place for cut in cuts[first:last] for place in cut]
    places = [word[0], *inside, word[1]]
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
    if own and (not after or after[0].isalnum()):
        return 0
    # A range that ends with a letter can hold the marks of another word, which is the last one now.
    num_own = next((at for at, sign in enumerate(marks) if sign not in (own or inner)), len(marks))
    return len(marks) - num_own


def _marks_at_end(text: str) -> str:
    end = len(text)
    while end and not text[end - 1].isalnum():
        end -= 1
    return text[end:]


def _places_of(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _inside(free: Sequence[Extent], outer: Extent) -> list[Extent]:
    """The parts of free ranges that are in an outer range; if there are none, the free place nearest to it."""
    inside = [
        (max(part[0], outer[0]), min(part[1], outer[1]))
        for part in free
        if part[0] <= outer[1] and outer[0] <= part[1]
    ]
    if inside:
        return inside
    before = max((part[1] for part in free if part[1] < outer[0]), default=None)
    behind = min((part[0] for part in free if part[0] > outer[1]), default=None)
    if before is None or (behind is not None and behind - outer[1] < outer[0] - before):
        return [(behind or 0,) * 2]
    return [(before, before)]


def _without(part: Extent, taken: Extent) -> list[Extent]:
    """What is left of a part when another range is taken out of it; an empty part stays at each side."""
    if taken[1] < part[0] or taken[0] > part[1]:
        return [part]
    return [(part[0], max(part[0], taken[0])), (min(part[1], taken[1]), part[1])]


def _is_word_of(word: Extent, outer: Extent, text: str) -> bool:
    """Whether a word belongs to a range: at least half of its letters are in it, or the range is inside the word."""
    if word[0] <= outer[0] and outer[1] <= word[1]:
        return outer[0] < outer[1]
    inside = text[max(word[0], outer[0]) : min(word[1], outer[1])]
    return 2 * _weight(inside) >= _weight(text[slice(*word)]) and bool(inside)


def _weight(text: str) -> int:
    """The number of letters and digits of a text, or of its characters if it has none."""
    return sum(map(str.isalnum, text)) or len(text)
