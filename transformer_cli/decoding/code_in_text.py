"""Finds what stays in a text beside protected spans: commands and options, calls, settings, smileys, codes of colours.

A word for programs takes the place of a word; a smiley and a code of a colour stand between words.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from transformer_cli.text.languages import frequent_words
from transformer_cli.text.spans import Span, SpanKind, find_spans

# Programs whose options stand directly behind their names; none of them is a frequent word of a sentence before a dash.
_PROGRAMS = (
    "apt|apt-get|awk|brew|chmod|chown|cp|curl|df|dnf|docker|du|ffmpeg|gcc|git|grep|gunzip|gzip|java|javac|kubectl|ln|ls|mkdir|mv|npm|npx"
    "|pip3?|ps|python3?|rm|rsync|scp|sed|ssh|sudo|tar|unzip|wget|xargs|xz|yum|zstd"
)
_NAME = r"[A-Za-z_]\w{0,48}"
_VALUE = r"[\w./:+-]{0,98}\w"
# With a low line, capital letters or square brackets: the words of hund=dog are a list of words.
_SETTING_NAME = r"(?:[A-Za-z]\w{0,40}_\w{1,40}|[a-z]{1,40}[A-Z]\w{0,40}|[A-Z]{2,40}\d{0,3}|[a-z]\w{0,40}\[\w{0,30}\])"
_WORDS = re.compile(
    # Directly behind a full word, and without a vowel: -xzf, -czstd; what people say has none of these: -hmm.
    r"(?<=[\w,(] )-(?!(?:hmm?|mhm|mm|shh?|psst|pst|tsk|brr|pfft|nth|vs|km|kg|cm|ft|lbs?|mr|mrs|dr|st)(?!\w))[b-df-hj-np-tv-xz]{2,6}(?![\w'\u2019-])"
    rf"|(?<![\w/.@-])(?:{_PROGRAMS})(?: --?[A-Za-z][\w-]{{0,40}}(?:={_VALUE})?){{1,9}}(?![\w-])"
    # A call whose arguments are names: foo(bar, baz)
    rf"|(?<![\w.$@-])(?:{_NAME}\.){{0,4}}[a-z_]\w{{1,48}}\((?P<arguments>{_NAME}(?:, ?{_NAME}){{1,9}})\)(?!\w)"
    # Also with other arguments, if its name has parts: babel.parse(code: string), .slice(0, n), and Cat#meow as in lists of functions
    rf"|(?<![\w.$@/-]){_NAME}(?:\.{_NAME}){{1,4}}\([^()\n]{{1,200}}\)(?!\w)|(?<![\w.)/])\.[a-z]\w{{1,48}}\([^()\n]{{0,200}}\)(?!\w)"
    r"|(?<![\w.$@/#-])[A-Z][a-z]\w{0,48}#[a-z_]\w{1,48}(?:\([^()\n]{0,200}\))?(?![\w#])"
    # A file below a placeholder: {{ folder }}/icon.png; names with their space, such as og:title, db:seed
    r"|(?:\{\{[^{}\n]{1,99}\}\}|[$%]?\{[\w. ]{1,60}\}|\$[A-Za-z_]\w{0,40})(?:/[\w.-]{1,60}){0,9}/[\w.-]{0,60}\w\.[A-Za-z]\w{1,4}(?!\w)"
    r"|(?<![\w@#.\\/:<-])(?:og|db|dc|dcterms|fb|rdfs?|foaf|owl|skos|xsd|xsi|xlink|minecraft|android|tools|epub):[a-z][\w/-]{1,48}(?![\w:])"
    # A value of a template that is longer than a placeholder.
    r"|\{\{(?!\{)[^{}\n]{100,2000}\}\}"
    # areas="left+right", place_type=continent, has[]=photos&has[]=geo, readOnly=auto
    rf"|(?<![\w<&?./-])[A-Za-z][\w:-]{{1,40}}=(?:\"[^\"\s<>]{{1,99}}\"|'[^'\s<>]{{1,99}}')(?!\w)"
    rf"|(?<![\w<&?./-]){_SETTING_NAME}[+:]?={_VALUE}(?:&{_SETTING_NAME}={_VALUE}){{0,9}}(?![\w=])"
    # HTTP_HOST:example.test; a query by itself; a path with a variable in it, or with one file: /projects/:id/tasks, /index.json
    rf"|(?<![\w<&?./-])[A-Z][A-Z0-9]{{0,30}}(?:_[A-Z0-9]{{1,30}}){{1,9}}:{_VALUE}(?!\w)"
    r"|(?<![^\s(\[\"'\u201c/])\?[a-z]\w{0,40}=[\w.%+-]{1,99}(?<!\.)(?:&[a-z]\w{0,40}=[\w.%+-]{1,99}(?<!\.)){0,20}"
    r"|(?<![\w/.:{}])(?:/[\w.-]{1,60}){0,9}/(?::[a-z]\w{0,40}|\{\w{1,40}\})(?:/[\w.-]{0,60}\w|/:[a-z]\w{0,40}|/\{\w{1,40}\}){1,9}(?!\w)"
    r"|(?<![\w/.<>)\]])/[a-z][\w-]{0,60}\.(?:[a-z]{2,3}|html|json|jsonl|webp|yaml)(?![\w/])"
    # The number of a rule: au-1_smt.a; a command behind the code of a colour: &c/help
    r"|(?<=[&\u00a7][0-9a-fk-or])/[a-z]\w{1,40}"
    r"|(?<![\w@/.-])[A-Za-z]{1,20}-\d[\w.-]{0,40}_[\w.-]{0,40}\w"
    # .ruby-version, data-allowReplies
    r"|(?<![^\s(\[\"'\u00ab\u201c\u2018>/])\.[a-z][a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){1,3}(?![\w-]|\.\w)"
    r"|(?<![\w@#.\\/<-])data-[a-z]{1,30}(?:[A-Z][a-z0-9]{1,30}){1,4}(?![\w-])"
)
_SMILEYS = re.compile(
    r"(?<!\S)(?:[:;=]['\u2019]?-[()DPpOo/\\|*]|[:;]['\u2019]?[)(DPp]|:/|<3|\^\^|[xX]D)(?=\s|\Z|[.,!?\u2026)](?:\s|\Z))"
)
# Of Minecraft and chats: \u00a7a is green, \u00a7r ends it; on servers also &a.
_COLOURS = re.compile(
    r"(?:\u00a7[0-9a-fk-orA-FK-OR]|\u00a7x(?:\u00a7[0-9a-fA-F]){6})+|(?:&(?:\#[0-9a-fA-F]{6}|[0-9a-fk-or]))+"
)
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#\d+|#[xX][0-9A-Fa-f]+);|&(?:amp|copy|lt|gt|nbsp|quot|reg)")
_ARTICLE_OF_LAW = re.compile(r"\u00a7\d[a-z]?(?![^\W_])")
_NEAR = 300  # characters before a smiley, in which the bracket stands that it could close
# The last sign of a code at the beginning that needs no other one: &4The, &aYou, &7>; but &1 Day and &about have the mark of a key.
_ALONE = re.compile(r"\d[^\s.):]|[a-z][A-Z({\[<]")
_MAY_BE_CODE = re.compile(
    r"[ (]-[A-Za-z]|[=:;]['\u2019-]?[)(DPpOo/\\|*\"']|\w[+:]?=\w|\]=|<3|\^\^|[xX]D|\{\{|\u00a7|&[#0-9a-fk-or]|\.[a-z][a-z0-9]+-|data-[a-z]+[A-Z]|/\w|/[:{]|_\w|\?[a-z]|[a-z]:[a-z]|[A-Za-z]#[a-z_]|[\w.]\w\("
)


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
    if not _MAY_BE_CODE.search(text):
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
    for match in _WORDS.finditer(text):
        arguments = match["arguments"]
        is_call = arguments is None or not frequent_words("en").intersection(re.split(", ?", arguments))
        if is_call and is_free(*match.span()):
            whole.append(Span(*match.span(), SpanKind.WORD))
    inner = [match.span() for match in _SMILEYS.finditer(text) if _is_smiley(text, match)]
    inner += _codes_of_colours(text)
    yield from whole
    for start, end in inner:
        if is_free(start, end) and not _touching(whole, start, end):
            yield Span(start, end, SpanKind.TAG)


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
    for match in _COLOURS.finditer(text):
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
