"""Quotation marks: which of them open or close, those without a partner, and how programs and web pages write them."""

import re
from collections.abc import Container, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.spans import find_spans, masked

# Quotation marks. Each of a row may open or close: in several languages the same sign does both, and a translation may have others.
_QUOTES_OF_KIND = (
    '"\u201c\u201d\u201e\u201f\u00ab\u00bb',
    "\u2039\u203a",
    "\u300c\u300d",
    "\u300e\u300f",
)
_SINGLE_QUOTE = re.compile(r"(?<!\w)['\u2018](?=\w)|(?<=[\w.,;:!?\u2026%)\]])['\u2019](?!\w)")
QUOTE = lazy_pattern(rf"[{''.join(_QUOTES_OF_KIND)}]|{_SINGLE_QUOTE.pattern}")
"""A quotation mark, or an apostrophe at an end of a word."""
# The word beside half a pair of single quotes. Apostrophes stand for letters in short words (po', be', 'em) and behind consonants
# (dogs', nell').
_LONG_WORD = lazy_pattern(r"[^\W\d_]{4}")
_LONG_WORD_WITH_VOWEL = lazy_pattern(r"[^\W\d_]{3}[aeiou\u00e0\u00e8\u00e9\u00ec\u00f2\u00f9]\Z", re.IGNORECASE)


def quotes_without_partner(source: str, translation: str) -> list[int]:
    """The places of the quotation marks of a translation that have no partner, though each of its source has one.

    Of single quotes only if the source has a pair of them; those that may be apostrophes do not count, nor does the sign for inches.
    """
    if QUOTE.search(translation) is None:
        return []
    here, there = (masked(text, find_spans(text), "a") for text in (source, translation))
    if _double_halves(here) or (singles := _single_halves(here))[0]:
        return []
    halves = _double_halves(there)
    return sorted([*halves, *_single_halves(there)[0]] if singles[1] else halves)


_PAIRS = ('""', "\u201c\u201d", "\u201e\u201c", "\u201e\u201d", "\u201d\u201d", "\u00ab\u00bb", "\u00bb\u00ab")


def with_pairs_of_quotes(source: str, translation: str) -> str | None:
    """The translation in which no pair has two marks of different kinds, as in "the dogs\u201d: it gets those of its source.

    One of them comes from the source then, and the other one from the model. Both texts have as many pairs, none inside another.
    None if such a pair is around nothing: its words stand elsewhere.
    """
    read, written = ([*re.finditer(f"[{_QUOTES_OF_KIND[0]}]", text)] for text in (source, translation))
    if len(read) != len(written) or len(read) % 2:
        return translation
    source_pairs, found = (list(zip(each[::2], each[1::2], strict=True)) for each in (read, written))
    if any(one[0] + other[0] not in _PAIRS for one, other in source_pairs):
        return translation
    for (opening, closing), (one, other) in reversed([*zip(source_pairs, found, strict=True)]):
        inner = translation[one.end() : other.start()].strip()  # beside \u00ab and \u00bb stand spaces
        if one[0] + other[0] not in _PAIRS:
            if not inner:
                return None
            translation = f"{translation[: one.start()]}{opening[0]}{inner}{closing[0]}{translation[other.end() :]}"
    return translation


class QuotationMark(NamedTuple):
    """A quotation mark of a text."""

    place: int
    opens: bool
    has_partner: bool
    """Whether the text has the other mark of its pair, and both are a usual pair."""


_SINGLE = "'\u2018\u2019\u201a\u201b`"
# The signs of a row stand for one another, because people mix them.
_MARKS_OF_KIND = (*_QUOTES_OF_KIND, _SINGLE)
_ANY_MARK = lazy_pattern(f"[{''.join(_MARKS_OF_KIND)}]")
_OTHER_PAIRS = ("''", "\u2018\u2019", "\u2019\u2019", "\u201a\u2018", "\u201a\u2019", "`'", "``")
_USUAL_PAIRS = frozenset((*_PAIRS, *_OTHER_PAIRS, "\u2039\u203a", "\u203a\u2039", "\u300c\u300d", "\u300e\u300f"))
_SHAPES_THAT_OPEN = frozenset("\u201c\u201e\u201f\u00ab\u2018\u201a\u201b\u2039\u300c\u300e")
_SHAPES_THAT_CLOSE = frozenset("\u201d\u00bb\u203a\u300d\u300f")
_BEFORE_OPENING = frozenset("([{<\u00bf\u00a1-\u2013\u2014/")
_BEHIND_CLOSING = frozenset(".,;:!?\u2026)]}>-\u2013\u2014/")


