"""Protected spans of a text: URLs, numbers, placeholders and the like."""

import functools
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from transformer_cli.text.languages import (
    frequent_words,
    has_letter_as_name,
    is_plain,
    names_something,
)
from transformer_cli.text.lines_for_programs import part_for_programs
from transformer_cli.text.span_kinds import KINDS, SIGN_OF_CODE, SPAN_SIGN
from transformer_cli.text.span_kinds import SpanKind as SpanKind

_CLOSING_BRACKETS = ".,;:!?'\")]}…*_-"


@functools.cache
def _span_pattern() -> re.Pattern[str]:
    """The patterns of all kinds that every text may have, as one; compiled at its first use, because it takes longer than most imports."""
    return re.compile("|".join(f"(?P<{name}>{kind.pattern})" for name, kind in KINDS.items() if not kind.is_code))


@functools.cache
def _code_pattern(name: str) -> re.Pattern[str]:
    return re.compile(KINDS[name].pattern)


class Span(NamedTuple):
    """A protected part of a text: text[start:end]."""

    start: int
    end: int
    kind: SpanKind


def touches(one: Span, other: Span) -> bool:
    """Whether two spans share a character."""
    return one.start < other.end and other.start < one.end


def has_span_sign(text: str) -> bool:
    """Whether a text has a sign that a protected span may have; most sentences have none."""
    if "-" not in text and is_plain(text):
        return False
    return SPAN_SIGN.search(text) is not None or has_letter_as_name(text) or part_for_programs(text) is not None


def find_spans(text: str) -> list[Span]:
    """The protected spans of a text, in order, without overlaps; no span contains a line break or a control character.

    The full stop, comma or bracket after a URL belongs to the sentence, and not to the span. A line of program code, or of the head of a
    mail, is one span. A text that is a sentence inside
    braces or angle brackets, such as {the dog is big}, has none: that is no placeholder and no tag.
    """
    if not has_span_sign(text) or _is_sentence_in_marks(text):
        return []
    part = part_for_programs(text)
    if part is None:
        return list(_spans(text))
    return [Span(*part, SpanKind.WORD), *_spans(text, part.end)]


_WORD_OF_LETTERS = r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*"
_MORE_WORDS = rf"(?:[,;:]?[ ]{_WORD_OF_LETTERS})"
# Elements of HTML whose attributes can be words alone, as in <input required disabled>.
_BARE_TAG = r"(?:audio|button|dialog|details|fieldset|form|iframe|img|input|ol|optgroup|option|script|select|textarea|track|video)[ ]"
# Of a message of ICU, such as {when, date, short}.
_TYPE_OF_ARGUMENT = "(?:plural|select|selectordinal|choice|number|date|time|list|spellout|ordinal|duration)"
_SENTENCE_IN_MARKS = (
    r"[\s\"'\u00ab\u00bb\u201c-\u201e*>-]*"
    # In double marks, as of a wiki or a template, only what ends as a sentence does is one.
    rf"(?:\{{(?!\w+, ?{_TYPE_OF_ARGUMENT}\b){_WORD_OF_LETTERS}{_MORE_WORDS}{{2,60}}[.!?\u2026]{{0,3}}\}}"
    rf"|<(?!{_BARE_TAG}){_WORD_OF_LETTERS}{_MORE_WORDS}{{2,60}}[.!?\u2026]{{0,3}}>"
    rf"|(?:\[\[|\{{\{{|<<){_WORD_OF_LETTERS}{_MORE_WORDS}{{1,60}}[.!?\u2026]{{1,3}}(?:\]\]|\}}\}}|>>))"
    r"[\s\"'\u00ab\u00bb\u201c-\u201e.!?\u2026:;,-]*"
)
_WORDS_IN_MARKS = (
    rf"\[\[{_WORD_OF_LETTERS}(?:[ ]{_WORD_OF_LETTERS})*\]\]|\{{{{1,2}}{_WORD_OF_LETTERS}(?:[ ]{_WORD_OF_LETTERS})+\}}{{1,2}}"
    rf"|<(?!{_BARE_TAG}){_WORD_OF_LETTERS}(?:[ ]{_WORD_OF_LETTERS})+>"
)


def _is_sentence_in_marks(text: str) -> bool:
    return any(map(text.__contains__, "{<[")) and re.fullmatch(_SENTENCE_IN_MARKS, text) is not None


def is_enclosed(text: str) -> bool:
    """Whether all words of a text stand inside [[ ]], { } or < >, as a link or placeholder, and could be a text for people."""
    if not has_span_sign(text):
        return False
    rest, number = re.subn(_WORDS_IN_MARKS, " ", text)
    return number > 0 and not any(map(str.isalpha, rest))


# Letters of scripts that write no spaces between words, or put particles directly behind any word (Korean), are no word that
# a placeholder touches by mistake.
_LETTER = r"[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
_WORD = rf"{_LETTER}{{3}}"
_PLACEHOLDER_MARKS = ("{", "$", "%", "#{", "[[", "[X", "<%")


