"""Texts that are nearly equal: they differ in case, punctuation or white space, or in a few words."""

import re
import unicodedata
from hashlib import blake2b

_OTHER = re.compile(r"[\W_]+")
_MIN_WORDS = 4
_MIN_COMMON_SHARE = 0.8


def plain_form(text: str) -> str:
    """The letters and digits of a text in lower case, in Unicode NFKC, with one space between words."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _OTHER.sub(" ", text.casefold()).strip()


def plain_digest(*forms: str) -> bytes:
    """A hash of 16 bytes of one or more plain forms."""
    return blake2b("\n".join(forms).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def is_nearly_untranslated(source: str, target: str) -> bool:
    """Whether most words of two plain forms are the same; numbers and codes do not count, and few words never do.

    Args:
        source: the plain form of the source.
        target: the plain form of the target.
    """
    sides = [[word for word in text.split() if word.isalpha()] for text in (source, target)]
    if min(map(len, sides)) < _MIN_WORDS:
        return False
    words = set(sides[0]), set(sides[1])
    return len(words[0] & words[1]) >= _MIN_COMMON_SHARE * max(map(len, words))
