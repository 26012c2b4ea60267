"""Word edges: which tokens go on with the word before them, and which end within a word."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer_cli.text.whole_words.word_sequence import is_in_word


@dataclass(frozen=True, slots=True)
class WordEdges:
    """The first and the last character of each token of a vocabulary."""

    goes_on: NDArray[np.bool_]
    """(V,): whether the token begins inside a word: with a letter, a digit or a combining mark, without a space."""
    ends_in_word: NDArray[np.bool_]
    """(V,): whether the token ends with such a character, so that the next token can go on with the word."""

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> "WordEdges":
        """The edges of the tokens.

        Args:
            pieces: the bytes of each token; empty for a special token, which never belongs to a word. An incomplete
                character counts as a letter.
        """
        texts = [piece.decode("utf-8", errors="replace") for piece in pieces]
        first = [text[:1] in _INCOMPLETE or is_in_word(text[:1]) for text in texts]
        last = [text[-1:] in _INCOMPLETE or is_in_word(text[-1:]) for text in texts]
        is_empty = np.array([not text for text in texts], dtype=np.bool_)
        return cls(np.array(first) & ~is_empty, np.array(last) & ~is_empty)

    @classmethod
    def none(cls, vocab_size: int) -> "WordEdges":
        """For a vocabulary in which every token is a whole word or a mark."""
        return cls(np.zeros(vocab_size, dtype=np.bool_), np.zeros(vocab_size, dtype=np.bool_))


_INCOMPLETE = ("\ufffd",)
