"""The layout of a line: which parts of it are text, which spans of the text are protected, and how columns stay aligned when the text changes."""

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from transformer_cli.text.normalization import EMOJI

# Indentation, the quote marks of an e-mail (> >), and then at most two marks of a list, with the white space
# after them: - * • 1. 2) a) (iv) # [x]
_BEGINNING = re.compile(
    r"\s*(?:>\s*)*"
    r"(?:(?:[-*+\u2022\u2023\u25e6\u25aa\u25ab\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7\u2192\u2713\u2717]|\#{1,6}|\(?\d{1,3}[.)]|\(?(?:[A-Za-z]|[ivxIVX]{1,5})\)|\[[ xX]?\])(?:\s+|\Z)){0,2}"
)
# What always separates two columns: tabs, a bar, a row of dots or lines.
_COLUMN_GAP = re.compile(r"\s{0,2}(?:\t|\||\.{6}|…{2}|(?:\. ){3}|_{3})[\s|._…]*")
# What separates columns, unless a sentence goes on after it.
_WIDE_GAP = re.compile(r"\s{2,}|\s?\.{4,}\s?")
_SENTENCE_END = frozenset(".?!…")


class TextRange(NamedTuple):
    """The text line[start:end]."""

    start: int
    end: int


def text_ranges(line: str, visible: str | None = None) -> list[TextRange]:
    """The ranges of a line that hold text to translate, in order; everything else stays as it is.

    Each range begins and ends without white space, and holds at least one letter. So the cells of a table that are
    only numbers and symbols belong to no range, and neither do the gaps between its columns.

    Args:
        line: without a line end.
        visible: the line with all letters of protected spans hidden, of the same length; None: nothing is protected.
    """
    visible = line if visible is None else visible
    beginning = _BEGINNING.match(line)
    start = beginning.end() if beginning else 0
    if _COLUMN_GAP.search(visible, start) or _WIDE_GAP.search(visible, start):
        cells = list(_cells(visible, start))
    else:
        cells = [_stripped(visible, start, len(visible))]
    return [cell for cell in cells if _has_letter(visible, cell)]


def _cells(line: str, start: int) -> Iterator[TextRange]:
    """The cells of a line from `start` on, without the white space around them."""
    place = start
    for gap in _COLUMN_GAP.finditer(line, start):
        yield from _cells_with_wide_gaps(line, place, gap.start())
        place = gap.end()
    yield from _cells_with_wide_gaps(line, place, len(line))


def _cells_with_wide_gaps(line: str, start: int, end: int) -> Iterator[TextRange]:
    parts: list[TextRange] = []
    for gap in [*_WIDE_GAP.finditer(line, start, end), None]:
        parts.append(_stripped(line, start, gap.start() if gap else end))
        start = gap.end() if gap else end
    cells: list[TextRange] = []
    for part, goes_on in zip(parts, _go_on(line, parts), strict=True):
        if cells and (_is_one_text(line, cells[-1], part) or goes_on):
            part = TextRange(cells.pop().start, part.end)
        cells.append(part)
    yield from cells


def _is_one_text(line: str, left: TextRange, right: TextRange) -> bool:
    """Whether a sentence goes on after a wide gap: some people type two spaces after a sentence, or several in it."""
    if not (_has_letter(line, left) and _has_letter(line, right)):
        return False
    gap = line[left.end : right.start]
    return len(gap) < 3 or "." in gap or line[right.end - 1] in _SENTENCE_END


def _go_on(line: str, parts: list[TextRange]) -> list[bool]:
    """For each part, whether it and all that follow continue a sentence: with small letters first, up to a mark."""
    ends = [part.end for part in parts if part.start < part.end]
    goes_on = bool(ends) and line[ends[-1] - 1] in _SENTENCE_END
    found = []
    for left, part in zip([*reversed(parts[:-1]), None], reversed(parts), strict=True):
        first = line[part.start : min(part.start + 1, part.end)]
        goes_on = goes_on and (not first or first.islower())
        found.append(bool(first) and goes_on and left is not None and _has_letter(line, left))
    return found[::-1]


