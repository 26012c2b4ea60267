"""Text as a sequence of words, single marks and white space: two texts are compared word by word.

A word is a run of letters, digits and combining marks. In a script without spaces between words, such as Chinese, each
sign is a word.
"""

from functools import cache

from tokenizers import Regex, pre_tokenizers

from transformer_cli.text.word_split import UNSPACED_SCRIPTS

# U+200C and U+200D change the shape of letters; they do not separate words.
_IN_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}\u200C\u200D&&[^{UNSPACED_SCRIPTS}]]"
_CUT = pre_tokenizers.Split(
    Regex(rf"{_IN_WORD}+|[{UNSPACED_SCRIPTS}]\p{{M}}*|\s+|[^\s]"), "isolated"
)


def word_sequence(text: str) -> list[str]:
    """The words, marks and runs of white space of a text, in order; joined, they are the text."""
    return [piece for piece, _ in _CUT.pre_tokenize_str(text)]


@cache
def is_in_word(character: str) -> bool:
    """Whether a character goes on with the word before it; False for the empty string."""
    return character != "" and len(word_sequence(f"a{character}")) == 1
