"""Text as a sequence of words, single marks and white space: two texts are compared word by word.

A word is a run of letters, digits and combining marks. In a script without spaces between words, such as Chinese, each
sign is a word.
"""

import re

from tokenizers import Regex, pre_tokenizers

from transformer_cli.text.word_split import UNSPACED_SCRIPTS

# U+200C and U+200D change the shape of letters; they do not separate words.
_IN_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}\u200C\u200D&&[^{UNSPACED_SCRIPTS}]]"
_CUT = pre_tokenizers.Split(
    Regex(rf"{_IN_WORD}+|[{UNSPACED_SCRIPTS}]\p{{M}}*|\s+|[^\s]"), "isolated"
)
_ASCII = re.compile(r"[A-Za-z0-9]+|\s+|[^\s]", re.ASCII)


def word_sequence(text: str) -> list[str]:
    """The words, marks and runs of white space of a text, in order; joined, they are the text."""
    if text.isascii():
        return _ASCII.findall(text)
    return [piece for piece, _ in _CUT.pre_tokenize_str(text)]