# A text without this has no such placeholder; most texts are looked at no further.
_MAY_TOUCH_WORD = rf"%|[}}\]>$]{_WORD}|{_WORD}(?:[{{$]|\#\{{|\[\[|\[X|<%)"


def may_touch_word(text: str) -> bool:
    """Whether a text may have a placeholder that touches a word; see `spans_at_words`."""
    return re.search(_MAY_TOUCH_WORD, text) is not None


def spans_at_words(text: str, spans: Sequence[Span]) -> list[Span]:
    """The placeholders among the spans of a text that touch a word of three letters and more, as in {x}dog; fewer are an ending, as in {n}th.

    A name in the place of such a placeholder would hide its word from the model.
    """
    return [
        span
        for span in spans
        if span.kind is SpanKind.WORD
        and text.startswith(_PLACEHOLDER_MARKS, span.start)
        and any(re.match(_WORD, beside) for beside in (text[span.end :], text[max(0, span.start - 3) : span.start]))
    ]


def span_texts(text: str, spans: Sequence[Span]) -> list[str]:
    """The text of each span."""
    return [text[span.start : span.end] for span in spans]


def placeholders_and_tags(text: str) -> list[str]:
    """Those spans that a program or the structure of a text needs, such as {name}, %d and <b>; not its numbers, addresses and names."""
    matches = (_span_pattern().match(text, span.start) for span in find_spans(text))
    return [match[0] for match in matches if match and match.lastgroup in ("placeholder", "tag")]


_WRITTEN_BREAK = re.compile(r"(?:\\{1,2}[nrt])+|%n")


def written_breaks(text: str, spans: Sequence[Span]) -> list[Span]:
    """Those spans that are line ends or tabs as a program writes them, such as \\n: they end a text."""
    return [
        span for span in spans if span.kind is SpanKind.TAG and _WRITTEN_BREAK.fullmatch(text, span.start, span.end)
    ]


def without_breaks_of(text: str, spans: Collection[str]) -> tuple[str, Counter[str]]:
    """A text with spaces in place of those written line ends that are among some spans, and how often each of them stands there.

    Before the words of another language they look like names, as in chien\\nest. A line end inside another one of the spans stays.
    """
    found: Counter[str] = Counter()

    def without(match: re.Match[str]) -> str:
        if _WRITTEN_BREAK.fullmatch(match[0]) is None:
            return match[0]
        found[match[0]] += 1
        return " " * len(match[0])

    if any(map(_WRITTEN_BREAK.fullmatch, spans)):
        text = re.sub("|".join(map(re.escape, sorted(spans, key=len, reverse=True))), without, text)
    return text, found


def masked(text: str, spans: Sequence[Span], sign: str) -> str:
    """The text with `sign` in place of each character of a span; its length is the same."""
    pieces, place = [], 0
    for span in spans:
        pieces += [text[place : span.start], sign * (span.end - span.start)]
        place = span.end
    return "".join([*pieces, text[place:]])


def _spans(text: str, place: int = 0) -> Iterator[Span]:
    pattern = _span_pattern()
    while match := pattern.search(text, place):
        start, end, kind = match.start(), match.end(), match.lastgroup
        if kind in ("address", "path"):
            end = _without_closing_marks(text, start, end)
        elif kind == "letter" and not names_something(text, start, end):
            place = end
            continue
        elif kind == "name" and text[end - 1] == "*":
            before = match[0].rstrip("*")
            if "*" not in before and _may_close_words(text, start):
                place = start + max(1, len(before))
                continue
        elif kind == "code" and text[end - 1] == "_" and _OPENING_LINE.search(text, max(0, start - 200), start):
            end -= len(match[0]) - len(match[0].rstrip("_"))  # of _see `x`_, words in italics
        elif kind == "escape" and text[end - 1] != "\\":
            # The backslash of %s\%s and {a}\{b}; \{dog\} has words between two escapes.
            behind = pattern.match(text, end - 1)
            if behind and behind.lastgroup == "placeholder" and "\\" not in behind[0]:
                end -= 1
        place = end
        yield Span(start, end, KINDS[kind or ""].kind)


_OPENING_LINE = re.compile(r"(?<![\w`])__?(?=[^\s_]|\Z)")
_OPENING_STAR = re.compile(r"(?<![\w*/.])\*{1,3}(?=\w)")


def _may_close_words(text: str, start: int) -> bool:
    """Whether a star at the end of the name at text[start:] may mark the words before it, as in **a /usr/lib/** and *_big dog_*."""
    return text[start - 1 : start] == "*" or _OPENING_STAR.search(text, max(0, start - 200), start) is not None


