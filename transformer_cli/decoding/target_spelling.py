"""What the spelling of the target language asks for beside signs and placeholders, which a model has not read there.

French has a space before a colon and *il y a* before the time, and an elided word such as d' stands before a vowel only: nobody knows with what the text begins
that a program writes in the place of a placeholder.
"""

import re
from collections.abc import Mapping, Sequence

from transformer_cli.decoding.translation import SourceText, Translation, with_alternatives
from transformer_cli.text.languages import primary_language
from transformer_cli.text.sentences import SPACED_PAUSES
from transformer_cli.text.spans import Span, find_spans

_COLON = re.compile(r"(?<=[^\W\d_]{2}|.[}\])%@>]):(?=\s|\Z)")
_AGO = re.compile(r"\s+(?:est )?il y a(?! *[\w{%$])")
_PREPOSITION = re.compile(r"(?<!\w)(?:[àÀ]|[Dd]e|[Ee]n|[Pp]endant|[Pp]our) \Z")
_ELIDED = re.compile(r"(?<![\w'\u2019])(\w+)['\u2019]\Z")
# Only one word is elided to each of these; l' may stand for le and la.
_WHOLE_WORDS: Mapping[str, Mapping[str, str]] = {
    "fr": {"d": "de", "j": "je", "m": "me", "n": "ne", "qu": "que", "t": "te"},
    "it": {"d": "di", "m": "mi", "n": "ne", "t": "ti", "v": "vi"},
}


def with_target_spelling(line: SourceText, translation: Translation, target: str) -> Translation:
    """The translation of a line into a language, with spaces before its colons, whole words before placeholders, and *il y a {time}* for *{time} ago*.

    A line that stays as it is keeps its colons, and so does one with terms of a glossary.
    """
    language = primary_language(target)
    has_colon = ":" in line.text and ":" in SPACED_PAUSES.get(language, "")
    has_elided = language in _WHOLE_WORDS and not translation.text.isalpha()
    if not (has_colon or has_elided) or translation.terms or translation.text == line.text:
        return translation
    found = []
    for text, score in translation.alternatives:
        spans = find_spans(text)
        spelled = _with_whole_words(text, spans, _WHOLE_WORDS.get(language, {}), line.text)
        if language == "fr" and " ago" in line.text:
            spelled = _with_ago_in_front(spelled)
        if has_colon and _COLON.search(line.text):
            spelled = _with_spaced_colons(spelled)
        found.append((spelled, score))
    return with_alternatives(translation, found)


def _with_spaced_colons(text: str) -> str:
    spans = find_spans(text)
    for match in reversed([*_COLON.finditer(text)]):
        if not any(span.start <= match.start() < span.end for span in spans):
            text = f"{text[: match.start()]} {text[match.start() :]}"
    return text


def _with_ago_in_front(text: str) -> str:
    for span in reversed(find_spans(text)):
        if behind := _AGO.match(text, span.end):
            before = _PREPOSITION.sub("", text[: span.start])
            text = f"{before}il y a {text[span.start : span.end]}{text[behind.end() :]}"
    return text


def _with_whole_words(text: str, spans: Sequence[Span], words: Mapping[str, str], source: str) -> str:
    for span in reversed(spans):
        elided = _ELIDED.search(text, 0, span.start)
        if elided is None or text[span.start].isalnum() or text[elided.start() : span.end] in source:
            continue
        if whole := words.get(elided[1].lower()):
            whole = whole.capitalize() if elided[1][0].isupper() else whole
            text = f"{text[: elided.start()]}{whole} {text[span.start :]}"
    return text
