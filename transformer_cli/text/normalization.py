"""The form in which text is learned and translated: Unicode NFC, without control characters."""

import re
import unicodedata

from transformer_cli.config.data import CleaningConfig

# White space is no control character here, U+0085 and U+001C..U+001F included: removing it would
# glue words together. A byte-order mark inside text is left over from joining files.
_CONTROL_CHARACTER = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
# White space, and what has no width: soft hyphen, joiners, direction marks.
_VISIBLE = re.compile(
    r"[^\s\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_LONG_TEXT = 1000


def normalize(text: str, rules: CleaningConfig) -> str:
    """Text as the model sees it, in training and in translation; applying it twice changes nothing."""
    if rules.remove_control_characters:
        text = remove_control_characters(text)
    return compose(text) if rules.normalize_unicode else text


def remove_control_characters(text: str) -> str:
    """Text without control characters and byte-order marks; white space stays."""
    return text if text.isprintable() else _CONTROL_CHARACTER.sub("", text)


def compose(text: str) -> str:
    """Unicode NFC, without the quadratic time that thousands of combining marks in a row can take."""
    if text.isascii():
        return text
    if len(text) > _LONG_TEXT:
        text = _order_marks(text)
    return unicodedata.normalize("NFC", text)


def is_blank(text: str) -> bool:
    """Whether nothing in the text can be seen."""
    return _VISIBLE.search(text) is None


def _order_marks(text: str) -> str:
    """Canonically equivalent text whose runs of combining marks are in canonical order already.

    Python's normalisation sorts such runs by insertion, which takes hours on a megabyte of marks.
    """
    ordered: list[str] = []
    marks: list[str] = []
    for character in _decompose(text):
        if unicodedata.combining(character):
            marks.append(character)
            continue
        ordered.extend(sorted(marks, key=unicodedata.combining))
        marks.clear()
        ordered.append(character)
    ordered.extend(sorted(marks, key=unicodedata.combining))
    return "".join(ordered)


def _decompose(text: str) -> str:
    return "".join(unicodedata.normalize("NFD", character) for character in text)
