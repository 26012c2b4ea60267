"""What the bytes of tokens mean: which token may follow which, and where words begin and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.text.words import continues_word

BETWEEN_CHARACTERS = 0
FORBIDDEN = -1


class _Range(NamedTuple):
    """Bytes that a state allows, both ends included, and the state after them."""

    first: int
    last: int
    next_state: int


# States 1 to 3 require 1 to 3 continuation bytes. In states 4 to 7 the first of them has a narrower range, which
# rules out overlong forms, surrogates, and code points above U+10FFFF.
_STATES: tuple[tuple[_Range, ...], ...] = (
    (
        _Range(0x00, 0x7F, 0),
        _Range(0xC2, 0xDF, 1),
        _Range(0xE0, 0xE0, 4),
        _Range(0xE1, 0xEC, 2),
        _Range(0xED, 0xED, 5),
        _Range(0xEE, 0xEF, 2),
        _Range(0xF0, 0xF0, 6),
        _Range(0xF1, 0xF3, 3),
        _Range(0xF4, 0xF4, 7),
    ),
    (_Range(0x80, 0xBF, 0),),
    (_Range(0x80, 0xBF, 1),),
    (_Range(0x80, 0xBF, 2),),
    (_Range(0xA0, 0xBF, 1),),
    (_Range(0x80, 0x9F, 1),),
    (_Range(0x90, 0xBF, 2),),
    (_Range(0x80, 0x8F, 2),),
)
_NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class BytePieces:
    """The tokens of a vocabulary as steps between states.

    The bytes of all tokens together are UTF-8. A state is what the bytes so far require of the next byte (RFC 3629, section 4):
    nothing, because a character has just ended, or one of several ranges of continuation bytes. Each token leads from a state
    to another, or is not allowed in it.
    """

    next_states: NDArray[np.int64]
    """(states, V): the state after a token, or -1 if the token is not allowed."""
    is_allowed: NDArray[np.bool_]
    """(states, limits, V): whether a token is allowed if at most `limit` tokens may follow it. The last limit stands
    for all larger ones."""

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> "BytePieces | None":
        """The steps of the tokens, or None if each token consists of whole characters.

        Args:
            pieces: the bytes of each token; empty for a special token, which may stand between characters only.
        """
        first_row = [_after(piece, BETWEEN_CHARACTERS) for piece in pieces]
        if not any(first_row):
            return None
        others = [[_after(piece, state) for piece in pieces] for state in range(1, len(_STATES))]
        next_states = np.array([first_row, *others], dtype=np.int64)
        to_end = _tokens_to_end(next_states)
        limits = np.arange(1 + to_end[to_end < _NEVER].max())
        after = np.where(next_states == FORBIDDEN, _NEVER, to_end[next_states])  # (states, V)
        return cls(next_states, after[:, None, :] <= limits[:, None])


def _after(piece: bytes, state: int) -> int:
    """The state after the bytes of a token."""
    if not piece or piece.isascii():
        return state if state == BETWEEN_CHARACTERS else FORBIDDEN
    for byte in piece:
        fitting = (entry for entry in _STATES[state] if entry.first <= byte <= entry.last)
        entry = next(fitting, None)
        if entry is None:
            return FORBIDDEN
        state = entry.next_state
    return state


def _tokens_to_end(next_states: NDArray[np.int64]) -> NDArray[np.int64]:
    """(states,): the smallest number of tokens that end the character in each state."""
    lengths = np.full(len(_STATES), _NEVER, dtype=np.int64)
    lengths[BETWEEN_CHARACTERS] = 0
    for _ in _STATES:  # a shortest path visits no state twice
        after = np.where(next_states == FORBIDDEN, _NEVER, lengths[next_states])
        lengths[1:] = np.minimum(lengths, after.min(axis=1) + 1)[1:]
    return lengths


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
