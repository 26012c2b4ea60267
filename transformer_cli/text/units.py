"""Signs of units behind numbers and placeholders, such as km and MB: they stay, or become the names of the same units."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transformer_cli.text.languages import primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.spans import Span, SpanKind, find_spans, has_span_sign

_SPACE = r"(?:\s|&nbsp;|&\#160;)?"
_SIGNS = (
    r"[kcm]m(?:/h)?|[km]g|[mc][lL]|[kKMGT]i?B|[kMG]bit/s|[kM]bps|[kMG]?Hz|k?Wh?|mAh|px|dpi|dB|k?cal|kJ|[hk]Pa|fps|rpm"
    r"|[kcm]?m[\u00b2\u00b3]"
)
# As in {n} km.
_UNIT_BEHIND_PLACEHOLDER = lazy_pattern(
    rf"{_SPACE}(?:{_SIGNS})(?![\w/'\u2019-])"
    r"|\s(?:[glmAV])(?=[.,;:!?)]*\s*\Z)"  # inside a sentence, such a letter is a word
)
_UNIT_BEHIND_NUMBER = lazy_pattern(
    rf"\+?{_SPACE}(?:{_SIGNS}|ms|min)(?![\w/'\u2019-])"
    r"|[ \u00a0\u202f][glmh](?=[.,;:!?)]*(?:\s+[a-z]|\s*\Z))|[ \u00a0\u202f][sAVW](?=[.,;:!?)]*\s*\Z)"
)
# What the names of units begin with in de, en, es, fr, it, nl and pt; with their first letters as in French Mo and ko.
_KILOMETRES = r"kilom|chilom|quil[o\u00f3]m"
_NAMES = {
    "km": _KILOMETRES,
    "km/h": rf"{_KILOMETRES}|k[mp]h?(?!\w)",
    "cm": r"[cz]ent[i\u00ed]m",
    "mm": r"mil+[i\u00ed]m",
    "m": r"m[e\u00e8\u00e9]t|mil[il]|(?:mio|mln)(?!\w)",
    "kg": r"kilo|chil|quil|kgs(?!\w)",
    "mg": r"mil+ig",
    "g": r"gram|gr(?!\w)",
    "ml": r"mil+il",
    "cl": r"[cz]entil",
    "l": r"lit",
    "kb": r"kilo|chilo|quilo|ko(?!\w)",
    "mb": r"m[e\u00e9]ga|mo(?!\w)",
    "gb": r"giga|go(?!\w)",
    "tb": r"t[e\u00e9]ra|to(?!\w)",
    "px": r"pixel|p\u00edxel",
    "h": r"heu|hou|hor|or[ae](?!\w)|uu?r|st(?:d(?!\w)|un)|o['\u2019]clock|(?:[ap]\.?m|in)(?!\w)|[\d.,;:!?)]|\Z",
    "min": r"minuu?t(?:es?|en|os?|i)?(?!\w)|['\u2032]",
    "ms": r"mil+is",
    "s": r"se[ckg]|['\u2032\u2033]",
    "a": r"amp",
    "v": r"volt",
    "w": r"watt",
    "kw": r"(?:ch|k|qu)ilowatt",
    "hz": r"hert",
    "db": r"d[e\u00e9][cz]ib",
    "kcal": r"(?:ch|k|qu)ilo[ck]al",
    "cal": r"[ck]al(?:or)?",
}
_KNOWN_LANGUAGES = frozenset(("de", "en", "es", "fr", "it", "nl", "pt"))
_DIGITS = lazy_pattern(r"\d+(?:[.,:]\d+)*")
_NAME_OF_ANY = lazy_pattern(
    rf"(?<![^\W_])(?:{'|'.join(names for unit, names in _NAMES.items() if len(unit) > 1)})", re.IGNORECASE
)


class _Value(NamedTuple):
    """A number or placeholder with its unit."""

    text: str
    unit: str


def with_units(text: str, spans: Sequence[Span], *kinds: SpanKind) -> list[Span]:
    """The spans of a text, those of some kinds with the signs of units behind them; what lies in these is no span of its own."""
    found: list[Span] = []
    for span in spans:
        if found and span.end <= found[-1].end:
            continue
        pattern = _UNIT_BEHIND_PLACEHOLDER if span.kind is SpanKind.WORD else _UNIT_BEHIND_NUMBER
        unit = pattern.match(text, span.end) if span.kind in kinds else None
        found.append(span if unit is None else span._replace(end=unit.end()))
    return found


def has_other_units(source: str, translation: str, target: str, kind: SpanKind) -> bool:
    """Whether a unit behind a number or a placeholder of a source is another one, or a word, in its translation; or a number got one.

    Args:
        target: the language of the translation; of one whose names of units are not known nothing is said.
        kind: of the values: numbers, or what stands for words, such as placeholders.
    """
    if source == translation or primary_language(target) not in _KNOWN_LANGUAGES or not has_span_sign(source):
        return False
    values = [*_values(source, kind)]
    if any(_is_lost(value, translation) for value in values):
        return True
    if kind is not SpanKind.NUMBER or values or _NAME_OF_ANY.search(source):
        return False
    # A number before a mark or the end has no unit that a translation could write.
    alone = {match[0] for match in _DIGITS.finditer(source) if not re.match(r"[\s-]*[^\W\d_]", source[match.end() :])}
    return any(value.text in alone and value.unit not in ("h", "min", "s", "m") for value in _values(translation, kind))


def _values(text: str, kind: SpanKind) -> Iterator[_Value]:
    spans = find_spans(text)
    for span in spans:
        [whole] = with_units(text, [span], kind)
        if whole.end > span.end:
            value = text[span.start : span.end]
            digits = _DIGITS.findall(value) if kind is SpanKind.NUMBER else []  # the last one of 20 x 30
            unit = re.sub(rf"\A\+?{_SPACE}", "", text[span.end : whole.end])
            yield _Value(digits[-1] if digits else value, unit)


def _is_lost(value: _Value, translation: str) -> bool:
    """Whether a translation has a value, and neither its unit nor a name of it behind it; or none of the three, as in *five ropes* for 5 cm."""
    written = re.escape(value.text)
    if value.text[0].isdigit():  # 1.5 may be 1,5
        digits = re.sub("[.,]", "[.,]", value.text)
        written = rf"(?<![\d.,]){digits}(?!\d|[.,]\d)"
    places = [match.end() for match in re.finditer(written, translation)]
    sign = rf"(?i:{re.escape(value.unit)})(?![^\W\d_])"
    names = _NAMES.get(value.unit.lower())
    behind = re.compile(rf"\+?(?:\s|&nbsp;|&\#160;|-)*(?:{sign}" + (rf"|(?i:{names}))" if names else ")"))
    # Where the number is a word, so may be a unit of one letter: *at five* for 5 h.
    if places or len(value.unit) == 1 or not value.text[0].isdigit():
        return bool(places) and not any(behind.match(translation, place) for place in places)
    return re.search(rf"(?<![^\W\d_])(?:{sign}" + (rf"|(?i:{names}))" if names else ")"), translation) is None