def _stripped(line: str, start: int, end: int) -> TextRange:
    text = line[start:end]
    return TextRange(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def _has_letter(line: str, cell: TextRange) -> bool:
    return any(map(str.isalpha, line[cell.start : cell.end]))


# A gap that aligns columns: at least two spaces, or spaces before the bar of a table.
_ALIGNING = re.compile(r" {2,}(?=\S)| +(?=\|)")


def with_texts(line: str, ranges: Sequence[TextRange], texts: Sequence[str]) -> str:
    """The line with other texts in its ranges; gaps of spaces become longer or shorter, to keep columns aligned.

    A gap keeps at least two spaces, or one before a bar, so a longer text moves the rest of its line.

    Args:
        line: the source.
        ranges: of the line, in order.
        texts: the new text of each range.
    """
    if not ranges:
        return line
    pieces = [line[: ranges[0].start]]
    given_width = width = display_width(pieces[0])
    ends = [next_range.start for next_range in ranges[1:]] + [len(line)]
    for text_range, text, end in zip(ranges, texts, ends, strict=True):
        given_width += display_width(line[text_range.start : text_range.end])
        width += display_width(text)
        gap = _ALIGNING.match(line, text_range.end)
        num_spaces = num_given = gap.end() - gap.start() if gap else 0
        if gap:
            num_spaces = max(min(num_given, 2), given_width + num_given - width)
        rest = line[text_range.end + num_given : end]
        given_width += num_given + display_width(rest)
        width += num_spaces + display_width(rest)
        pieces += [text, " " * num_spaces, rest]
    return "".join(pieces)


def display_width(text: str) -> int:
    """The columns that a text takes on a terminal: two for a wide character, none for a combining mark."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


# Protected spans of a text: URLs, numbers, placeholders and the like.


# The endings of domains and of files that are recognised without "http://" or a folder before them.
_DOMAINS = "com|org|net|edu|gov|info|eu|io"
_FILE_ENDINGS = (
    "txt|md|pdf|docx?|xlsx?|pptx?|odt|ods|odp|csv|tsv|json|jsonl|xml|html?|ya?ml|toml|ini|log|py|js|sh|c|cpp|java|"
    "png|jpe?g|gif|svg|mp3|mp4|wav|avi|mov|zip|gz|tar|exe|iso|"
    "rtf|epub|tex|bib|rst|po|pot|mo|xlf|xliff|tmx|srt|vtt|ics|eml|ipynb|sql|db|sqlite|parquet|css|scss|tsx?|jsx|mjs|php|rb|rs|"
    "kt|cs|hpp|cfg|conf|lock|bak|tmp|dll|dmg|deb|rpm|apk|jar|rar|7z|bz2|xz|zst|tgz|ico|webp|bmp|tiff?|psd|eps|heic|webm|mkv|"
    "flac|ogg|m4a|ttf|otf|woff2?"
)
# A single capital letter behind a full stop is an initial.
_CAPITAL_ENDINGS = _FILE_ENDINGS.upper().replace("|C|", "|")
_CURRENCIES = "EUR|USD|GBP|CHF|JPY|CNY|AUD|CAD|SEK|NOK|DKK|PLN|CZK|HUF|INR|BRL"
# What a URL may contain. Scripts without spaces between words are left out, because there the sentence goes on
# directly after a URL: U+0E00..U+0E7F Thai, U+3000 and above Chinese, Japanese and Korean.
_IN_URL = r"[^\s<>\"'`{}|\\^\u00ab\u00bb\u2018-\u201e\u0e00-\u0e7f\u2026\u3000-\uffff\U00010000-\U0010ffff]"
_NO_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
# Emoji and other pictures such as a star or a telephone.
_PICTURE = r"\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff"
# Between a number and its unit or the next three digits: the plain, no-break, narrow no-break and thin space.
_SPACE = r"\u00a0\u202f\u2009"
# What stands behind the per cent sign of printf, such as s or .2f.
_SPECIFICATION = (
    r"[#0+-]{0,3}(?:\*|\d{0,9})(?:\.(?:\*|\d{1,9}))?(?:hh?|ll?|[Lzjt])?[diouxXeEfFgGcrs@]"
)
SPECIFICATION = re.compile(rf"(?<![\d%])(?<!\d[ {_SPACE}])%{_SPECIFICATION}")
"""A specification of printf, or the beginning of a word behind a per cent sign, but not the sign behind a number."""
TOUCHING_SPECIFICATION = re.compile(rf"(?<!%)%{_SPECIFICATION}(?=[A-Za-z])")
"""A specification of printf directly before a letter, or the beginning of a word behind a per cent sign."""
_PATTERNS = {
    # A line end or another character that is written as in a program: \n, \u00e9.
    "escape": r"(?<![\\\w:])\\(?:[nrt](?![a-z])|u[0-9A-Fa-f]{4}(?![0-9A-Fa-f])|x[0-9A-Fa-f]{2}(?![0-9A-Fa-f]))",
    "tag": (
        rf"<!--(?:(?!<!--)[^{_NO_CONTROL}]){{0,2000}}?-->"
        rf"|</?(?:[A-Za-z_][\w:.-]{{0,99}}(?:[ \t/][^<>{_NO_CONTROL}]{{0,2000}})?|\d{{1,9}}[ ]?/?)>"
    ),
    # With the signs that choose a colour or join several pictures to one.
    "picture": (
        rf"(?:[0-9#*]\ufe0f?\u20e3|[{EMOJI}]\ufe0f|[{_PICTURE}])"
        rf"(?:[{_PICTURE}\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f]|\u200d[{EMOJI}])*"
    ),
    "code": (
        rf"`[^`{_NO_CONTROL}]{{1,200}}`"
        r"|&(?:[A-Za-z][A-Za-z0-9]{1,31}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});"
    ),
    "placeholder": (
        rf"\{{\{{[^{{}}{_NO_CONTROL}]{{0,99}}\}}\}}"  # {{name}}
        rf"|[$\#%]?\{{[^{{}}{_NO_CONTROL}]{{0,99}}\}}"  # {name}, {0:.2f}, ${x}, %{x}, {% if x %}
        rf"|\[\[[^\[\]{_NO_CONTROL}]{{1,99}}\]\]"  # [[name]]
        r"|\[X\d{1,9}X\]"  # of Weblate
        rf"|<%[^<>%{_NO_CONTROL}]{{1,200}}%>"  # <%= name %>
        rf"|%\([^()%{_NO_CONTROL}]{{1,99}}\)[#0+-]{{0,3}}\d{{0,9}}(?:\.\d{{1,9}})?[A-Za-z]"  # %(x)d, %(a.b)s
        r"|(?<![\w%])%%?[A-Za-z_][\w.-]{0,98}%%?(?!\w)"  # %name%, %%name%%
        rf"|(?<!%)%\d{{1,3}}\${_SPECIFICATION}"  # %1$s, also directly before a letter
        rf"|(?<![\d%])%{_SPECIFICATION}(?![A-Za-z])"
        r"|(?<![\d%])%(?:L?\d{1,2}(?![\d%])|L?n(?![A-Za-z]))"  # %1, %n of Qt
        r"|(?<![\d%])%%(?!%)"
        r"|(?<!\w)@?__[A-Za-z0-9](?:[\w.-]{0,97}[A-Za-z0-9])?__(?!\w)"  # __name__, @__name__
        r"|(?<![^\s(\[\"'\u00ab\u201c\u2018>]):(?:[a-z]\w{1,98}|[A-Z]\w{2,98}):?(?![\w:])"  # :name, :smile:
        r"|(?<=[\s(\[\"'\u00ab\u201c\u2018>])![a-z]\w{2,98}(?![\w:!])"  # !name, but not "!and" at the beginning of a text
        rf"|\$t\([^(){_NO_CONTROL}]{{1,99}}\)"  # $t(name)
        r"|(?<!\w)@(?:\.\w{1,20})?:\w[\w.-]{0,98}(?<![.-])"  # @:name
        r"|\$[A-Za-z_]\w{0,99}"  # $x
    ),
    "address": (
        rf"(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}"
        rf"|(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{{1,15}}://|www\.(?=[^\W_])|mailto:|tel:){_IN_URL}+"
        rf"|(?<![\w@.-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{_DOMAINS})(?![\w-])(?:[/?#]{_IN_URL}*)?"
    ),
    "path": (
        r"(?<![\w\\])[A-Za-z]:\\[^\s<>|\"*?]*"  # C:\Users\me
        r"|(?<![\w.~/])(?:~|\.{1,2})/[\w.@+/-]*"  # ~/x, ./x, ../x
        r"|(?<![\w.~/])/[\w.@+-]+/[\w.@+/-]*"  # /usr/bin
        rf"|(?<![\w.~/-])[\w-]{{1,99}}(?:\.[\w-]{{1,99}}){{0,4}}\.(?:{_FILE_ENDINGS}|{_FILE_ENDINGS.upper().replace('|C|', '|')})(?![\w-])"  # report.pdf
        r"|(?<![\w@#&])[@#][^\W\d_]\w{0,99}"  # @name, #topic
    ),
    # Names of programs, keys pressed together, versions, and words that begin with letters and have digits.
    "name": r"(?<![\w@#.\\/-])[A-Za-z][A-Za-z0-9]{0,50}(?:_{1,2}[A-Za-z0-9]{1,50}){1,20}(?:\(\))?(?!\w)"  # snake_case
    r"|(?<!\w)[A-Za-z_]\w{0,98}\(\)"  # call()
    r"|(?<!\w)(?:Ctrl|Alt|Shift|Cmd|Meta|Strg)(?:\+[A-Za-z0-9]{1,10}){1,4}(?!\w)"
    r"|(?<!\w)v\d{1,9}(?:\.\d{1,9}){1,3}(?:-[A-Za-z0-9]{1,30}(?:\.[A-Za-z0-9]{1,30}){0,5})?(?!\w)"  # v1.2.3-beta
    # A4, XY-123/45, mp3
    r"|(?<!\w)[A-Za-z]{1,20}-?\d[A-Za-z0-9]*(?:[-/][A-Za-z0-9]+)*",
    "number": (
        rf"(?:(?:(?<!\w)(?:{_CURRENCIES})|[$£¥\u20a0-\u20cf])[ {_SPACE}]?)?(?:(?<![\w)])[+\u2212-])?"
        rf"\d+(?:[.,:/'\u2019{_SPACE}-]\d+)*"
        rf"(?:[ {_SPACE}]?(?:°[CF]|%%|[%‰$£¥°\u20a0-\u20cf]|(?:{_CURRENCIES}))(?![\w({{]))?"
    ),
}
# A text without any of these holds no span, and most sentences hold none.
_ANY_SIGN = re.compile(rf"[\d<`&{{%$#@/\\\[:_+\ufe0f\u20e3{_PICTURE}]|\.\w|\(\)|![a-z]")
_CLOSING = ".,;:!?'\")]}…*_-"


@functools.cache
def _span_pattern() -> re.Pattern[str]:
    """All patterns as one; compiled at its first use, because it takes longer than most imports."""
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))


class SpanKind(Enum):
    """How a span may be treated while its sentence is translated."""

    TAG = "tag"
    """Markup or an emoji: it stands between words and is none."""
    WORD = "word"
    """A URL, address, path, placeholder or code: it takes the place of a name in its sentence."""
    NUMBER = "number"
    """Digits: many models copy them, and those that are copied wrongly are repaired."""


class Span(NamedTuple):
    """A protected part of a text: text[start:end]."""

    start: int
    end: int
    kind: SpanKind


def find_spans(text: str) -> list[Span]:
    """The protected spans of a text, in order, without overlaps; no span contains a line break or a control character.

    The full stop, comma or bracket after a URL belongs to the sentence, and not to the span.
    """
    return list(_spans(text)) if _ANY_SIGN.search(text) else []


def span_texts(text: str, spans: Sequence[Span]) -> list[str]:
    """The text of each span."""
    return [text[span.start : span.end] for span in spans]


def masked(text: str, spans: Sequence[Span], sign: str) -> str:
    """The text with `sign` in place of each character of a span; its length is the same."""
    pieces, place = [], 0
    for span in spans:
        pieces += [text[place : span.start], sign * (span.end - span.start)]
        place = span.end
    return "".join([*pieces, text[place:]])


def _spans(text: str) -> Iterator[Span]:
    place, pattern = 0, _span_pattern()
    while match := pattern.search(text, place):
        start, end, kind = match.start(), match.end(), match.lastgroup
        if kind in ("address", "path"):
            end = _without_closing_marks(text, start, end)
        place = end
        kinds = {
            "escape": SpanKind.TAG,
            "tag": SpanKind.TAG,
            "picture": SpanKind.TAG,
            "number": SpanKind.NUMBER,
        }
        yield Span(start, end, kinds.get(kind or "", SpanKind.WORD))


def _without_closing_marks(text: str, start: int, end: int) -> int:
    """The end of a URL or path without the punctuation after it; a bracket that it opens stays."""
    num_opened, num_closed = text.count("(", start, end), text.count(")", start, end)
    while end > start + 1 and text[end - 1] in _CLOSING:
        if text[end - 1] == ")":
            if num_opened >= num_closed:
                break
            num_closed -= 1
        end -= 1
    return end
