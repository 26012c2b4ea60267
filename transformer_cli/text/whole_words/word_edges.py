"""Word edges: which tokens go on with the word before them, and which end within a word."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer_cli.text.word_split import continues_word

# The first or last character of a token that has only some bytes of it.
_INCOMPLETE = "\ufffd"


@dataclass(frozen=True, slots=True)
class WordEdges:
    """Whether the first and the last character of each token belong to a word that other tokens may go on with."""

    goes_on: NDArray[np.bool_]
    """(V,): whether the token begins inside a word: with a letter, a digit or a combining mark, without a space."""
    ends_in_word: NDArray[np.bool_]
    """(V,): whether the token ends with such a character, so that the next token can go on with the word."""

    @classmethod
    def of(cls, pieces: Sequence[bytes], *, has_spaced_words: bool = False) -> "WordEdges":
        """The edges of the tokens.

        Args:
            pieces: the bytes of each token; empty for a special token, which never belongs to a word. An incomplete
                character counts as a letter.
            has_spaced_words: as in `SplitPatterns.of`.
        """
        texts = [piece.decode("utf-8", errors="replace") for piece in pieces]
        edges = [
            [
                character == _INCOMPLETE
                or continues_word(character, has_spaced_words=has_spaced_words)
                for character in (text[:1], text[-1:])
            ]
            for text in texts
        ]
        both = np.array(edges, dtype=np.bool_).reshape(-1, 2)
        return cls(both[:, 0].copy(), both[:, 1].copy())

    @classmethod
    def none(cls, vocab_size: int) -> "WordEdges":
        """For a vocabulary in which every token is a whole word or a mark."""
        return cls(np.zeros(vocab_size, dtype=np.bool_), np.zeros(vocab_size, dtype=np.bool_))
