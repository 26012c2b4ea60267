"""BPE-dropout: byte-pair encoding in which each merge is left out at random.

Source: Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization", Algorithm 1.
"""

import math
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from transformer_cli.text.tokenizer_file import TokenizerParts
from transformer_cli.text.tokenizer_layout import BYTE_TOKENS

_NO_MERGE = 1 << 40
_NOTHING = (_NO_MERGE, -1)


class MergeablePiece(NamedTuple):
    """A word before any merge, and its ordinary encoding."""

    symbols: list[int]
    """The ids of its characters."""
    ranks: list[int]
    """For each two neighbours the number of the merge that joins them; `_NO_MERGE` if there is none."""
    ids: list[int]
    """The ids after all merges."""
    kept_probability: float
    """The probability that no merge is left out, so that these are the ids."""


class MergeDropout:
    """Cuts words into subwords by merges, each of which is left out with some probability.

    As long as symbols can be merged, each possible merge of the word is left out with this probability, and
    the best of the others is applied; if all are left out, the word is finished. (The `tokenizers` library sometimes
    tries merges again that it has left out, so it leaves out fewer merges.)

    Args:
        parts: a BPE tokenizer.
        dropout: the probability, 0 to 1; 0 gives the ordinary encoding.
    """

    def __init__(self, parts: TokenizerParts, dropout: float) -> None:
        model: dict[str, Any] = parts.model
        self._vocabulary: dict[str, int] = model["vocab"]
        self._has_byte_fallback = parts.layout.has_byte_fallback
        self._merges = _numbered_merges(self._vocabulary, model["merges"])
        self._keep = 1.0 - dropout
        self._log_dropout = math.log(dropout) if dropout else -math.inf
        self._log_keep = math.log(self._keep) if dropout else 0.0

    def prepare(self, piece: str) -> MergeablePiece:
        """A word in the characters of the vocabulary, ready for `sample`."""
        symbols = [index for character in piece for index in self._ids_of(character)]
        pairs = pairwise(symbols)
        ranks = [self._merges.get(pair, _NOTHING)[0] for pair in pairs]
        ids, left = symbols.copy(), ranks.copy()
        self._merge_best(ids, left, len(symbols))
        num_merges = len(symbols) - len(ids)
        return MergeablePiece(symbols, ranks, ids, self._keep**num_merges)

    def ordinary(self, piece: MergeablePiece) -> list[int]:
        """The ids of a word after all merges."""
        return piece.ids

    def sample(self, piece: MergeablePiece, numbers: Random) -> list[int]:
        """The ids of a word with some merges left out.

        Usually the best merge is kept several times in a row, then left out once. Two numbers are drawn at once: how
        often it is kept, and how many of the next best merges are left out with it.
        """
        chance = 1.0 - numbers.random()  # above 0, at most 1
        if chance <= piece.kept_probability:
            return piece.ids
        symbols, ranks = piece.symbols.copy(), piece.ranks.copy()
        while True:
            self._merge_best(symbols, ranks, int(math.log(chance) / self._log_keep))
            possible = [place for place, rank in enumerate(ranks) if rank != _NO_MERGE]
            num_left_out = 1 + int(math.log(1.0 - numbers.random()) / self._log_dropout)
            if num_left_out >= len(possible):
                return symbols
            possible.sort(key=ranks.__getitem__)
            self._merge_at(possible[num_left_out], symbols, ranks)
            chance = 1.0 - numbers.random()

    def _ids_of(self, character: str) -> list[int]:
        index = self._vocabulary.get(character)
        if index is not None:
            return [index]
        if not self._has_byte_fallback:
            raise KeyError(character)
        return [self._vocabulary[BYTE_TOKENS[byte]] for byte in character.encode()]

    def _merge_best(self, symbols: list[int], ranks: list[int], most: int) -> None:
        """Apply the best merge, then again the best one, at most `most` times."""
        while most and ranks:
            best = min(ranks)
            if best == _NO_MERGE:
                return
            self._merge_at(ranks.index(best), symbols, ranks)
            most -= 1

    def _merge_at(self, place: int, symbols: list[int], ranks: list[int]) -> None:
        merges = self._merges
        _, merged = merges[symbols[place], symbols[place + 1]]
        symbols[place : place + 2] = [merged]
        del ranks[place]
        if place:
            ranks[place - 1] = merges.get((symbols[place - 1], merged), _NOTHING)[0]
        if place < len(ranks):
            ranks[place] = merges.get((merged, symbols[place + 1]), _NOTHING)[0]


def _numbered_merges(
    vocabulary: dict[str, int], merges: list[list[str]]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Map two ids to the number of the merge that joins them, and to the id of the result."""
    return {
        (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
        for rank, (left, right) in enumerate(merges)
    }
