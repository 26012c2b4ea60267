"""The signs of a line, such as brackets, stars and dashes: the text without them, and their places in its translation."""

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from transformer_cli.text.normalization import has_word, word_spans
from transformer_cli.text.sentences import end_of_marks
from transformer_cli.text.spans import SpanKind, find_spans

# The end of a link of Markdown; emoticons; signs between white space; signs at a word, each by itself, but the marks of sentences.
_SIGNS = re.compile(
    r"(?<=\S)\](?:\([^()\s]{1,200}\)|\[[^\[\]\n]{0,99}\])"
    r"|(?<!\S)[:;=8]['\u2019]?-?[()DPpOo/|\\*3](?!\S)"
    r"|(?<!\S)[^\w\s]+(?!\S)"
    r"|\*{1,3}|~~|!\[|_{1,2}(?=[^\W_])(?<![^\W_]_)(?<![^\W_]__)|(?<=[^\W_])_{1,2}(?![^\W_])"
    r"|\.{3,}(?=\s)|(?<!-)--(?!-)|[-=]>|<-|(?<![\w'\u2018\u2019])['\u2018](?=\S)|(?<=\S)['\u2019](?![\w'\u2019])"
    r"|[^\w\s.,!?'\u2019\u2018-]|(?<![^\W\d_])[\u00b9\u00b2\u00b3\u2070-\u2079]"
)
_PARTNERS = {
    "(": ")",
    "[": "]",
    "![": "]",
    "{": "}",
    "<": ">",
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u00ab": "\u00bb",
    "\u2039": "\u203a",
    "\u2018": "\u2019",
    '"': '"',
    "'": "'",
    "*": "*",
    "**": "**",
    "***": "***",
    "~~": "~~",
    "_": "_",
    "__": "__",
}
END_MARKS = ".,;:!?\u2026"
# Words inside of a pair, as a share of those that its share of the source lets expect.
_FEW_WORDS, _MANY_WORDS = 0.6, 1.6
_TAG = re.compile(r"</?([\w:.-]+)[^<>]*>")


class SignOfLine(NamedTuple):
    """A sign of a line, and its place in the line without signs."""

    text: str
    place: int
    """In the line without signs."""
    is_left: bool
    """Whether it touches the word before it."""
    is_right: bool
    """Whether it touches the word behind it."""
    gap: str = ""
    """Of one that touches none: the white space on one of its sides, which is left out with it."""


class BareText(NamedTuple):
    """A line without its signs."""

    text: str
    signs: tuple[SignOfLine, ...]


def places_of_signs(text: str) -> list[tuple[int, int]]:
    """Where signs stand that a translation can get back; none inside of what is protected as a word or a number.

    The mark of a list with a letter or a number, such as [x] and (2), stays as it is.
    """
    spans = find_spans(text)
    beginning = end_of_marks(text)
    beginning = beginning if has_word(text[:beginning]) else 0
    whole = [(each.start, each.end) for each in spans if each.kind in (SpanKind.WORD, SpanKind.NUMBER)]
    marks = [(each.start, each.end) for each in spans if each.kind in (SpanKind.TAG, SpanKind.MARK)]
    found = list(marks)
    for match in _SIGNS.finditer(text, beginning):
        place = match.span()
        is_link = match[0].startswith("](")
        if _touches(marks, place):
            continue
        if is_link or not _touches(whole, place):
            if match[0] in ".?!" and text[: place[0]].strip():
                continue  # the end of a sentence behind white space
            found.append(place)
    links = [place for place in found if text.startswith("](", place[0])]
    return sorted(place for place in found if not _is_inside(links, place))


def _touches(places: Sequence[tuple[int, int]], place: tuple[int, int]) -> bool:
    """Whether a place has characters of one of several places, which are in order."""
    following = bisect_right(places, place[0], key=itemgetter(1))
    return following < len(places) and places[following][0] < place[1]


def _is_inside(places: Sequence[tuple[int, int]], place: tuple[int, int]) -> bool:
    """Whether a place lies in another one of several places, which are in order."""
    before = bisect_right(places, place[0], key=itemgetter(0)) - 1
    return before >= 0 and place[1] <= places[before][1] and place != places[before]


