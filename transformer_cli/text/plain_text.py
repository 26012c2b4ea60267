"""Plain text: words of Latin letters and ordinary marks between them, nothing else.

Most sentences are plain. One cheap question then answers many costly ones: plain text has no protected span, no number, no bracket,
no quotation mark, no ellipsis, no list mark and no column.
"""

import re

# Without the multiplication and division signs, and without letters whose folded case has a sign that is no letter.
# Capital letters with accents are among them, because no span has one as its sign.
_SMALL = "a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u012f\u0131-\u0148\u014a-\u017e"
_PLAIN = re.compile(
    # A capital letter begins a word and small ones follow, unlike in GitHub; a text in capitals is not plain. A single letter
    # before a full stop or a hyphen may be an abbreviation, or stand for itself, as in a-z; behind a hyphen it may be a key.
    rf"(?:[A-Z]?+[{_SMALL}]*+(?<=[^\W\d_])(?:[ ']|, |(?<=\w\w)(?:-(?![A-Z]|[a-z]\b)|[.!?] )))*+[A-Z]?[{_SMALL}]++(?:(?<=\w\w)[.!?])?\Z"
)


def is_plain(text: str) -> bool:
    """Whether a text has only words of Latin letters, with a space, a comma, a hyphen, an apostrophe or the end of a sentence between two of them."""
    return _PLAIN.match(text) is not None


def plain_words(text: str) -> list[str]:
    """The words of a plain text, also of one whose case is folded: its sequences of letters."""
    for mark in ",'-.!?":
        text = text.replace(mark, " ")
    return text.split()
