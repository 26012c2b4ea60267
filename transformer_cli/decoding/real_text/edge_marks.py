"""Edge marks: marks at the ends of a text that are not in the vocabulary, such as quotation marks."""

from collections.abc import Callable
from unicodedata import category

_SENTENCE_ENDS = ".!?\u2026"
_PAIRS = ("()", "[]", "{}", "\u201c\u201d", "\u201e\u201c", "\u2018\u2019", "\u00ab\u00bb", '""')


def range_without_unknown_marks(
    text: str, knows: Callable[[str], bool], *, begins_with_words: bool = False
) -> tuple[int, int]:
    """The start and the end of a text without the marks and white space at its edges that a model does not know.

    These marks stay as they are, instead of becoming [UNK]. A mark stays inside if it belongs to one inside: the
    closing bracket of "we go (perhaps)" does. The mark that ends a sentence stays inside, too.

    Args:
        text: a text with at least one letter.
        knows: whether the model knows a mark.
        begins_with_words: whether marks that end sentences are left out at the beginning, as in "...and we go": a model
            takes them for the end of the sentence, and loses what follows.
    """

    def is_outside(mark: str) -> bool:
        is_mark = category(mark)[0] not in "LMN" and mark not in _SENTENCE_ENDS
        return is_mark and (mark.isspace() or not knows(mark))

    start, end = 0, len(text)
    while is_outside(text[start]) or (begins_with_words and text[start] in _SENTENCE_ENDS):
        start += 1
    while is_outside(text[end - 1]):
        end -= 1
    is_whole = all(_is_balanced(text[start:end], *pair) for pair in _PAIRS)
    return (start, end) if is_whole else (0, len(text))


def _is_balanced(text: str, opening: str, closing: str) -> bool:
    if opening == closing:
        return text.count(opening) % 2 == 0
    return text.count(opening) == text.count(closing)
