"""Sentences of a text: where they end, how a long one is divided, and the form that makes a sentence of its words; lengths of texts that a model has seen."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from sentencex import get_sentence_boundaries

from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.layout import Span, masked

_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_NUMBER = re.compile(r"\s*\(?\d+[.)]*")
# " ' and the closing quotes of English, French and Japanese.
_CLOSING_QUOTES = frozenset("\"'\u201d\u2019\u00bb\u300d\u300f")
# `sentencex` panics at white space of several bytes, and refuses lone surrogates. Both become one character.
_UNREADABLE = re.compile(r"[^\S\n ]|[\ud800-\udfff]")
# `sentencex` takes a time that grows with the square of a text without white space.
MAX_CHARACTERS_AT_ONCE = 5000


class Sentence(NamedTuple):
    """One sentence of a line."""

    text: str
    gap: str
    """The white space before the sentence; empty for the first one, whose text keeps it."""


def split_sentences(text: str, language: str) -> list[Sentence]:
    """The sentences of a line, in order; their gaps and texts joined are the line.

    A part without a letter or digit is no sentence of its own: it stays with the sentence before it, or with the
    first. The number of a list (`1.`) ends no sentence, and neither does a closing quote without white space after
    it: 「行こう」と言った.

    Args:
        text: a line.
        language: of the text, such as en or zh-CN. The library `sentencex` has rules for about 300 languages; for
            others it uses those of English.
    """
    sentences: list[Sentence] = []
    start, gap = 0, ""
    has_words = False  # whether the sentence that begins at `start` has a letter or digit
    places = [0, *_sentence_ends(text, primary_language(language)), len(text)]
    for first, place, following in zip(places, places[1:], places[2:], strict=False):
        part = text[first:place].rstrip()
        has_words = has_words or bool(_LETTER_OR_DIGIT.search(part))
        next_gap = text[first + len(part) : place]
        is_open = (first == start and _NUMBER.fullmatch(part)) or (
            not next_gap and part[-1:] in _CLOSING_QUOTES
        )
        if has_words and not is_open and _LETTER_OR_DIGIT.search(text, place, following):
            sentences.append(Sentence(text[start : first + len(part)], gap))
            start, gap, has_words = place, next_gap, False
    return [*sentences, Sentence(text[start:], gap)]


def split_sentences_around(spans: Sequence[Span], text: str, language: str) -> list[Sentence]:
    """The sentences of a text, none of which ends inside one of its protected spans."""
    sentences, place = [], 0
    # Letters in place of the spans.
    for sentence in split_sentences(masked(text, spans, "x"), language):
        start = place + len(sentence.gap)
        place = start + len(sentence.text)
        sentences.append(Sentence(text[start:place], sentence.gap))
    return sentences


def gap_between(source_gap: str, source_language: str, target_language: str) -> str:
    """The white space between two translations; `source_gap` is the one between their source sentences."""
    if has_spaces(target_language):
        return source_gap or " "
    return "" if has_spaces(source_language) else source_gap


def _sentence_ends(text: str, language: str) -> list[int]:
    """Where the second sentence and all later ones begin."""
    readable = _UNREADABLE.sub(" ", text)
    places: list[int] = []
    start = 0
    while len(readable) - start > MAX_CHARACTERS_AT_ONCE:
        window = _sentence_ends_of_window(
            readable[start : start + MAX_CHARACTERS_AT_ONCE], language
        )
        # The text after a place decides whether a sentence ends there. So the next window starts one sentence earlier,
        # and finds the last place again.
        start_of_next = window[-2] if len(window) > 2 else MAX_CHARACTERS_AT_ONCE
        places += [start + place for place in window if place <= start_of_next]
        start += start_of_next
    return places + [
        start + place for place in _sentence_ends_of_window(readable[start:], language)
    ]


def _sentence_ends_of_window(text: str, language: str) -> list[int]:
    try:
        boundaries = get_sentence_boundaries(language, text)
    except BaseException as error:
        # A Rust panic is no `Exception`. Without boundaries the text is translated as one sentence.
        if type(error).__name__ != "PanicException":
            raise
        return []
    return [boundary["start_index"] for boundary in boundaries if boundary["start_index"] > 0]


# Cuts inside a sentence that is long.


# Places for a cut, best first; the group holds the marks and the white space that stand between the two parts.
_CLAUSE_MARKS = tuple(
    re.compile(pattern)
    for pattern in (
        # The end of a sentence inside brackets, or one that the division into sentences did not take for an end.
        r"(?:[!?\u2026]|\.\.|\w{4}\.|\.[)\]\u201d\u00bb])[)\]\"'\u201d\u00bb]*(\s+)|[\u3002\uff01\uff1f]()",
        r"(\s*;\s+|:\s+|\s+[-\u2013\u2014/|]\s+|\s*\u2014\s*|[\uff1b\uff1a])",
        r"(,\s+|[\uff0c\u3001])",
    )
)
_INNER_END = re.compile(r"(?:[.!?][)\]]|\u2026|\.\.\.)(\s+)(?=\w)")
_BETWEEN_WORDS = re.compile(r"(\s+)")
_CONJUNCTIONS = {
    "de": "und aber oder weil denn dass wenn während",
    "en": "and but or because while although so that which",
    "es": "y e pero o porque cuando aunque que",
    "fr": "et mais ou car parce quand pendant qui que",
    "it": "e ed ma o perché quando mentre che",
    "nl": "en maar of omdat want terwijl die",
    "pt": "e mas ou porque quando enquanto que",
}
# The share of a text that each of its parts has at least.
_SMALLEST_SHARE = {"marks": 0.1, "words": 0.25}
# Between two words without a mark, only a text of so many words is divided.
_FEWEST_WORDS = 6


class Cut(NamedTuple):
    """A text in two parts; together with the marks between them, they are the text."""

    left: str
    marks: str
    """Marks and white space between the two; the marks that end a sentence stay with the left part."""
    right: str


def cut_after_sentence(text: str) -> Cut | None:
    """The text after its first inner sentence, which a bracket or an ellipsis ends and a capital letter follows; else None.

    The division into sentences does not end a sentence there: "(It is late.) We go." A single word before the cut, as in
    "Well... We go.", is no sentence.
    """
    for match in _INNER_END.finditer(text):
        start, end = match.span(1)
        cut = Cut(text[:start], text[start:end], text[end:])
        if cut.right[:1].isupper() and len(cut.left.split()) > 1 and _has_word(cut.left):
            return cut
    return None


def cut_in_two(text: str, share: float, language: str, *, anywhere: bool = False) -> Cut | None:
    """The text in two parts, at the best place; None if there is none.

    The best place is at a mark that ends a sentence, else at a semicolon, a colon or a dash, else at a comma, else before
    a conjunction of the language. Of several, the one nearest to `share` counts. Both parts have a letter or digit.

    Args:
        text: a sentence or a clause.
        share: how much of the text the left part shall hold, 0 to 1.
        language: of the text.
        anywhere: whether a text without such a place may be divided between any two words.
    """
    levels = [(mark, "marks") for mark in _CLAUSE_MARKS]
    if conjunctions := _CONJUNCTIONS.get(primary_language(language)):
        joined = "|".join(conjunctions.split())
        levels.append((re.compile(rf"(\s+)(?=(?:{joined})\s)", re.IGNORECASE), "words"))
    if anywhere and len(text.split()) >= _FEWEST_WORDS:
        levels.append((_BETWEEN_WORDS, "words"))
    for boundary, kind in levels:
        least = len(text) * min(_SMALLEST_SHARE[kind], share / 2)
        cuts = [
            cut
            for cut in _cuts(text, boundary)
            if least <= len(cut.left) <= len(text) - least
            and _has_word(cut.left)
            and _has_word(cut.right)
        ]
        if cuts:
            return min(cuts, key=lambda cut: abs(len(cut.left) - share * len(text)))
    return None


def _cuts(text: str, boundary: re.Pattern[str]) -> Iterator[Cut]:
    for match in boundary.finditer(text):
        start, end = match.span(match.lastindex or 0)
        yield Cut(text[:start], text[start:end], text[end:])


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


# Parts of a line that is too long for the model.


# Full-width punctuation of Chinese and Japanese; no white space follows it.
_WIDE_STOPS = "\u3002\uff01\uff1f"
_WIDE_PAUSES = "\u3001\uff0c\uff1a\uff1b"
# Places for a cut, best first: after a sentence, after a comma or colon, between words. The white
# space in the group is removed.
_BOUNDARIES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"[.!?…][\"'»”)\]]*(\s+)|[{_WIDE_STOPS}](\s*)",
        rf"[,;:](\s+)|[{_WIDE_PAUSES}](\s*)",
        r"(\s+)",
    )
)


def split_line(text: str, is_short: Callable[[str], bool]) -> Iterator[str]:
    """Yield short parts of a text in order; each part that is too long is cut in two, repeatedly.

    A cut lies in the middle half of a part: after a sentence if possible, else after a comma,
    colon or semicolon, else at white space, else exactly in the middle. White space at a cut is
    removed.

    Args:
        text: a line.
        is_short: says whether a part is short enough; a single character always is.
    """
    waiting = [text]
    while waiting:
        part = waiting.pop()
        if len(part) < 2 or is_short(part):
            yield part
            continue
        left, right = _halves(part)
        waiting += [half for half in (right, left) if half]


def _halves(text: str) -> tuple[str, str]:
    """The two parts of a text of two or more characters; one of them is empty if it was blank."""
    middle = len(text) // 2
    start, end = len(text) // 4, len(text) - len(text) // 4
    for boundary in _BOUNDARIES:
        matches = boundary.finditer(text, start, end)
        cuts = [match.span(match.lastindex or 0) for match in matches]
        cuts = [cut for cut in cuts if 0 < cut[1] < len(text)]
        if cuts:
            cut = min(cuts, key=lambda span: abs(span[1] - middle))
            return text[: cut[0]].rstrip(), text[cut[1] :].lstrip()
    return text[:middle], text[middle:]


# The form of a sentence: its final mark and its capital letters.


# With the full stops, question marks and exclamation marks of Chinese and Japanese.
_SENTENCE_ENDS = tuple(".!?\u2026\u3002\uff01\uff1f")
_FULL_STOPS = tuple(".\u3002")
_CLOSING = "\"')]\u2019\u201d\u00bb"
_PAUSES = frozenset(",;:")
_WIDE_PAUSE_MARKS = frozenset("\u3001\uff0c\uff1a\uff1b")
_FEWEST_CAPITAL_WORDS = 3
_FIRST_WORD = re.compile(r"[^\W\d_]+")
# Capital letters of nouns belong to the spelling of these languages.
_LANGUAGES_WITH_CAPITAL_NOUNS = ("de", "lb")


def ends_sentence(text: str) -> bool:
    """Whether a text ends with a full stop, question mark or exclamation mark; quotes and brackets may follow it."""
    return text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)


def closing_mark(text: str) -> str:
    """The full stop, question mark or exclamation mark that ends a text; a full stop for an ellipsis; else nothing."""
    last = text.rstrip(_CLOSING)[-1:]
    if last == "\u2026":
        return "."
    return last if last in _SENTENCE_ENDS else ""


def without_closing_mark(text: str) -> str:
    """A text without the marks that end a sentence, if other words follow it."""
    return text.rstrip("".join(_SENTENCE_ENDS)).rstrip()


def with_final_mark_of(translation: str, source: str) -> str:
    """The translation with the end of its source, if that ends no sentence.

    A model adds a full stop to a heading or a cell of a table, and loses the comma of "Dear Anna," or the colon of a
    title: the full stop is taken away, and the comma or colon is put back. An ellipsis, of which a model makes a full
    stop, is put back, too.
    """
    is_ellipsis = translation.endswith(("..", "\u2026"))
    ellipsis = next((each for each in ("\u2026", "...") if source.endswith(each)), "")
    if ellipsis and translation.endswith(".") and not is_ellipsis:
        return translation[:-1].rstrip() + ellipsis
    if not translation or not source or ends_sentence(source) or is_ellipsis:
        return translation
    if source[-1] in _PAUSES:
        if translation[-1] in _WIDE_PAUSE_MARKS:
            return translation
        return translation.rstrip("".join({*_PAUSES, *_SENTENCE_ENDS})) + source[-1]
    return translation[:-1].rstrip() if translation.endswith(_FULL_STOPS) else translation


def is_in_capitals(text: str) -> bool:
    """Whether a text of several words has capital letters only; two words may be abbreviations, such as EU GDP."""
    num_words = sum(len(word) > 1 for word in _FIRST_WORD.findall(text))
    return text.isupper() and num_words >= _FEWEST_CAPITAL_WORDS


def in_sentence_case(text: str) -> str:
    """A text in small letters, whose first letter is a capital."""
    small = text.lower()
    first = next((place for place, sign in enumerate(small) if sign.isalpha()), 0)
    return small[:first] + small[first : first + 1].upper() + small[first + 1 :]


def as_inner_part(translation: str, source: str, *, target_language: str) -> str:
    """The translation of words within a sentence, without the capital letter that begins a sentence.

    Args:
        translation: of the words.
        source: the words. If they begin with a capital letter, nothing changes.
        target_language: such as de, whose nouns keep their capital letters.
    """
    first = _FIRST_WORD.match(translation)
    is_capitalised = first is not None and first[0].istitle() and first[0] not in source
    if is_capitalised and source[0].islower() and target_language not in _LANGUAGES_WITH_CAPITAL_NOUNS:  # fmt: skip
        return translation[0].lower() + translation[1:]
    return translation


# The lengths of the texts that a model has seen.


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