def _without_closing_marks(text: str, start: int, end: int) -> int:
    """The end of a URL or path without the punctuation after it; a bracket that it opens stays."""
    num_opened, num_closed = text.count("(", start, end), text.count(")", start, end)
    while end > start + 1:
        # The end of what Markdown strikes out, as in ~~[old](http://a.org)~~.
        if text.endswith("~~", start + 1, end):
            end -= 2
            continue
        if text[end - 1] not in _CLOSING_BRACKETS:
            break
        if text.endswith(("/*", "/**"), start, end) and not _may_close_words(text, start):
            break  # of /usr/lib/*
        if text[end - 1] == ")":
            if num_opened >= num_closed:
                break
            num_closed -= 1
        end -= 1
    return end


_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#\d+|#[xX][0-9A-Fa-f]+);|&(?:amp|copy|lt|gt|nbsp|quot|reg)")
_ARTICLE_OF_LAW = re.compile(r"\u00a7\d[a-z]?(?![^\W_])")
_NEAR = 300  # characters before a smiley, in which the bracket stands that it could close
# The last sign of a code at the beginning that needs no other one: &4The, &aYou, &7>; but &1 Day and &about have the mark of a key.
_ALONE = re.compile(r"\d[^\s.):]|[a-z][A-Z({\[<]")


def has_codes_of_colours(text: str) -> bool:
    """Whether a text has codes such as \u00a7a and &6, so that none of its signs marks a key."""
    return any(True for _ in _codes_of_colours(text))


def with_code(text: str, spans: Sequence[Span]) -> list[Span]:
    """The protected spans of a text, and those of its code, in order, without overlaps."""
    found = code_in(text, spans)
    if not found:
        return list(spans)
    others = [span for span in spans if not _touching(found, span.start, span.end)]
    return sorted([*found, *others], key=lambda span: span.start)


def code_in(text: str, spans: Sequence[Span] | None = None) -> list[Span]:
    """What stays in a text beside its protected spans, in order, without overlaps: as a word, or between words.

    Args:
        spans: those of the text; None: they are looked for.
    """
    if not SIGN_OF_CODE.search(text):
        return []
    return sorted(_parts(text, find_spans(text) if spans is None else spans), key=lambda span: span.start)


def _parts(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    def is_free(start: int, end: int) -> bool:
        """Whether the range lies in no span, and cuts none."""
        return not any(
            each.start < start or end < each.end or (each.start, each.end) == (start, end)
            for each in _touching(spans, start, end)
        )

    whole: list[Span] = []
    for match in _code_pattern("command").finditer(text):
        arguments = match["arguments"]
        is_call = arguments is None or not frequent_words("en").intersection(re.split(", ?", arguments))
        if is_call and is_free(*match.span()):
            whole.append(Span(*match.span(), KINDS["command"].kind))
    smileys = [match.span() for match in _code_pattern("smiley").finditer(text) if _is_smiley(text, match)]
    yield from whole
    for name, ranges in (("smiley", smileys), ("colour", _codes_of_colours(text))):
        for start, end in ranges:
            if is_free(start, end) and not _touching(whole, start, end):
                yield Span(start, end, KINDS[name].kind)


def _touching(spans: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    """Those of some spans in order that share a character with a range."""
    first = bisect_right(spans, start, key=lambda span: span.end)
    return spans[first : bisect_left(spans, end, key=lambda span: span.start)]


def _is_smiley(text: str, match: re.Match[str]) -> bool:
    """Whether the bracket of a smiley closes none of the text before it, as in (we are glad :)"""
    is_closing = match[0].endswith(")")
    before = text[max(0, match.start() - _NEAR) : match.start()]
    return not is_closing or before.count("(") <= before.count(")") + len(re.findall(r"[:;=]-?\(", before))


def _codes_of_colours(text: str) -> list[tuple[int, int]]:
    """Where the codes of colours stand; none if the text has other things that look so, such as \u00a75 of a law and Q&A."""
    if "\u00a7" not in text and "&" not in text:
        return []
    found: list[tuple[int, int]] = []
    is_of_server = begins_text = has_digit = False
    first_letter = next((at for at, sign in enumerate(text) if sign.isalpha()), len(text))
    for match in _code_pattern("colour").finditer(text):
        if _ENTITY.match(text, match.start()) or _ARTICLE_OF_LAW.match(text, match.start()):
            continue
        found.append(match.span())
        is_first = match.start() <= first_letter
        begins_text = begins_text or is_first
        has_digit = has_digit or match[0][1].isdigit()
        is_several = len(found) > 1 or len(match[0]) > 2
        is_of_server = is_of_server or (is_several and (has_digit or begins_text))
        is_of_server = is_of_server or (is_first and _ALONE.match(text, match.end() - 1) is not None)
    signs = [text[start] for start, _ in found]
    if "&" in signs and ("\u00a7" in signs or not is_of_server):
        found = [(start, end) for start, end in found if text[start] != "&"]
    touches_word = any(text[end : end + 1].strip() for _, end in found)
    return found if touches_word else []