def quotation_marks(text: str) -> Iterator[QuotationMark]:
    """The quotation marks of a text, without apostrophes: first those that close one and their partners, then the others that open."""
    waiting: dict[str, list[int]] = {kind: [] for kind in _MARKS_OF_KIND}
    last = -1
    for match in _ANY_MARK.finditer(text):
        place, sign = match.start(), match[0]
        kind = next(each for each in _MARKS_OF_KIND if sign in each)
        opened = waiting[kind]
        opens = _opens(text, place, text[opened[-1]] if opened else "", is_behind_opening=last == place - 1)
        if opens:
            opened.append(place)
            last = place
        elif opens is False and opened:
            is_usual = text[opened[-1]] + sign in _USUAL_PAIRS
            yield QuotationMark(opened.pop(), opens=True, has_partner=is_usual)
            yield QuotationMark(place, opens=False, has_partner=is_usual)
        elif opens is False and kind != _SINGLE:  # one of these is an apostrophe: the dogs' house
            yield QuotationMark(place, opens=False, has_partner=False)
    for place in chain.from_iterable(waiting.values()):
        yield QuotationMark(place, opens=True, has_partner=False)


def _opens(text: str, place: int, opened: str, *, is_behind_opening: bool) -> bool | None:
    """Whether a quotation mark opens or closes one, by what stands beside it, else by its shape; None: nobody can tell.

    Args:
        text: with the mark.
        place: of the mark.
        opened: the last mark of its kind that was opened; empty if there is none.
        is_behind_opening: whether a mark that opens stands directly before it.
    """
    sign, before, behind = text[place], text[max(0, place - 1) : place], text[place + 1 : place + 2]
    has_space_before, has_space_behind = not before.strip(), not behind.strip()
    may_open = has_space_before or before in _BEFORE_OPENING or is_behind_opening
    may_close = has_space_behind or behind in _BEHIND_CLOSING or _ANY_MARK.match(behind) is not None
    if may_open != may_close:
        return may_open
    if sign in _SINGLE and not (has_space_before or has_space_behind):
        return None  # an apostrophe
    if opened + sign in _USUAL_PAIRS:
        return False
    if sign in _SHAPES_THAT_OPEN or sign in _SHAPES_THAT_CLOSE:
        return sign in _SHAPES_THAT_OPEN
    return None if has_space_before == has_space_behind else has_space_before


def mark_without_partner(text: str) -> int | None:
    """The place of the only double quotation mark of a text without a partner, which touches a word on one side, as in 'The "dog' and '5" long'."""
    if not any(map(text.__contains__, _QUOTES_OF_KIND[0])):
        return None
    alone = [mark.place for mark in quotation_marks(text) if not mark.has_partner and text[mark.place] not in _SINGLE]
    if len(alone) != 1:
        return None
    place = alone[0]
    before, behind = text[max(0, place - 1) : place], text[place + 1 : place + 2]
    return place if bool(before.strip()) != bool(behind.strip()) else None


_NAME = r"[^\W\d_]{2,40}(?:-[^\W\d_]{1,40}){0,3}"
# A single word in quotation marks, or up to three.
_NAME_IN_QUOTES = lazy_pattern(
    rf"(?:(?<!\w)[\"'\u2018]|[\u201c\u201e\u00ab][ \u00a0\u202f]?)({_NAME}(?: {_NAME}){{0,2}})(?:[\"'\u2019](?!\w)|[ \u00a0\u202f]?[\u201c\u201d\u00bb])"
)


