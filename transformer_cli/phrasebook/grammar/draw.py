"""How a pattern makes its choices: at random, or all of them in turn.

A pattern is a function of a `Draw`; it never sees where the choices come from. `choose` is for
grammar (number, person, tense), `pick` for words: only words are counted as lemmas and held out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from functools import cache
from random import Random
from typing import Protocol, TypeVar

from transformer_cli.phrasebook.words.english import contracted

HELD_OUT_SHARE = 0.125
# A word chosen from fewer belongs to its pattern: were it held out, the pattern could not be learnt.
MIN_OPEN_CHOICE = 7

T = TypeVar("T")


class Lexeme(Hashable, Protocol):
    """Anything that has a lemma."""

    @property
    def lemma(self) -> str: ...


L = TypeVar("L", bound=Lexeme)


class DeadEndError(Exception):
    """The choices made so far lead to no sentence."""


class Draw(Protocol):
    """A source of choices."""

    def choose(self, options: Sequence[T]) -> T:
        """One of several turns of grammar; repeat an option to make it likelier."""
        ...

    def pick(self, lexemes: Sequence[L]) -> L:
        """One word, which the sentence then counts among its lemmas."""
        ...

    def expect(self, english: str) -> str:
        """Announce that the sentence will contain a piece of text, and return it."""
        ...


@cache
def is_held_out(pattern: str, lemma: str) -> bool:
    """Whether sentences of the pattern with the lemma are kept out of training."""
    digest = hashlib.sha256(f"{pattern}\t{lemma}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


class RandomDraw:
    """Choices at random; with `is_training`, among words that are not held out."""

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
            # The sequence is kept beside the result, so that its id is not given to another one.
            self._allowed[key] = (lexemes, allowed)
        return self._allowed[key][1]  # type: ignore[return-value]


class SearchDraw:
    """Every choice in turn, without those that cannot lead to a given English sentence."""

    def __init__(self, english: str) -> None:
        self._english = english.lower()
        self._path: list[list[int]] = []  # per choice: the option taken, how many there are
        self._depth = 0
        self.lemmas: list[str] = []

    def start(self) -> None:
        """Begin the sentence anew, along the choices fixed so far."""
        self._depth = 0
        self.lemmas = []

    def advance(self) -> bool:
        """Move on to the next combination of choices; False when all have been seen."""
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
    """Beginnings of the English forms of a word: enough to rule most words out."""
    forms: list[str] = []
    for attribute in ("english", "base", "past", "participle", "comparative", "superlative"):
        value = getattr(lexeme, attribute, ())
        forms.extend([value] if isinstance(value, str) else value)
    return tuple(form if len(form) < 4 else form[:-1] for form in forms)
