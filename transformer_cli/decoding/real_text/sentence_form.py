"""The form of a sentence: its capital letter and full stop, which a model adds to texts that are no sentences."""

import re

# With the full stops, question marks and exclamation marks of Chinese and Japanese.
_SENTENCE_ENDS = tuple(".!?\u2026\u3002\uff01\uff1f")
_FULL_STOPS = tuple(".\u3002")
_CLOSING = "\"')]\u2019\u201d\u00bb"
_PAUSES = frozenset(",;:")
_WIDE_PAUSES = frozenset("\u3001\uff0c\uff1a\uff1b")
_FEWEST_CAPITAL_WORDS = 3
_FIRST_WORD = re.compile(r"[^\W\d_]+")
# Capital letters of nouns belong to the spelling of these languages.
_LANGUAGES_WITH_CAPITAL_NOUNS = ("de", "lb")


def ends_sentence(text: str) -> bool:
    """Whether a text ends with a full stop, question mark or exclamation mark; quotes and brackets may follow it."""
    return text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)


def closing_mark(text: str) -> str:
    """The full stop, question mark or exclamation mark that ends a text; a full stop for an ellipsis; else nothing."""
    last = text.rstrip(_CLOSING)[-1:]
    if last == "\u2026":
        return "."
    return last if last in _SENTENCE_ENDS else ""


def without_closing_mark(text: str) -> str:
    """A text without the marks that end a sentence, if other words follow it."""
    return text.rstrip("".join(_SENTENCE_ENDS)).rstrip()


def with_final_mark_of(translation: str, source: str) -> str:
    """The translation with the end of its source, if that ends no sentence.

    A model adds a full stop to a heading or a cell of a table, and loses the comma of "Dear Anna," or the colon of a
    title: the full stop is taken away, and the comma or colon is put back.
    """
    is_ellipsis = translation.endswith(("..", "\u2026"))
    if not translation or not source or ends_sentence(source) or is_ellipsis:
        return translation
    if source[-1] in _PAUSES:
        if translation[-1] in _WIDE_PAUSES:
            return translation
        return translation.rstrip("".join({*_PAUSES, *_SENTENCE_ENDS})) + source[-1]
    return translation[:-1].rstrip() if translation.endswith(_FULL_STOPS) else translation


def is_in_capitals(text: str) -> bool:
    """Whether a text of several words has capital letters only; two words may be abbreviations, such as EU GDP."""
    num_words = sum(len(word) > 1 for word in _FIRST_WORD.findall(text))
    return text.isupper() and num_words >= _FEWEST_CAPITAL_WORDS


def in_sentence_case(text: str) -> str:
    """A text in small letters, whose first letter is a capital."""
    small = text.lower()
    first = next((place for place, sign in enumerate(small) if sign.isalpha()), 0)
    return small[:first] + small[first : first + 1].upper() + small[first + 1 :]


def as_inner_part(translation: str, source: str, *, target_language: str) -> str:
    """The translation of words within a sentence, without the capital letter that begins a sentence.

    Args:
        translation: of the words.
        source: the words. If they begin with a capital letter, nothing changes.
        target_language: such as de, whose nouns keep their capital letters.
    """
    first = _FIRST_WORD.match(translation)
    is_capitalised = first is not None and first[0].istitle() and first[0] not in source
    if is_capitalised and source[0].islower() and target_language not in _LANGUAGES_WITH_CAPITAL_NOUNS:  # fmt: skip
        return translation[0].lower() + translation[1:]
    return translation
