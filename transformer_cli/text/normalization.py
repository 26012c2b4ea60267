"""Text normalisation before training and translation: Unicode NFC, no control characters."""

import re
import unicodedata
from itertools import chain

from transformer_cli.config.text_settings import CleaningConfig

# White space stays, also U+0085 and U+001C..U+001F: removing it would join two words into one. A
# byte-order mark inside a text comes from files that were concatenated.
_CONTROL_CHARACTER = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
# Default_Ignorable_Code_Point, from DerivedCoreProperties.txt of the Unicode Character Database: soft hyphen,
# joiners, direction marks, fillers, variation selectors, tags. `unicodedata` does not have this property.
_IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
# Not in that property, but they show nothing either: the empty Braille pattern, the marks of interlinear
# annotation, the musical null notehead.
_EMPTY = r"\u2800\ufff9-\ufffb\U0001d159"
_VISIBLE = re.compile(rf"[^\s{_IGNORABLE}{_EMPTY}]")
_LONG_TEXT = 1000


def normalize(text: str, rules: CleaningConfig) -> str:
    """Normalised text, the same in training and translation; normalising it again changes nothing."""
    if rules.remove_control_characters:
        text = remove_control_characters(text)
    return compose(text) if rules.normalize_unicode else text


def remove_control_characters(text: str) -> str:
    """Text without control characters and byte-order marks; white space stays."""
    return text if text.isprintable() else _CONTROL_CHARACTER.sub("", text)


def compose(text: str) -> str:
    """Text in Unicode NFC; thousands of combining marks in a row do not take quadratic time."""
    if text.isascii():
        return text
    if len(text) > _LONG_TEXT:
        text = _order_marks(text)
    return unicodedata.normalize("NFC", text)


def is_blank(text: str) -> bool:
    """Whether the text has no visible character."""
    return _VISIBLE.search(text) is None


def _order_marks(text: str) -> str:
    """Canonically equivalent text with every run of combining marks in canonical order.

    `unicodedata.normalize` uses an insertion sort, which takes hours on a megabyte of unsorted marks.
    """
    ordered: list[str] = []
    marks: list[str] = []
    decomposed = (unicodedata.normalize("NFD", character) for character in text)
    for character in chain.from_iterable(decomposed):
        if unicodedata.combining(character):
            marks.append(character)
            continue
        ordered.extend(sorted(marks, key=unicodedata.combining))
        marks.clear()
        ordered.append(character)
    ordered.extend(sorted(marks, key=unicodedata.combining))
    return "".join(ordered)


def without_surrogates(text: str) -> str:
    """UTF-8 has no lone surrogates: each becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
