"""Text normalisation before training and translation: Unicode NFC, no control characters, no invisible characters."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import chain

from transformer_cli.config.data import CleaningConfig

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

OTHER_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Every space of Unicode except U+0020, as the inside of a character class: no-break, narrow, wide."""
# Soft hyphen, zero-width space, word joiner and byte-order mark; marks of direction (U+061C, U+200E..U+200F,
# U+202A..U+202E, U+2066..U+206F): the order in which text is shown, not what it says; operators of mathematics that
# nobody writes; selectors of variants of one and the same character (U+FE00..U+FE0D, U+E0100..U+E01EF).
_ALWAYS_REMOVED = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0d\ufeff\U000e0001\U000e0100-\U000e01ef"
)
_TAGS = "\U000e0020-\U000e007f"
_MONGOLIAN_SELECTORS = "\u180b-\u180f"
# Characters that may be followed by U+FE0F and so become an emoji, and the emoji. U+2329 and U+232A are left out: NFC
# makes other characters of them.
EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u2328\u232b-\u23ff\u24c2\u25a0-\u25ff\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Blocks of the scripts whose words may contain joiners, without their punctuation: Arabic to Mandaic, the scripts of
# India, Sinhala, Tibetan, Burmese, Khmer, Mongolian, and others of the same families.
_JOINING = (
    "\u0610-\u061a\u0620-\u06d3\u06d5-\u085b\u0860-\u0963\u0966-\u0df3\u0f00-\u0f84\u0f90-\u0fbc\u1000-\u1049"
    "\u1050-\u109f\u1700-\u1734\u1740-\u17d3\u17dc-\u17e9\u1807\u1810-\u18aa\u1900-\u193b\u1a00-\u1a1b"
    "\u1a20-\u1a99\u1b00-\u1b59\u1b80-\u1bf3\u1c00-\u1c37\u1c40-\u1c7d\u1cd0-\u1cfa\ua800-\ua827\ua840-\ua873"
    "\ua880-\ua8c5\ua8d0-\ua8f7\ua8fb-\ua92d\ua930-\ua953\ua980-\ua9c0\ua9cf-\ua9d9\ua9e0-\uaa59\uaa60-\uaaf6"
    "\uabc0-\uabf9\ufb50-\ufdfc\ufe70-\ufefc\U00010a00-\U00010a48\U00010ac0-\U00010aef\U00010d00-\U00010d39"
    "\U00010f30-\U00010f6f\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
# Signs that say that a consonant has no vowel, or joins the next one (canonical combining class 9).
_VIRAMAS = (
    "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0f84\u1039\u103a\u1714\u1715\u1734\u17d2"
    "\u1a60\u1b44\u1baa\u1bab\u1bf2\u1bf3\ua806\ua82c\ua8c4\ua953\ua9c0\uaaf6\uabed"
)
REMOVALS = (
    f"[{_ALWAYS_REMOVED}]",
    # Selectors of emoji, tags and Mongolian selectors stay behind what they belong to, once.
    f"(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]+|(?<![{EMOJI}0-9#*])[\ufe0e\ufe0f]|(?<=[0-9#*])[\ufe0e\ufe0f](?!\u20e3)"
    f"|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+|(?<![{_MONGOLIAN_SELECTORS}\u1820-\u18aa])[{_MONGOLIAN_SELECTORS}]+",
    "(?<=[\u200c\u200d])[\u200c\u200d]+",
    # The joiner U+200D changes the form of the letter before it, also at the end of a word. The non-joiner U+200C needs
    # a letter on both sides, or a sign before it whose form it changes.
    f"(?<![{_JOINING}])\u200c|(?<![{_VIRAMAS}])\u200c(?![{_JOINING}])"
    f"|(?<![{_JOINING}{EMOJI}\ufe0e\ufe0f])\u200d|(?<=[{EMOJI}\ufe0e\ufe0f])\u200d(?![{EMOJI}])",
)
"""Patterns of what is removed, in this order: the later ones look at what stands beside a character then. They are
also part of exported tokenizers, so they hold the characters themselves: engines differ in how they are escaped."""
_OTHER_SPACE = re.compile(f"[{OTHER_SPACES}]")
_MAY_BE_INVISIBLE = re.compile(
    f"[{OTHER_SPACES}{_ALWAYS_REMOVED}\u200c\u200d\ufe0e\ufe0f{_TAGS}{_MONGOLIAN_SELECTORS}]"
)


def normalize(text: str, rules: CleaningConfig, *, removes_invisible: bool) -> str:
    """Normalised text, the same in training and translation; normalising it again changes nothing.

    Args:
        removes_invisible: whether `normalize_invisible` is applied too, which is for source text.
    """
    if rules.remove_control_characters:
        text = remove_control_characters(text)
    if removes_invisible and may_be_invisible(text):
        return _without_invisible(text, compose if rules.normalize_unicode else str)
    return compose(text) if rules.normalize_unicode else text


def _without_invisible(text: str, compose: Callable[[str], str]) -> str:
    # NFC follows, because a letter and its accent become one without the character between them. It may also bring another
    # mark beside a joiner, which then goes.
    while (changed := compose(normalize_invisible(text))) != text:
        text = changed
    return text


def reads_without_invisible(rules: CleaningConfig, *, is_sentencepiece: bool) -> bool:
    """Whether a trained model reads source text without invisible characters, and with plain spaces.

    Runs of earlier versions do not have the setting (None): their models have hardly seen such characters, so they read
    text without them, too.

    Args:
        is_sentencepiece: whether the tokenizer is one of SentencePiece that has its own normalisation.
    """
    return rules.normalize_invisible is not False and not is_sentencepiece


def normalize_invisible(text: str) -> str:
    """Text whose spaces are all U+0020, without the characters that nobody sees.

    Joiners stay in words of the scripts that are spelled with them, and inside emoji; selectors stay behind emoji and in
    Mongolian words.
    """
    return with_plain_spaces(without_invisible(text)) if may_be_invisible(text) else text


def may_be_invisible(text: str) -> bool:
    """Whether the text has a character that `normalize_invisible` looks at; most texts have none."""
    return not text.isascii() and _MAY_BE_INVISIBLE.search(text) is not None


def with_plain_spaces(text: str) -> str:
    """Text with U+0020 in place of every other space; its length is the same."""
    return _OTHER_SPACE.sub(" ", text)


def without_invisible(text: str) -> str:
    """Text without the characters that nobody sees; every space stays as it is."""
    for pattern in _removal_patterns():
        text = pattern.sub("", text)
    return text


@cache
def _removal_patterns() -> tuple[re.Pattern[str], ...]:
    """Compiled at their first use, because most texts need none of them."""
    return tuple(map(re.compile, REMOVALS))


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
