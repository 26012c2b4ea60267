"""Segments: the texts of a document that are translated, with the markup inside them, and what a document must offer.

A format reads a `Document` from bytes. Each block of text (a paragraph, a cell, a title) is one segment. The markup
inside a segment, such as <b>, is not text: it is a `Markup` between the pieces of text. `translation.py`
translates all segments and moves the markup with its words; then the document writes itself with the translations.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from html import unescape
from itertools import accumulate
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.text.languages import frequent_words, primary_language
from transformer_cli.text.normalization import has_letter, has_word


class Role(Enum):
    """What a piece of markup does with the text beside it."""

    OPEN = "open"
    """It begins a range of text, such as <b>."""
    CLOSE = "close"
    """It ends the range that the OPEN with the same number has begun."""
    POINT = "point"
    """It stands between two words, such as an image or the mark of a footnote."""
    WORD = "word"
    """It takes the place of a word and is not translated, such as a placeholder or <code>x</code>."""


class WithoutWords(Enum):
    """What becomes of a range whose words have no counterpart in the translation."""

    EMPTY = "empty"
    """It stands there without text, as <b></b>."""
    LEFT_OUT = "left out"
    """Its tags are left out, because they would be read as text: Markdown shows ****."""
    AT_NEAREST = "at nearest"
    """It stands around the nearest word: nobody could follow a link of Markdown without words."""


_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_INSTRUCTION = re.compile(r"<(\w+:)?(instrText|delText)\b[^<>]*>[^<>]*</\1\2>")
_EQUIVALENT_TEXT = re.compile(r"""\bequiv-text=["']([^"'<>]+)["']""")


class Markup(NamedTuple):
    """A piece of markup inside a segment."""

    role: Role
    number: int
    """Of a segment: each POINT and WORD has its own number, and OPEN and CLOSE of one range have the same."""
    raw: str
    """What stands in the file; only the format reads it."""
    start: int | None = None
    """Where it stands in the text of a file, if other parts of the file that change may lie in it."""
    partner: int | None = None
    """Of a POINT that begins something, such as a bookmark: the number of the POINT that ends it, which stays behind it."""
    inner: "InnerText | None" = None
    """Of markup that has texts of its own, such as the branches of a plural."""
    without_words: WithoutWords = WithoutWords.EMPTY
    """Of an OPEN."""

    @property
    def shown(self) -> str:
        """What a person reads in its place: without tags of XML and instructions of fields, unless nothing else stands there."""
        if not (self.raw.startswith("<") and self.raw.endswith(">")):
            return self.raw
        text = unescape(_TAG.sub("", _INSTRUCTION.sub("", self.raw)))
        of_placeholder = _EQUIVALENT_TEXT.search(self.raw)
        return text if text.strip() else unescape(of_placeholder[1]) if of_placeholder else self.raw


Piece = str | Markup
"""Plain text, in which all escapes of the format are resolved, or markup."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A text to translate.

    Ranges are nested: each OPEN has a CLOSE behind it in the same segment, and two ranges never overlap in part.
    """

    pieces: tuple[Piece, ...]
    place: str
    """Where it stands, for messages, such as "line 12"."""
    keeps_spaces: bool = False
    """Whether line breaks and several spaces in a row have a meaning, as in a plain text; then each line is translated
    by itself. Else all white space between two words is one space, as in HTML."""
    has_sounds: bool = False
    """Whether [door opens] in it is a text of its own, as in subtitles."""
    is_label: bool = False
    """Whether & or _ in it may mark a key, as in the labels of programs."""
    is_of_qt: bool = False
    """Whether it is a label as Qt reads it, where & also marks a key inside a word of small letters."""
    has_references: bool = False
    """Whether &eacute; in it is read as the character that it means, as in the strings of programs; the pieces have it as it is."""

    @classmethod
    def plain(cls, text: str, place: str, *, keeps_spaces: bool = True) -> "Segment":
        """A segment without markup."""
        return cls((text,), place, keeps_spaces)


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """The translation of a segment: the same markup, each exactly once, with the translated text around it.

    Only ranges that must not be empty (`WithoutWords.LEFT_OUT`) can be missing.
    """

    pieces: tuple[Piece, ...]
    """As those of the segment if nothing was translated."""
    doubts: tuple[str, ...] = ()
    """Why a person should look at it; a format that can mark a translation (fuzzy, needs-review) does so."""
    trust: str = ""
    """With `NotGreen.MARKED`: green or not green, and the probability that it is good; `memory` or `glossary` if only these have
    translated it; empty if it needs no translation."""

    @property
    def text(self) -> str:
        """The text without markup."""
        return plain_text(self.pieces)


class Document(Protocol):
    """A file that holds text: it gives its segments, and writes itself with their translations."""

    @property
    def segments(self) -> Sequence[Segment]:
        """What is to translate, in order."""

    def write(self, translations: Sequence[TranslatedSegment], languages: Direction) -> bytes:
        """The document with other texts. A segment whose pieces did not change keeps its bytes.

        Args:
            translations: one for each segment, in order.
            languages: a document that names its language names the target language afterwards.
        """


@runtime_checkable
class NamesLanguages(Protocol):
    """A `Document` that may name its languages, and is refused if the model translates others."""

    def require_languages(self, languages: Direction) -> None:
        """Nothing, if the document can be written in these languages; else the error of `Document.write`.

        Raises:
            DataError: the document names other languages.
        """


def plain_text(pieces: Sequence[Piece]) -> str:
    """The text of pieces, without markup."""
    return "".join(piece for piece in pieces if isinstance(piece, str))


_WORD_AT_END = re.compile(r"[^\W_]+\Z")
_CHEMICAL = re.compile(r"(?:[A-Z][a-z]?){2,8}")
_LONGEST_UNIT = 2
_TRADE_MARKS = frozenset(["TM", "SM"])


def stands_beside_word(text: str, before: str, *, is_lowered: bool, language: str | None) -> bool:
    """Whether a raised or lowered text is no part of the word before it, as the mark of a footnote, (TM), and the index of a variable.

    The exponents and numbers of m\u00b2, 10\u2076 and H\u2082O are parts: the model reads m2, 106 and H2O, and keeps them.

    Args:
        text: what is raised or lowered.
        before: the text before it, of which the last characters count.
        is_lowered: whether it is lowered.
        language: of the text; None: it is not known.
    """
    text, found = text.strip(), _WORD_AT_END.search(before)
    word = found[0] if found else ""
    if has_letter(text):
        return text.isalpha() and bool(word) and (text in _TRADE_MARKS or (is_lowered and len(word) == 1))
    if is_lowered or not text:
        return False
    if text != "+" and not has_word(text):
        return True  # Cl\u207b; the plus of Na\u207a is read with it
    is_unit = 0 < len(word) <= _LONGEST_UNIT and word.casefold() not in frequent_words(language or "en")
    return not (word.isdigit() or is_unit or _CHEMICAL.fullmatch(word))


def merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces in which two texts never stand side by side."""
    result: list[Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        if isinstance(piece, str) and isinstance(last, str):
            result[-1] = last + piece
        elif piece:
            result.append(piece)
    return result


_LETTERS = re.compile(r"[^\W\d_]+")
# What stands beside a placeholder at the end of a word: white space or the end, perhaps behind marks such as a full stop.
_FREE = re.compile(r"[^\w\s]*+(?:\s|\Z)")
_MOST_MARKS = 8


def with_values_around_words(
    pieces: Sequence[Piece], values: Callable[[str], Iterable[tuple[int, int]]]
) -> tuple[Piece, ...]:
    """Pieces in which a placeholder that touches a word at one end of it, as in {x}dog, is the tag of a range around the word.

    So it moves with its word, and the model reads the word alone. Between two words it keeps them apart, and stays text; so it
    does where more follows it without white space, as in image{n}-small and dog{x}'s.

    Args:
        values: where the placeholders of a text stand, in order.
    """
    found: list[Piece] = []
    number = min(0, *(piece.number for piece in pieces if isinstance(piece, Markup)), 0)
    # The signs behind the tags on both sides count, too: <b>red</b>{x}dog are two words. Those before are read backwards.
    befores = [each[::-1] for each in _signs_before(pieces)]
    behinds = _signs_before([each[::-1] if isinstance(each, str) else each for each in reversed(pieces)])[::-1]
    behinds = [each[::-1] for each in behinds]
    for piece, signs_before, signs_behind in zip(pieces, befores, behinds, strict=True):
        if not isinstance(piece, str):
            found.append(piece)
            continue
        place = 0
        for start, end in _joined(values(piece)):
            before = piece[max(0, start - _MOST_MARKS) : start][::-1] + signs_before
            behind_it = piece[end : end + _MOST_MARKS] + signs_behind
            is_word_before, is_word_behind = before[:1].isalnum(), behind_it[:1].isalnum()
            last_tag = found[-1] if found else None
            if not _FREE.match(before if is_word_behind else behind_it):
                continue
            if 0 < start == place and is_text_as_markup(last_tag) and not is_word_behind:
                # On both sides of one word.
                found[-1] = last_tag._replace(raw=last_tag.raw + piece[start:end])
                place = end
                continue
            behind = _LETTERS.match(piece, end)
            last = behind.end() if behind else end
            first = start
            while first > place and piece[first - 1].isalpha():
                first -= 1
            if start < place or is_word_before == is_word_behind or (first, last) == (start, end):
                continue
            number -= 1
            tags = (piece[start:end], "") if is_word_behind else ("", piece[start:end])
            first, last = (start, last) if is_word_behind else (first, end)
            word = piece[end:last] if is_word_behind else piece[first:start]
            opening, closing = (
                Markup(role, number, tag) for role, tag in zip((Role.OPEN, Role.CLOSE), tags, strict=True)
            )
            found += [piece[place:first], opening, word, closing]
            place = last
        found.append(piece[place:])
    return tuple(piece for piece in found if piece)


# The end of a sentence without its space: apps._Our note_
_END_BEFORE_RANGE = re.compile(r"[^\W\d_]{2}[.!?:]\Z")
_RAISED = re.compile(r"<sup[\s>]", re.IGNORECASE)
# Links and emphasis of Markdown and HTML.
_WRITTEN_BY_HAND = re.compile(r"[\[*_~]|<(?:a|b|em|i|mark|strong|u)\b", re.IGNORECASE)


def with_spaces_at_ranges(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces with a space where a range of several words, or a raised word, touches a word outside of it: see[the page](url), dog<sup>new</sup>.

    A range inside one word, as in <b>O</b>nce and [dog](url)s, stays in it; and so do the formats of office documents, which
    may begin inside a word by a slip of the mouse.
    """
    ends = {
        piece.number: at for at, piece in enumerate(pieces) if isinstance(piece, Markup) and piece.role is Role.CLOSE
    }
    spaces: set[int] = set()
    before = _ends_of_words(pieces, slice(-1, None))
    behind = _ends_of_words(pieces[::-1], slice(1))[::-1]
    lengths = (len(piece) if isinstance(piece, str) else 0 for piece in pieces)
    places = [0, *accumulate(lengths)]
    words = [match.span() for match in re.finditer(r"\S+", plain_text(pieces))]
    for at, piece in enumerate(pieces):
        if not isinstance(piece, Markup) or piece.role is not Role.OPEN or piece.number not in ends:
            continue
        end = ends[piece.number]
        if _RAISED.match(piece.raw) and _are_two_words(
            plain_text(pieces[max(0, at - 1) : at]), plain_text(pieces[at:end])
        ):
            spaces.add(at)
        if _WRITTEN_BY_HAND.match(piece.raw) is None:
            continue
        first = bisect_right(words, places[at], key=lambda word: word[1])
        if first + 1 < len(words) and words[first + 1][0] < places[end]:
            spaces |= {place for place in (at, end + 1) if before[place] and behind[place]}
            if behind[at] and _END_BEFORE_RANGE.search(plain_text(pieces[max(0, at - 1) : at])):
                spaces.add(at)
    if not spaces:
        return tuple(pieces)
    return tuple(
        merged([part for at, piece in enumerate(pieces) for part in ([" ", piece] if at in spaces else [piece])])
    )


def _are_two_words(before: str, raised: str) -> bool:
    """Whether raised text is a word of its own behind another one, and no ending as of XIX\u00e8me, 1st or Mlle."""
    found = _WORD_AT_END.search(before)
    lengths = (len(found[0]) if found else 0, len(raised))
    return found is not None and min(lengths) > 2 and f"{found[0]}{raised}".isalpha() and not found[0].isupper()


def _ends_of_words(pieces: Sequence[Piece], edge: slice) -> list[bool]:
    """For the place before each piece and that behind all, whether the text before it ends with a word: edges of ranges are no text.

    Args:
        edge: where the last character of a text stands, in the order of the pieces.
    """
    found, is_word = [False], False
    for piece in pieces:
        if isinstance(piece, str):
            is_word = piece[edge].isalnum()
        elif piece.role not in (Role.OPEN, Role.CLOSE):
            is_word = False
        found.append(is_word)
    return found


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, of which those that touch are one."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        first = joined.pop()[0] if joined and joined[-1][1] == start else start
        joined.append((first, end))
    return joined


def _signs_before(pieces: Sequence[Piece]) -> list[str]:
    """For each piece the last signs of the text before it; empty if something takes the place of a word there."""
    signs, last = [], ""
    for piece in pieces:
        signs.append(last)
        if isinstance(piece, str):
            last = (last + piece[-_MOST_MARKS:])[-_MOST_MARKS:]
        elif piece.role is Role.WORD:
            last = ""
    return signs


def is_text_as_markup(piece: Piece | None) -> TypeGuard[Markup]:
    """Whether a piece is markup that stands for text of the segment, such as that of `with_values_around_words`."""
    return isinstance(piece, Markup) and piece.number < 0


class InlinePart(NamedTuple):
    """A part of a file inside a block: text, or a tag."""

    piece: Piece
    start: int
    """Where it stands in the text of the file."""
    end: int
    name: str = ""
    """Of a tag: a range begins and ends with the same name."""
    pair: Role | None = None
    """Of a POINT that begins (OPEN) or ends (CLOSE) something that covers text without being an element around it."""


def with_paired_points(parts: Sequence[InlinePart]) -> list[InlinePart]:
    """Parts in which two points that belong together, such as the ends of a bookmark, are a range as far as that is possible.

    A pair that crosses another range stays two points, and the first of them knows the second.
    """
    result = list(parts)
    if not any(part.pair for part in parts):
        return result
    innermost = _innermost_ranges(parts)
    # The end and beginning of each pair that is a range. One that ends later and begins earlier than another is enough of both:
    # a pair that crosses the other crosses it, too, or holds both.
    ends: list[tuple[int, int]] = []
    for first, last in _pairs_of_points(parts):
        begin, end = result[first].piece, result[last].piece
        assert isinstance(begin, Markup)
        assert isinstance(end, Markup)
        behind = bisect_right(ends, (first, len(parts)))
        crosses_pair = behind < len(ends) and ends[behind][1] < first
        if crosses_pair or innermost[first] != innermost[last]:
            result[first] = parts[first]._replace(piece=begin._replace(partner=end.number))
            continue
        while ends and ends[-1][1] >= first:
            ends.pop()
        ends.append((last, first))
        for index, piece, role in ((first, begin, Role.OPEN), (last, end, Role.CLOSE)):
            name = f"{parts[index].name} {begin.number}"  # pairs of one kind may cross each other
            result[index] = parts[index]._replace(piece=piece._replace(role=role), name=name)
    return result


def _pairs_of_points(parts: Sequence[InlinePart]) -> list[tuple[int, int]]:
    """The indices of two points that belong together: the last one that was opened with a name, and the one that closes it."""
    pairs: list[tuple[int, int]] = []
    opened: dict[str, list[int]] = {}
    for index, part in enumerate(parts):
        if part.pair is Role.OPEN:
            opened.setdefault(part.name, []).append(index)
        elif part.pair is Role.CLOSE and opened.get(part.name):
            pairs.append((opened[part.name].pop(), index))
    return pairs


def _innermost_ranges(parts: Sequence[InlinePart]) -> list[int]:
    """For each part the index of the OPEN of the innermost range around it; -1 if there is none."""
    partners = partners_of(parts)
    found: list[int] = []
    opened = [-1]
    for index in range(len(parts)):
        partner = partners.get(index, index)
        if partner < index:
            opened.pop()
        found.append(opened[-1])
        if partner > index:
            opened.append(index)
    return found


def nested(parts: Sequence[InlinePart]) -> list[InlinePart]:
    """Parts whose ranges are nested: a tag that has no partner, or whose range would cross another, is a point.

    The CLOSE of each range gets the number of its OPEN.
    """
    result = with_paired_points(parts)
    partners = partners_of(result)
    alone: dict[str, list[int]] = {}
    for index, part in enumerate(result):
        piece = part.piece
        if not isinstance(piece, Markup) or piece.role not in (Role.OPEN, Role.CLOSE):
            continue
        first = partners.get(index)
        if first is None and piece.role is Role.OPEN:
            alone.setdefault(part.name, []).append(index)
        elif first is None and alone.get(part.name):
            first = alone[part.name].pop()
            opening = result[first].piece
            assert isinstance(opening, Markup)
            result[first] = result[first]._replace(piece=opening._replace(partner=piece.number))
        elif first is not None and first < index:
            opening = result[first].piece
            assert isinstance(opening, Markup)
            piece = piece._replace(number=opening.number)
        if index not in partners:
            piece = piece._replace(role=Role.POINT)
        result[index] = part._replace(piece=piece)
    return result


def with_whole_words(run: Sequence[InlinePart], format_name: str = "") -> list[InlinePart]:
    """A run in which two ranges with the same tag are one, where a word begins in the first and ends in the second.

    Word processors divide a word so: <span class="c1">trans</span><span class="c1">lation</span>.

    Args:
        format_name: of ranges that are nothing but a format, and are one also where no word goes on.
    """
    opened: dict[int, Markup] = {}
    number_of: dict[int, int] = {}
    result: list[InlinePart] = []
    for index, part in enumerate(run):
        piece = part.piece
        last = result[-1].piece if result else None
        if isinstance(piece, str):
            if isinstance(last, str):
                part = result.pop()._replace(piece=last + piece, end=part.end)
        elif piece.role is Role.CLOSE:
            number = number_of.get(piece.number, piece.number)
            part = part._replace(piece=piece._replace(number=number))
        elif piece.role is Role.OPEN:
            if (
                isinstance(last, Markup)
                and last.role is Role.CLOSE
                and opened[last.number].raw == piece.raw
                and (
                    part.name == format_name
                    or _is_one_word(piece.raw, _text_beside(run, index - 1, -1), _text_beside(run, index + 1, 1))
                )
            ):
                result.pop()
                number_of[piece.number] = last.number
                continue
            opened[piece.number] = piece
        result.append(part)
    return result


def _text_beside(run: Sequence[InlinePart], index: int, step: int) -> str:
    """The text from an index on, in steps of 1 or -1, behind a few ends of ranges; empty if something else stands there."""
    for at in range(index, index + step * _MOST_MARKS, step):
        piece = run[at].piece if 0 <= at < len(run) else ""
        if isinstance(piece, str):
            return piece
        if piece.role not in (Role.OPEN, Role.CLOSE):
            break
    return ""


def _is_one_word(tag: str, before: str, after: str) -> bool:
    """Whether two ranges divide a word; the parts of <span>$</span><span>5</span> are no word."""
    return _goes_on(before, after) and (tag.lower() != "<span>" or has_letter(before[-1] + after[0]))


def _goes_on(before: str, after: str) -> bool:
    """Whether a word of one text may go on in the next; not at the capital letter of another word, as in OK|Cancel and dog.|The."""
    if not before[-1:].strip() or not after[:1].strip():
        return False
    is_in_capitals = before[-1].isupper() and not after[1:2].islower()
    return is_in_capitals or not after[0].isupper()


def partners_of(parts: Sequence[InlinePart]) -> dict[int, int]:
    """The index of the partner of each OPEN and CLOSE that has one; ranges are nested."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    num_opened: dict[str, int] = {}
    for index, part in enumerate(parts):
        if not isinstance(part.piece, Markup):
            continue
        if part.piece.role is Role.OPEN:
            opened.append(index)
            num_opened[part.name] = num_opened.get(part.name, 0) + 1
        elif part.piece.role is Role.CLOSE and num_opened.get(part.name):
            while True:
                last = opened.pop()
                num_opened[parts[last].name] -= 1
                if parts[last].name == part.name:
                    break
            partners |= {last: index, index: last}
    return partners


class Slot(NamedTuple):
    """A part of a text that holds a segment: text[start:end].

    A slot may lie inside the markup of another one, such as the attribute of an image inside a paragraph, or a footnote
    inside one; else slots do not overlap.
    """

    start: int
    end: int
    segment: Segment
    render: Callable[[TranslatedSegment], str]
    """What stands there instead, for a translation that differs from the segment."""
    trust_at: int | None = None
    """Where `TranslatedSegment.trust` is written, behind the slot; None: nowhere."""


def moved_slot(slot: Slot, by: int, place: str) -> Slot:
    """A slot of a part of a text, in the text itself.

    Args:
        by: where the part begins.
        place: of the segment.
    """
    pieces = tuple(
        piece._replace(start=piece.start + by) if isinstance(piece, Markup) and piece.start is not None else piece
        for piece in slot.segment.pieces
    )
    segment = replace(slot.segment, pieces=pieces, place=place)
    return slot._replace(start=slot.start + by, end=slot.end + by, segment=segment)


class Edit(NamedTuple):
    """Another part that changes, such as the name of the language: text[start:end]."""

    start: int
    end: int
    replacement: Callable[[Direction], str]


class Change(NamedTuple):
    """What stands in place of text[start:end]."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class SplicedDocument:
    """A `Document` of one text."""

    content: DecodedText
    slots: tuple[Slot, ...]
    edits: tuple[Edit, ...] = ()

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`."""
        return [slot.segment for slot in self.slots]

    def require_languages(self, languages: Direction) -> None:
        """See `NamesLanguages.require_languages`."""
        for edit in self.edits:
            edit.replacement(languages)

    def write(self, translations: Sequence[TranslatedSegment], languages: Direction) -> bytes:
        """See `Document.write`."""
        return self.content.encoded(self.translated_text(translations, languages))

    def translated_text(self, translations: Sequence[TranslatedSegment], languages: Direction) -> str:
        """The text of `write`, before it is encoded."""
        edits = [Change(*edit[:2], edit.replacement(languages)) for edit in self.edits]
        marks = [
            Change(slot.trust_at, slot.trust_at, translation.trust)
            for slot, translation in zip(self.slots, translations, strict=True)
            if slot.trust_at is not None
        ]
        changes = sorted(edits + marks)
        # The shortest first: what lies inside the markup of another slot is ready when that slot is written.
        in_order = sorted(zip(self.slots, translations, strict=True), key=lambda each: each[0].end - each[0].start)
        for slot, translation in in_order:
            if translation.pieces == slot.segment.pieces:
                continue
            first, last = (bisect_left(changes, (place,)) for place in (slot.start, slot.end))
            text = slot.render(_with_changes(translation, changes[first:last]))
            changes[first:last] = [Change(slot.start, slot.end, text)]
        return spliced(self.content.text, changes)


@dataclass(frozen=True, slots=True, eq=False)
class InnerText:
    """The texts inside a piece of markup."""

    document: SplicedDocument
    finish: Callable[[str], str] = str
    """From the text of the document to the markup as it stands in the file."""
    fault: str = ""
    """Why its texts could not be found, for a person."""


def spliced(text: str, changes: Iterable[Change]) -> str:
    """The text with its changes, which do not overlap."""
    parts, place = [], 0
    for start, end, replacement in sorted(changes):
        parts += [text[place:start], replacement]
        place = end
    return "".join([*parts, text[place:]])


def rendered(pieces: Iterable[Piece], escape: Callable[[str], str]) -> str:
    """Pieces as they stand in a file: the markup as it is, the text escaped."""
    return "".join(escape(piece) if isinstance(piece, str) else piece.raw for piece in pieces)


def _inside(changes: Sequence[Change], start: int, end: int) -> Sequence[Change]:
    """The changes of a sorted list that lie in a range."""
    return changes[bisect_left(changes, (start,)) : bisect_left(changes, (end,))]


def _with_changes(translation: TranslatedSegment, changes: Sequence[Change]) -> TranslatedSegment:
    """The translation, with the changes that lie in its markup."""
    pieces: list[Piece] = []
    for piece in translation.pieces:
        if not isinstance(piece, Markup) or piece.start is None:
            pieces.append(piece)
            continue
        start = piece.start
        own = [
            Change(change.start - start, change.end - start, change.text)
            for change in _inside(changes, start, start + len(piece.raw))
        ]
        pieces.append(piece._replace(raw=spliced(piece.raw, own)))
    return replace(translation, pieces=tuple(pieces))


class LineNumbers:
    """Tells the line of a place in a text, counted from 1; the places are best asked for in their order."""

    def __init__(self, text: str) -> None:
        self._text = text
        # The last place, and the number of line ends before it. A list of all line ends would take more memory than
        # the text.
        self._place = self._num_ends = 0

    def number_at(self, place: int) -> int:
        """The line in which text[place] stands."""
        first, last = sorted((self._place, place))
        between = self._num_ends_between(first, last)
        self._num_ends += between if place >= self._place else -between
        self._place = place
        is_inside_end = self._text[max(0, place - 1) : place + 1] == "\r\n"
        return self._num_ends - is_inside_end + 1

    def _num_ends_between(self, first: int, last: int) -> int:
        """How many line ends begin before `last`, and end behind `first`: "\\r\\n" is one."""
        count = self._text.count
        in_two = count("\r\n", max(0, first - 1), last)
        return count("\n", first, last) + count("\r", first, last) - in_two


# Word and LibreOffice check no spelling there.
_NO_LANGUAGE = frozenset(["x", "zxx", "none", ""])


def language_after(given: str, languages: Direction, *, is_usual: bool = False) -> str:
    """The code of a language in a translated file: the target language in place of the source language.

    Args:
        is_usual: whether it is that of all text which names no other one, and changes whatever it was.
    """
    return languages.target if becomes_target_language(given, languages, is_usual=is_usual) else given


def becomes_target_language(given: str, languages: Direction, *, is_usual: bool) -> bool:
    """Whether the target language takes the place of a language that a file names; arguments as of `language_after`."""
    source, target = map(primary_language, languages)
    named = primary_language(given.strip())
    if source == target or named == target or named in _NO_LANGUAGE:
        return False
    return is_usual or named == source