def unseen_names_in_quotes(text: str, seen: Container[str]) -> list[tuple[int, int]]:
    """Where one to three words alone stand in quotation marks, of which training has seen none: the name of a button or the like.

    Args:
        seen: the words that training has seen.
    """
    return [
        match.span(1)
        for match in _NAME_IN_QUOTES.finditer(text)
        if not any(word in seen for word in re.split("[ -]", match[1]))
    ]


_ELISION = lazy_pattern(
    r"(?:t(?:is|was|were|will|would)|em|til|cause|cos|bout|neath|ndrangheta|st[aeio])(?![^\W_])", re.IGNORECASE
)


def starts_with_lone_quote(text: str) -> bool:
    """Whether a text begins with a single quotation mark, and a capital letter behind it, and does not close it; as "'Tis good" does not.

    Many models know single quotes as apostrophes only.
    """
    if text[:1] not in _SINGLE or not text[1:2].isupper() or _ELISION.match(text, 1):
        return False
    return any(mark.place == 0 and not mark.has_partner for mark in quotation_marks(text))


def _double_halves(text: str) -> list[int]:
    """The place of one quotation mark of each kind of which a text has an odd number: the one that the words beside it leave alone."""
    halves = []
    for kind in _QUOTES_OF_KIND:
        found = [
            place
            for place, sign in enumerate(text)
            if sign in kind and not (sign == '"' and text[max(0, place - 1) : place].isdigit())
        ]
        if len(found) % 2 == 0:
            continue
        opened: list[int] = []
        closed: list[int] = []
        for place in found:
            is_opening = text[place + 1 : place + 2].isalnum() and not text[max(0, place - 1) : place].isalnum()
            if is_opening:
                opened.append(place)
            elif opened:
                opened.pop()
            else:
                closed.append(place)
        halves += [*closed, *opened][:1]
    return halves


def _single_halves(text: str) -> tuple[list[int], bool]:
    """The places of single quotes without a partner that are surely no apostrophes, and whether a text has a pair of single quotes."""
    opened: list[int] = []
    halves, has_pair = [], False
    for match in _SINGLE_QUOTE.finditer(text):
        place = match.start()
        if not text[max(0, place - 1) : place].strip(" ([") and text[place + 1 : place + 2].strip():
            opened.append(place)
        elif opened:
            has_pair = True
            opened.pop()
        elif _LONG_WORD_WITH_VOWEL.search(text, max(0, place - 40), place):
            halves.append(place)
    return [*halves, *(each for each in opened if _LONG_WORD.match(text, each + 1))], has_pair


# Quotes and apostrophes as programs and web pages write them.


_WRITTEN_FORMS = {
    '"': (r'(?<!\\)\\"', "&quot;", "&#0?34;", "&#x22;", r"\\u0022"),
    "'": (r"(?<!\\)\\'", "&apos;", "&#0?39;", "&#x27;", r"\\u0027"),
    "\u2019": ("&rsquo;", "&#8217;", "&#x2019;", r"\\u2019"),
}
_ANY_WRITTEN_FORM = lazy_pattern(r"""\\["'u]|&[#a-z]""")


def plain_quotes(text: str) -> tuple[str, dict[str, str]]:
    """The text with its quotes and apostrophes as signs, as a model knows them, and how it writes each: ' -> &#39;

    A sign that the text writes in two ways stays as it is.
    """
    written: dict[str, str] = {}
    if _ANY_WRITTEN_FORM.search(text) is None:
        return text, written
    plain = text
    for sign, patterns in _WRITTEN_FORMS.items():
        found = {form for pattern in patterns for form in re.findall(pattern, text, re.IGNORECASE)}
        if len(found) == 1:
            [form] = found
            if sign not in text.replace(form, ""):
                plain, written[sign] = plain.replace(form, sign), form
    return plain, written


def with_written_quotes(text: str, written: Mapping[str, str]) -> str:
    """A text with quotes and apostrophes as `plain_quotes` has found them."""
    for sign, form in written.items():
        text = text.replace(sign, form)
    return text
