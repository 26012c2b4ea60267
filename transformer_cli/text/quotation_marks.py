"""Quotation marks: those of a translation that have no partner, and how programs and web pages write them."""

import re
from collections.abc import Mapping

from transformer_cli.text.spans import find_spans, masked

# Quotation marks. Each of a row may open or close: in several languages the same sign does both, and a translation may have others.
_QUOTES_OF_KIND = (
    '"\u201c\u201d\u201e\u201f\u00ab\u00bb',
    "\u2039\u203a",
    "\u300c\u300d",
    "\u300e\u300f",
)
_SINGLE_QUOTE = re.compile(r"(?<!\w)['\u2018](?=\w)|(?<=[\w.,;:!?\u2026%)\]])['\u2019](?!\w)")
QUOTE = re.compile(rf"[{''.join(_QUOTES_OF_KIND)}]|{_SINGLE_QUOTE.pattern}")
"""A quotation mark, or an apostrophe at an end of a word."""
# The word beside half a pair of single quotes. Apostrophes stand for letters in short words (po', be', 'em) and behind consonants
# (dogs', nell').
_LONG_WORD = re.compile(r"[^\W\d_]{4}")
_LONG_WORD_WITH_VOWEL = re.compile(r"[^\W\d_]{3}[aeiou\u00e0\u00e8\u00e9\u00ec\u00f2\u00f9]\Z", re.IGNORECASE)


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
_ANY_WRITTEN_FORM = re.compile(r"""\\["'u]|&[#a-z]""")


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
