"""The form of a sentence: its capital letter and full stop, which a model adds to texts that are no sentences."""

import re

# With the full stops, question marks and exclamation marks of Chinese and Japanese.
_SENTENCE_ENDS = tuple(".!?\u2026\u3002\uff01\uff1f")
_FULL_STOPS = tuple(".\u3002")
_CLOSING = "\"')]\u2019\u201d\u00bb"
_FIRST_WORD = re.compile(r"[^\W\d_]+")
# Capital letters of nouns belong to the spelling of these languages.
_LANGUAGES_WITH_CAPITAL_NOUNS = ("de", "lb")


def ends_sentence(text: str) -> bool:
    """Whether a text ends with a full stop, question mark or exclamation mark; quotes and brackets may follow it."""
    return text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)


def without_added_stop(translation: str, source: str) -> str:
    """The translation without a full stop at its end if the source, such as a heading, does not end a sentence."""
    is_ellipsis = translation.endswith(("..", "\u2026"))
    if ends_sentence(source) or is_ellipsis or not translation.endswith(_FULL_STOPS):
        return translation
    return translation[:-1].rstrip()


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
