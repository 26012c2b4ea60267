"""Other token ids for the same text: its words are cut into subwords at random.

The ids determine the text, so the text itself is not needed. They are divided into parts before each space. A table
maps each part to its words and punctuation marks; only a part that is not in the table is decoded and split.
"""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer_cli.text import tokenizer_file
from transformer_cli.text.tokenizer import Tokenizer

MAX_KNOWN_PARTS = 100_000
_APOSTROPHES = ("'", "\u2019")


class PieceSampler(Protocol):
    """A way to cut one word into subwords at random."""

    def prepare(self, piece: str) -> Any:
        """A word in the characters of the vocabulary, in the form that the other methods take."""

    def ordinary(self, piece: Any) -> list[int]:
        """The ids of the word without sampling, as the tokenizer gives them."""

    def sample(self, piece: Any, numbers: Random) -> list[int]:
        """The ids of one segmentation of the word; the caller must not change the list."""


class _Part(NamedTuple):
    """The text from one space to the next."""

    fixed_ids: list[int]
    """The ids of a part that is never sampled, such as [EOS]; else empty."""
    pieces: list[Any]
    """Its words and marks."""
    pieces_before_word: list[Any]
    """The same if a word follows; they differ where the part ends with an apostrophe."""
    is_word: bool
    """Whether it begins with a space and a letter."""


class WordSampler:
    """Cuts the words of encoded texts into subwords at random.

    Args:
        tokenizer: of subwords; it encoded the texts.
        sampler: cuts one word.
    """

    def __init__(self, tokenizer: Tokenizer, sampler: PieceSampler) -> None:
        layout = tokenizer.parts.layout
        engine = tokenizer_file.build(tokenizer.parts)
        pieces = [engine.id_to_token(index) or "" for index in range(tokenizer.vocab_size)]
        self._bytes = [layout.bytes_of(piece) for piece in pieces]
        self._begins_part = np.array([text.startswith(b" ") for text in self._bytes])
        self._num_special = len(tokenizer.special_tokens)
        self._begins_part[: self._num_special] = True
        assert engine.pre_tokenizer is not None
        self._splitter = engine.pre_tokenizer
        self._sampler = sampler
        self._known: dict[bytes, _Part] = {}

    def sample(
        self, ids: Sequence[int] | NDArray[np.integer[Any]], numbers: Random
    ) -> NDArray[np.uint32]:
        """Other ids of the same text; special tokens, such as [EOS], stay where they are.

        Args:
            ids: of one text, as the tokenizer encodes it.
            numbers: the same random numbers give the same ids.
        """
        parts = self._parts(np.asarray(ids, np.uint32))
        sample, found = self._sampler.sample, list[int]()
        for place, part in enumerate(parts):
            pieces = part.pieces
            if part.pieces_before_word is not pieces and _has_word(parts, place + 1):
                pieces = part.pieces_before_word
            found += part.fixed_ids
            for piece in pieces:
                found += sample(piece, numbers)
        return np.array(found, np.uint32)

    def _parts(self, ids: NDArray[np.uint32]) -> list[_Part]:
        begins_part = self._begins_part[ids]
        begins_part[1:] |= ids[:-1] < self._num_special  # the first word follows a tag
        begins_part[:1] = True
        starts = np.flatnonzero(begins_part).tolist()
        data, size = ids.tobytes(), ids.itemsize
        bounds = [start * size for start in (*starts, len(ids))]
        known = self._known
        keys = [data[start:end] for start, end in pairwise(bounds)]
        return [known.get(key) or self._learn(key) for key in keys]

    def _learn(self, key: bytes) -> _Part:
        part = self._part_of(np.frombuffer(key, np.uint32).tolist())
        if len(self._known) >= MAX_KNOWN_PARTS:
            self._known.clear()
        self._known[key] = part
        return part

    def _part_of(self, ids: list[int]) -> _Part:
        fixed = _Part(ids, [], [], is_word=False)
        if any(index < self._num_special for index in ids):
            return fixed
        try:
            text = b"".join(self._bytes[index] for index in ids).decode()
        except UnicodeDecodeError:
            return fixed
        pieces = self._pieces(text)
        before_word = self._pieces(f"{text} a")[:-1] if text.endswith(_APOSTROPHES) else pieces
        # Entries that were added to a vocabulary by hand cannot be found by merges or scores.
        if ids not in (self._ordinary(pieces), self._ordinary(before_word)):
            return fixed
        # An apostrophe belongs to the word before it if a space and a letter follow.
        is_word = self._split(f"a'{text}")[0] == "a'"
        return _Part([], pieces, before_word, is_word)

    def _split(self, text: str) -> list[str]:
        return [piece for piece, _ in self._splitter.pre_tokenize_str(text)]

    def _pieces(self, text: str) -> list[Any]:
        return [self._sampler.prepare(piece) for piece in self._split(text)]

    def _ordinary(self, pieces: list[Any]) -> list[int]:
        return [index for piece in pieces for index in self._sampler.ordinary(piece)]


def _has_word(parts: list[_Part], place: int) -> bool:
    return place < len(parts) and parts[place].is_word
