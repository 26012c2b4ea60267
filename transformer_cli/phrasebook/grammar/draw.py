"""Where the choices of a sentence pattern come from: a random number generator, or a search.

A pattern is a function of a `Draw`, and does not know which of the two it gets. It calls `choose`
for grammar (number, person, tense) and `pick` for words: only words are lemmas and are held out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from functools import cache
from random import Random
from typing import Protocol, TypeVar

from transformer_cli.phrasebook.words.english import contracted

HELD_OUT_SHARE = 0.125
# A word chosen from fewer words is never held out: the pattern could not be learnt without it.
MIN_OPEN_CHOICE = 7

T = TypeVar("T")


class Lexeme(Hashable, Protocol):
    """A word: anything that has a lemma."""

    @property
    def lemma(self) -> str: ...


L = TypeVar("L", bound=Lexeme)


class DeadEndError(Exception):
    """The choices made so far cannot become a sentence; the caller starts again."""


class Draw(Protocol):
    """A source of choices."""

    def choose(self, options: Sequence[T]) -> T:
        """One of several grammatical options; an option listed twice is twice as likely."""
        ...

    def pick(self, lexemes: Sequence[L]) -> L:
        """One of several words; its lemma is recorded as a lemma of the sentence."""
        ...

    def expect(self, english: str) -> str:
        """Return an English text that the sentence will contain; a search stops if it is wrong."""
        ...


@cache
def is_held_out(pattern: str, lemma: str) -> bool:
    """Whether no training sentence of this pattern may contain this lemma."""
    digest = hashlib.sha256(f"{pattern}\t{lemma}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


class RandomDraw:
    """Random choices; with `is_training`, `pick` leaves out the words that are held out."""

    def __init__(self, seed: int, *, is_training: bool) -> None:
        self._random = Random(seed).random
        self._is_training = is_training
        self._allowed: dict[tuple[str, int], tuple[object, Sequence[Lexeme]]] = {}
        self._pattern = ""
        self.lemmas: list[str] = []

    def start(self, pattern: str) -> None:
        """Begin a sentence of the pattern."""
        self._pattern = pattern
        self.lemmas = []

    def position(self, size: int) -> int:
        """A number from 0 to size - 1."""
        return int(self._random() * size)

    def choose(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def pick(self, lexemes: Sequence[L]) -> L:
        is_open = len(lexemes) >= MIN_OPEN_CHOICE
        if is_open and self._is_training:
            lexemes = self._in_training(lexemes)
        if not lexemes:
            raise DeadEndError
        lexeme = lexemes[int(self._random() * len(lexemes))]
        if is_open:
            self.lemmas.append(lexeme.lemma)
        return lexeme

    def expect(self, english: str) -> str:
        return english

    def _in_training(self, lexemes: Sequence[L]) -> Sequence[L]:
        key = (self._pattern, id(lexemes))
        if key not in self._allowed:
            allowed = tuple(x for x in lexemes if not is_held_out(self._pattern, x.lemma))
            # Keep the sequence too: while it exists, Python gives its id to no other object.
            self._allowed[key] = (lexemes, allowed)
        return self._allowed[key][1]  # type: ignore[return-value]


class SearchDraw:
    """Tries all combinations of choices that may give a certain English sentence."""

    def __init__(self, english: str) -> None:
        self._english = english.lower()
        self._path: list[list[int]] = []  # per choice: index of the option, number of options
        self._depth = 0
        self.lemmas: list[str] = []

    def start(self) -> None:
        """Begin the sentence again, with the present combination of choices."""
        self._depth = 0
        self.lemmas = []

    def advance(self) -> bool:
        """Move to the next combination of choices; False after the last one."""
        del self._path[self._depth :]
        while self._path and self._path[-1][0] + 1 == self._path[-1][1]:
            self._path.pop()
        if not self._path:
            return False
        self._path[-1][0] += 1
        return True

    def choose(self, options: Sequence[T]) -> T:
        distinct = list(dict.fromkeys(options))
        if not distinct:
            raise DeadEndError
        if self._depth == len(self._path):
            self._path.append([0, len(distinct)])
        option = distinct[self._path[self._depth][0]]
        self._depth += 1
        return option

    def pick(self, lexemes: Sequence[L]) -> L:
        lexeme = self.choose([x for x in lexemes if self._may_occur(x)])
        if len(lexemes) >= MIN_OPEN_CHOICE:
            self.lemmas.append(lexeme.lemma)
        return lexeme

    def expect(self, english: str) -> str:
        is_there = any(x.lower() in self._english for x in (english, contracted(english)))
        if not is_there:
            raise DeadEndError
        return english

    def _may_occur(self, lexeme: Lexeme) -> bool:
        return any(form.lower() in self._english for form in _written_forms(lexeme))


@cache
def _written_forms(lexeme: Hashable) -> tuple[str, ...]:
    """The English forms of a word; long ones lack the last letter, which endings may change."""
    forms: list[str] = []
    for attribute in ("english", "base", "past", "participle", "comparative", "superlative"):
        value = getattr(lexeme, attribute, ())
        forms.extend([value] if isinstance(value, str) else value)
    return tuple(form if len(form) < 4 else form[:-1] for form in forms)