def without_signs(text: str) -> BareText:
    """A line without its signs, and their places in it."""
    places = places_of_signs(text)
    bare, signs, end = "", list[SignOfLine](), 0
    for number, (start, stop) in enumerate(places):
        bare += text[end:start]
        before = text[start - 1 : start]
        behind = text[stop : stop + 1]
        is_first = not bare.strip()
        # Other signs between it and the next word do not divide them.
        follows = number + 1 < len(places) and places[number + 1][0] == stop
        is_left = bool(before) and not before.isspace() and not is_first
        is_right = bool(behind) and not behind.isspace()
        if follows:
            last = number + 1
            while last + 1 < len(places) and places[last + 1][0] == places[last][1]:
                last += 1
            after = text[places[last][1] : places[last][1] + 1]
            is_right = bool(after) and not after.isspace()
        if is_left and not bare[-1:].strip():
            is_left = bool(signs) and signs[-1].is_left and signs[-1].place == len(bare)
        gap = ""
        end = stop
        if not is_left and not is_right and not follows:
            end += len(text[stop:]) - len(text[stop:].lstrip())
            gap = text[stop:end]
            if not gap:  # at the end
                gap = bare[len(bare.rstrip()) :]
                bare = bare.rstrip()
        elif is_left and is_right and not follows and behind.isalnum() and bare[-1:].isalnum():
            signs.append(SignOfLine(text[start:stop], len(bare), is_left, is_right))
            bare += " "
            continue
        signs.append(SignOfLine(text[start:stop], len(bare), is_left, is_right, gap))
    return BareText(bare + text[end:], tuple(signs))


def partners_of_signs(signs: Sequence[SignOfLine]) -> dict[int, int]:
    """The number of the sign that closes what another opens."""
    opened: list[int] = []
    found: dict[int, int] = {}
    for number, sign in enumerate(signs):
        for at in reversed(range(len(opened))):
            if _closes(signs[opened[at]].text, sign.text) and signs[opened[at]].place < sign.place:
                found[opened[at]] = number
                del opened[at:]
                break
        else:
            opened.append(number)
    return found


def _closes(opening: str, closing: str) -> bool:
    if closing.startswith("]"):
        return opening in ("[", "![")
    tags = _TAG.fullmatch(opening), _TAG.fullmatch(closing)
    if tags[0] and tags[1]:
        return closing.startswith("</") and not opening.startswith("</") and tags[0][1] == tags[1][1]
    return _PARTNERS.get(opening) == closing or (opening == "\u201e" and closing in "\u201c\u201d")


Link = tuple[int, int]
"""The numbers of a word of a line without signs and of a word of its translation."""
Range = tuple[int, int]
"""Of the numbers of words, the last one left out."""


def with_signs(
    bare: BareText,
    translation: str,
    links: Collection[Link],
    alone: Mapping[Range, str] = MappingProxyType({}),
) -> str | None:
    """The translation of a line without signs, with the signs; None if the place of one is not sure.

    A pair stands around the words that are linked to those inside it in the line; any other sign stands where no link reaches from
    words before it to words behind it.

    Args:
        links: between the words of the line without signs and those of the translation.
        alone: translations of the words inside of pairs by themselves, which may be found in the translation.
    """
    places = _places_in(bare, translation, links, alone)
    if places is None:
        return None
    targets = word_spans(translation)
    inserted: list[tuple[int, int, str, int]] = []
    for number, sign in enumerate(bare.signs):
        place, length, text = _inserted(sign, places[number], bare.text, translation, targets)
        inserted.append((place, number, text, length))
    result, end = "", 0
    for place, _, text, length in sorted(inserted):
        if place < end:
            result, length = result + text, 0
            continue
        result += translation[end:place] + text
        end = place + length
    return result + translation[end:]


def _places_in(
    bare: BareText, translation: str, links: Collection[Link], alone: Mapping[Range, str]
) -> dict[int, int] | None:
    """Before which word of the translation each sign stands; None if the place of one is not sure."""
    words, targets = word_spans(bare.text), word_spans(translation)
    if not words or not targets:
        return None
    bounds = _bounds(bare)
    found: dict[Range, Range] = {}
    places: dict[int, int] = {}
    for inner, (opening, closing) in pairs_around_words(bare).items():
        around = _range_found(alone.get(inner, ""), translation, inner, links)
        around = around or _range_linked(inner, len(words), len(targets), links)
        if around is None:
            return None
        found[inner] = around
        places |= {opening: around[0], closing: around[1]}
    if not all(_is_same_order(one, other, found) for one, other in combinations(found, 2)):
        return None
    for number, bound in enumerate(bounds):
        if number in places:
            continue
        is_beside = number and bare.signs[number - 1].place == bare.signs[number].place
        if is_beside and number - 1 in places:
            places[number] = places[number - 1]
            continue
        place = _bound_of(bound, len(words), len(targets), links)
        if place is None:
            return None
        places[number] = place
    return places


