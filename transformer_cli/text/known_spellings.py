"""Known spellings: a word that is not in the vocabulary, read as one that differs only in case, accents or marks."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property

from transformer_cli.text.tokenizer import Tokenizer

# Typographic marks, and how they are typed on a keyboard.
_TYPED_MARKS = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u00ab": '"',
    "\u00bb": '"',
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\u2026": "...",
}
_APOSTROPHES = str.maketrans({"'": "\u2019", "\u2019": "'"})
_SEVERAL_SPACES = re.compile(r"(?<=\S)\s{2,}(?=\S)")


class KnownSpellings:
    """The spellings of a vocabulary of words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """
        Args:
            tokenizer: of the source. One of subwords knows every spelling, so its texts do not change.
        """
        self._tokenizer = tokenizer
        self._is_of_words = tokenizer.parts.layout.kind == "WordLevel"

    def respelled(self, text: str) -> str:
        """The text with several spaces as one, and with unknown words in a spelling that the vocabulary has.

        Words that are known, or that are unknown in every spelling, do not change.
        """
        text = _SEVERAL_SPACES.sub(" ", text)
        if not self._is_of_words or self._knows(text):
            return text
        pieces: list[str] = []
        place, is_first = 0, True
        for spelled in self._tokenizer.words(text):
            word = spelled.strip()
            start = text.find(word, place)
            if not word or start < 0:
                continue
            pieces += [text[place:start], self._known(word, is_first=is_first)]
            place = start + len(word)
            is_first = is_first and not word[0].isalnum()
        return "".join([*pieces, text[place:]])

    def _known(self, word: str, *, is_first: bool) -> str:
        if self._knows_word(word):
            return word
        return next(filter(self._knows_word, self._spellings(word, is_first=is_first)), word)

    def _spellings(self, word: str, *, is_first: bool) -> Iterator[str]:
        """Other spellings of a word or mark, the most similar first."""
        capitalised, small = word.capitalize(), word.lower()
        in_other_cases = [capitalised, small] if is_first else [small, capitalised]
        for spelling in [word, *in_other_cases]:
            yield spelling
            yield spelling.translate(_APOSTROPHES)
        if word in _TYPED_MARKS:
            yield _TYPED_MARKS[word]
        for spelling in [word, *in_other_cases]:
            yield self._with_accents.get(_without_accents(spelling), spelling)

    def _knows(self, text: str) -> bool:
        return self._tokenizer.unk_id not in self._tokenizer.encode(text)

    def _knows_word(self, word: str) -> bool:
        # An elided word such as dov' is one word only in a text where a letter follows, so it is looked up.
        return word in self._words or self._knows(word)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(map(str.strip, self._tokenizer.entries))

    @cached_property
    def _with_accents(self) -> dict[str, str]:
        """For each word of the vocabulary without its accents, the word; of several, the most frequent one."""
        words: dict[str, str] = {}
        for entry in self._tokenizer.entries[len(self._tokenizer.special_tokens) :]:
            word = entry.strip()
            words.setdefault(_without_accents(word), word)
        return words


def _without_accents(word: str) -> str:
    decomposed = unicodedata.normalize("NFD", word)
    letters = (sign for sign in decomposed if not unicodedata.combining(sign))
    return unicodedata.normalize("NFC", "".join(letters)).translate(_APOSTROPHES)
