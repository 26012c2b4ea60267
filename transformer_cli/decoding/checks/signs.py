"""The signs of a text, such as brackets, quotation marks, slashes and arrows: which of them its translation lacks."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

from transformer_cli.decoding.checks.brackets import is_in_word
from transformer_cli.text.languages import primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import is_letter
from transformer_cli.text.quotation_marks import quotes_without_partner
from transformer_cli.text.sentences import MARKS_OF_SCRIPTS, partners_of_brackets
from transformer_cli.text.spans import SpanKind, find_spans, masked

WORDS_OF_SIGNS: Mapping[str, Mapping[str, str]] = {
    "de": {"&": "und", "+": "und plus", "=": "ist sind gleich", "%": "prozent"},
    "en": {"&": "and", "+": "and plus", "=": "is are equal equals", "%": "percent per cent"},
    "es": {"&": "y e", "+": "y e más", "=": "es son igual", "%": "por ciento"},
    "fr": {"&": "et", "+": "et plus", "=": "est sont égal égale", "%": "pour cent"},
    "it": {"&": "e ed", "+": "e ed più", "=": "è sono uguale", "%": "percento per cento"},
    "nl": {"&": "en", "+": "en plus", "=": "is zijn gelijk", "%": "procent"},
    "pt": {"&": "e", "+": "e mais", "=": "é são igual", "%": "por cento"},
}
"""What may stand for a sign between two words."""
SIGN = lazy_pattern(
    r"[^\w\s,.!?'-]|(?:\A|\s)[^\w\s]|[^\w\s.!?'-][-]|\.\.|(?<![^\W_])_|_(?![^\W_])|--|\s'|'[^\w]|[\u00b9\u00b2\u00b3\u2070-\u2079]"
)
"""A text without this has no sign that a translation must keep; most texts have none."""

# The same sign for a translation, in other forms. Brackets and quotation marks have their own rules.
_FORMS = {
    sign: forms[0]
    for forms in (
        "(\uff08",
        ")\uff09",
        "[\uff3b\u3010",
        "]\uff3d\u3011",
        "|\u2502\uff5c",
        "/\uff0f\u2215",
        "\u2022\u00b7\u2219\u30fb",
        ";\uff1b\u061b",
        ":\uff1a",
        "&\uff06",
        "%\uff05\u066a",
        "+\uff0b",
        "=\uff1d",
        "~\uff5e\u223c",
        "<\uff1c",
        ">\uff1e",
        "\u00d7\u22c5",
        "*\uff0a",
        "#\uff03",
        "@\uff20",
        "-\u2010\u2011\u2212",
        "\u2026\u22ef",
        "\u2013\u2014\u2015",
        '"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f\uff02\u300a\u300b',
    )
    for sign in forms
}
_DIGRAPHS = (
    ("\u2192", ("->", "=>", "-->", "\u21d2", "\u27a1")),
    ("\u2190", ("<-", "\u21d0")),
    ("\u2194", ("<->", "\u21d4")),
    ("\u2260", ("!=", "=/=")),
    ("\u2264", ("<=", "=<")),
    ("\u2265", (">=",)),
    ("\u00b1", ("+/-", "+-")),
    ("\u00a9", ("(c)", "(C)")),
    ("\u00ae", ("(r)", "(R)")),
    ("\u2122", ("(tm)", "(TM)")),
    ("\u2026", ("...",)),
    ("\u2013", ("--",)),
)
_DIGRAPH = lazy_pattern(
    "|".join(re.escape(form) for _, forms in _DIGRAPHS for form in sorted(forms, key=len, reverse=True))
)
_DIGRAPH_SIGNS = {form: sign for sign, forms in _DIGRAPHS for form in forms}
_QUOTE, _DASH, _ELLIPSIS = '"', "\u2013", "\u2026"
_PAUSES = (";", ":", _DASH)
"""A translation may have another of these, or a comma or the end of a sentence, in its place."""
_ANY_PAUSE = lazy_pattern(
    rf"[,;:.!?\u2013\u2014\u2015\u2026\uff0c\u3001\uff1b\uff1a\u3002\uff01\uff1f\u061b{MARKS_OF_SCRIPTS}()]|\s-\s|--"
)
_FEW_PAUSES = 0.75  # of the source
# A sign of a sentence, and no sign of its own behind a word: apostrophes, hyphens, commas, full stops. Some of them vanish with reason.
_PLAIN = frozenset(
    "-.,!?'\u2019\u2018`\u00b4\u00a8\u00bf\u00a1\u3001\u3002\uff0c\uff01\uff1f\u060c\u061f\u00ba\u00aa\u00b0\u2032\u2033"
)
_SINGLE_QUOTES = lazy_pattern(
    r"(?<![\w'\u2018\u2019])['\u2018](?=[^\s'\u2018\u2019])([^'\u2018\u2019]|(?<=\w)['\u2019](?=\w)){0,200}?(?<=[^\s])['\u2019](?![\w'\u2019])"
)
_SINGLE_AT_WORD = lazy_pattern(r"(?<!\w)['\u2018]|['\u2019](?!\w)")
_INCHES = lazy_pattern(r"(?<=\d)[\"\u201d\u2033]")
_LEADING = lazy_pattern(r"\s*([^\w\s])(?:\s|(?<=[,;:!?)\]])\w)")
_LABEL = lazy_pattern(r"(?:\A|[.!?]\s+)(?:[^\W\d_][\w'\u2019-]*|[^\W\d_][\w'\u2019 -]{0,40}(?=: [^\W\d_a-z])): (?=\w)")
_LONG_UNDERLINE = lazy_pattern("_{3,}")
# Without the signs that all scripts have.
_SCRIPT_CHARACTERS = lazy_pattern("[\u0530-\u1fff\u2c80-\u2dff\ua000-\uabff\U00010000-\U0001efff]")
# Behind one or two letters stands the number of a unit, as in m\u00b2, for which a translation may have a word.
_SUPERSCRIPTS = lazy_pattern(r"(?:(?<![^\W\d_])|(?<=[^\W\d_]{3}))[\u00b9\u00b2\u00b3\u2070-\u2079]")


def _visible(text: str) -> str:
    """A text with letters in place of what is protected as a word or a number; tags and emoji are hidden as spaces."""
    spans = find_spans(text)
    if not spans:
        return text
    # Digits for numbers, because a quotation mark behind one may be the sign for inches.
    seen = masked(text, [span for span in spans if span.kind is SpanKind.WORD], "x")
    seen = masked(seen, [span for span in spans if span.kind is SpanKind.NUMBER], "0")
    return masked(seen, [span for span in spans if span.kind in (SpanKind.TAG, SpanKind.MARK)], " ")


def _counts(visible: str, text: str) -> Counter[str]:
    """How often a text has each sign, in one form of it.

    Args:
        visible: the text as `_visible` shows it.
        text: in which the raised numbers of footnotes are seen.
    """
    found = Counter(() if text.isascii() else _SUPERSCRIPTS.findall(text))
    text = _INCHES.sub("x", visible)
    singles = 2 * len(_SINGLE_QUOTES.findall(text)) if "'" in text or "\u2018" in text or "\u2019" in text else 0
    for match in _DIGRAPH.finditer(text):
        found[_DIGRAPH_SIGNS[match[0]]] += 1
    text = _DIGRAPH.sub(" ", text)
    for sign in text:
        if not (is_letter(sign) or sign.isalnum() or sign.isspace() or sign in _PLAIN or sign == "_"):
            form = _FORMS.get(sign, sign)
            if form is sign and (unicodedata.category(sign)[0] in "MC" or _is_mark_of_script(sign)):
                continue
            found[form] += 1
    if singles:
        found[_QUOTE] += singles
    if "_" in text:
        text = _LONG_UNDERLINE.sub("__", text)  # else the time grows with the square of its length
        found["_"] += len(re.findall(r"(?<![^\W_])_+(?=[^\W_])|(?<=[^\W_])_+(?![^\W_])", text))
    found[_DASH] += len(re.findall(r"(?<=\s)-(?=\s)", text)) if " - " in text else 0
    return found


def _is_mark_of_script(sign: str) -> bool:
    """Whether a sign is punctuation that only one script has, such as the danda of Hindi and the tsheg of Tibetan, or the space of Braille."""
    return sign == "\u2800" or (_SCRIPT_CHARACTERS.match(sign) is not None and unicodedata.category(sign)[0] == "P")


def lost_signs(source: str, translation: str, target: str) -> tuple[str, ...]:
    """The signs that a translation has less often than its source, in the forms of the source.

    Letters, digits, and the points, commas, hyphens and apostrophes at words are no such signs. A word of the target language may stand
    for some signs, another pause for a semicolon or a dash; brackets at a part of a word, as in dog(s), may go with it.

    Args:
        target: the language of the translation.
    """
    if source == translation or SIGN.search(source) is None:
        return ()
    here, there = _visible(source), _visible(translation)
    read, written = _counts(here, source), _counts(there, translation)
    lost = [sign for sign, number in read.items() if number > written[sign]]
    if _lacks_quotes(here, there, read, written, source, translation):
        lost = [*(sign for sign in lost if sign != _QUOTE), _QUOTE]
    elif _QUOTE in lost:
        lost.remove(_QUOTE)
    kept = {sign for sign in lost if not _is_missed(sign, here, there, read, written, target)}
    first = _LEADING.match(here)
    if first and first[1] in _PLAIN and not there.lstrip().startswith(first[1]):
        lost.append(first[1])
    return tuple(_as_written(sign, source) for sign in dict.fromkeys(lost) if sign not in kept)


def has_more_signs(source: str, translation: str) -> bool:
    """Whether a translation has quotation marks, brackets or other signs more often than its source."""
    read, written = (_counts(_visible(text), text) for text in (source, translation))
    return any(number > read[sign] for sign, number in written.items() if sign not in (*_PAUSES, _ELLIPSIS))


def _is_missed(sign: str, here: str, there: str, read: Counter[str], written: Counter[str], target: str) -> bool:
    """Whether a sign that a translation has less often is missing: nothing stands for it."""
    if sign in "()[]":
        return _num_brackets(here, sign) > written[sign]
    if sign in _PAUSES:
        if sign == ":" and len(_LABEL.findall(here)) > written[":"]:
            return True
        # A translation of a long sentence has other pauses; of a short one, one in the place of this one.
        num_read, num_written = (len(_ANY_PAUSE.findall(text)) for text in (here, there))
        return num_written < _FEW_PAUSES * num_read
    if sign in "&+=%":
        words = WORDS_OF_SIGNS.get(primary_language(target), {}).get(sign)
        if words is None:
            return False
        pattern = rf"(?<!\w)(?:{'|'.join(words.split())})(?!\w)"
        return read[sign] > written[sign] + len(re.findall(pattern, there.casefold()))
    if sign == _ELLIPSIS:  # at an end of a sentence a full stop may stand for it
        return len(re.findall(r"(?:\.\.\.|\u2026)\s+\w", here)) > written[sign]
    return True


def _lacks_quotes(
    here: str, there: str, read: Counter[str], written: Counter[str], source: str, translation: str
) -> bool:
    """Whether a translation has fewer quotation marks than its source, or half a pair of them."""
    if not read[_QUOTE]:
        return False
    num_written = written[_QUOTE]
    if num_written < read[_QUOTE]:  # single ones may have other words beside them
        num_written += len(_SINGLE_AT_WORD.findall(there))
    return num_written < read[_QUOTE] or bool(quotes_without_partner(source, translation))


def _num_brackets(text: str, sign: str) -> int:
    """How many brackets of a kind belong to no part of a word, as those of dog(s) do."""
    partners = partners_of_brackets(text, 0, len(text))
    found = 0
    for place, each in enumerate(text):
        if _FORMS.get(each) == sign:
            start, end = sorted((place, partners.get(place, place)))
            is_between = text[max(0, start - 1) : start].isalnum() and text[end + 1 : end + 2].isalnum()
            found += not (is_in_word(text, start, end) if place in partners else is_between)
    return found


def _as_written(sign: str, source: str) -> str:
    """A sign in the form in which a source has it first."""
    forms = [form for form, of in _DIGRAPH_SIGNS.items() if of == sign and form in source]
    forms += [each for each in source if _FORMS.get(each) == sign][:1]
    return max(forms, key=len) if forms and sign not in source else sign
