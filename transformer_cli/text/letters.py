"""Letters, also those that Python does not know as such."""

import unicodedata

# Of a text that Python calls unassigned: a script that is newer than its Unicode, such as Sunuwar and new Chinese characters.
# From U+1F000 on stand new emoji.
_UNASSIGNED = ((0x10000, 0x1EFFF), (0x20000, 0x3FFFD))


def is_letter(sign: str) -> bool:
    """Whether a character is a letter, a pattern of Braille, a sign of SignWriting, or a letter of a script that this Python does not know."""
    return sign.isalpha() or (not sign.isascii() and _is_further_letter(sign))


def is_part_of_word(sign: str) -> bool:
    """Whether a character is a letter, a digit or a mark on one, such as the vowels of Hindi and Thai, and their joiners."""
    return sign.isalnum() or (
        not sign.isascii()
        and (sign in "\u200c\u200d" or unicodedata.category(sign)[0] == "M" or _is_further_letter(sign))
    )


def has_letter(text: str) -> bool:
    """Whether there is anything to translate in a text."""
    return any(map(str.isalpha, text)) or (not text.isascii() and any(map(_is_further_letter, text)))


def has_word(text: str) -> bool:
    """Whether a text has a letter or a digit."""
    return any(map(str.isalnum, text)) or has_letter(text)


def _is_further_letter(sign: str) -> bool:
    # The pattern without dots is the space of Braille.
    if "\u2801" <= sign <= "\u28ff" or "\U0001d800" <= sign <= "\U0001da8b":
        return True
    code = ord(sign)
    return any(first <= code <= last for first, last in _UNASSIGNED) and unicodedata.category(sign) == "Cn"