def _bounds(bare: BareText) -> list[int]:
    """How many words stand before each sign."""
    words = word_spans(bare.text)
    return [sum(start < sign.place for start, _ in words) for sign in bare.signs]


def pairs_around_words(bare: BareText) -> dict[Range, tuple[int, int]]:
    """The words inside of each pair of signs, and the numbers of the two; of pairs around the same words only one."""
    bounds = _bounds(bare)
    return {
        (bounds[opening], bounds[closing]): (opening, closing)
        for opening, closing in partners_of_signs(bare.signs).items()
        if bounds[opening] < bounds[closing]
    }


def _is_same_order(one: Range, other: Range, found: Mapping[Range, Range]) -> bool:
    """Whether two pairs stand beside or inside each other in the translation as in the line."""

    def relations(first: Range, second: Range) -> tuple[bool, bool, bool]:
        return (
            first[1] <= second[0] or second[1] <= first[0],
            first[0] <= second[0] and second[1] <= first[1],
            second[0] <= first[0] and first[1] <= second[1],
        )

    here, there = relations(one, other), relations(found[one], found[other])
    return all(not is_here or is_there for is_here, is_there in zip(here, there, strict=True))


def _range_linked(inner: Range, num_words: int, num_targets: int, links: Collection[Link]) -> Range | None:
    """The target words that translate a range of source words; None unless the links all say so, and of words at the border, too."""
    first, last = inner
    if inner == (0, num_words):
        return 0, num_targets
    inside = {target for source, target in links if first <= source < last}
    outside = {target for source, target in links if not first <= source < last}
    if not inside:
        return None
    start, end = min(inside), max(inside) + 1
    if any(start <= target < end for target in outside):
        return None
    if any(0 <= border < num_targets and border not in outside for border in (start - 1, end)):
        return None
    expected = (last - first) * num_targets / num_words
    is_fair = _FEW_WORDS * expected <= end - start <= _MANY_WORDS * expected + 1
    return (start, end) if is_fair else None


def _range_found(alone: str, translation: str, inner: Range, links: Collection[Link]) -> Range | None:
    """Where the translation of the words inside of a pair stands in the whole translation, if it stands there once and no link to a single word tells another place."""
    sought, known = ([_core(word) for word in text.split()] for text in (alone, translation))
    size = len(sought)
    starts = [start for start in range(len(known) - size + 1) if known[start : start + size] == sought]
    if len(starts) != 1 or not any(sought):
        return None
    start, end = starts[0], starts[0] + size
    agrees = [inner[0] <= source < inner[1] for source, target in links if start <= target < end]
    return (start, end) if 2 * sum(agrees) >= len(agrees) + (size == 1) else None


def _core(word: str) -> str:
    return word.strip(END_MARKS).casefold()


def _bound_of(bound: int, num_words: int, num_targets: int, links: Collection[Link]) -> int | None:
    """Before which target word a sign stands that stands before a source word; None if links do not tell."""
    if bound in (0, num_words):
        return 0 if bound == 0 else num_targets
    before = max((target for source, target in links if source < bound), default=num_targets)
    behind = min((target for source, target in links if source >= bound), default=0)
    return behind if before + 1 == behind else None


def _inserted(
    sign: SignOfLine, bound: int, source: str, translation: str, targets: Sequence[tuple[int, int]]
) -> tuple[int, int, str]:
    """Where a sign is put into a translation, how many characters of white space or a comma it takes the place of, and the text."""
    num_targets = len(targets)
    if sign.is_right and not sign.is_left:
        place = targets[bound][0] if bound < num_targets else len(translation)
        return place, 0, sign.text
    if sign.is_left and sign.is_right and 0 < bound < num_targets and source[sign.place : sign.place + 1] == " ":
        end = targets[bound - 1][1]
        return end, targets[bound][0] - end, sign.text
    if bound == 0:
        return 0, 0, sign.text + ("" if sign.is_right else sign.gap)
    start, end = targets[bound - 1]
    is_behind_mark = source[sign.place - 1 : sign.place] in tuple(END_MARKS) and sign.place > 0
    inner = start + len(translation[start:end].rstrip(END_MARKS))
    if not is_behind_mark and inner > start:
        is_last = bound == num_targets and not source[sign.place :].strip()
        if sign.text in (";", ":") and translation[inner:end] == ",":
            return inner, 1, sign.text
        end = end if is_last and not sign.is_left and not sign.is_right else inner
    gap = "" if sign.is_left or sign.is_right else sign.gap or " "
    return end, 0, gap + sign.text
