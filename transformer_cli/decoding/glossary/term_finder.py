"""Finds the source terms of a glossary in a sentence: the longest term first, from left to right."""

from collections.abc import Iterable
from typing import NamedTuple

from transformer_cli.decoding.glossary.entries import GlossaryEntry
from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.text.whole_words import word_sequence

Words = tuple[str, ...]
_SHOWN_CHARACTERS = 60


class FoundTerm(NamedTuple):
    """A source term in a sentence."""

    text: str
    """As it stands in the sentence."""
    entry: GlossaryEntry


class TermFinder:
    """Dictionaries of the source terms, by their words.

    A sentence is looked up word by word, so that the time does not depend on the number of terms.
    """

    def __init__(self, entries: Iterable[GlossaryEntry]) -> None:
        """
        Args:
            entries: with normalised terms.

        Raises:
            DataError: a term stands there twice, with different target terms.
        """
        self._exact: dict[Words, GlossaryEntry] = {}
        self._in_any_case: dict[Words, GlossaryEntry] = {}
        # The numbers of words of all terms with this first word, the largest first.
        self._lengths: dict[str, list[int]] = {}
        for entry in entries:
            words = _with_single_spaces(word_sequence(entry.source))
            folded = _folded(words)
            if entry.keeps_case:
                _add(entry, words, self._exact)
            else:
                _add(entry, folded, self._in_any_case)
            lengths = self._lengths.setdefault(folded[0], [])
            if len(words) not in lengths:
                lengths.append(len(words))
                lengths.sort(reverse=True)

    def find(self, text: str) -> list[FoundTerm]:
        """The terms of a normalised sentence, in order; no word belongs to two of them."""
        pieces = word_sequence(text)
        words = _with_single_spaces(pieces)
        folded = _folded(words)
        found: list[FoundTerm] = []
        place = 0
        while place < len(words):
            for length in self._lengths.get(folded[place], ()):
                end = place + length
                entry = self._exact.get(words[place:end]) or self._in_any_case.get(
                    folded[place:end]
                )
                if entry is not None:
                    found.append(FoundTerm("".join(pieces[place:end]), entry))
                    place = end - 1
                    break
            place += 1
        return found


def _with_single_spaces(pieces: list[str]) -> Words:
    return tuple(" " if piece.isspace() else piece for piece in pieces)


def _folded(words: Words) -> Words:
    """The words without capital letters."""
    return tuple(map(str.casefold, words))


def _add(entry: GlossaryEntry, words: Words, entries: dict[Words, GlossaryEntry]) -> None:
    other = entries.setdefault(words, entry)
    if other.forms != entry.forms:
        term, one, two = (
            on_one_line(text, _SHOWN_CHARACTERS)
            for text in (entry.source, entry.target, other.target)
        )
        raise DataError(
            f"{entry.place or 'the glossary'}: {term} stands for {one}, but "
            f"{f'at {other.place} ' if other.place else ''}for {two}",
            hint="keep one of the two; the column case tells Turkey from turkey",
        )
