"""Sentence pairs as token ids: in a list, or in a memory-mapped Arrow file."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.order import Indices
from transformer_cli.data.tokenizer import Tokenizer


class TokenPair(NamedTuple):
    """One pair; both sides end with [EOS], unless the data has no end symbol."""

    source_ids: Sequence[int] | NDArray[np.integer]
    target_ids: Sequence[int] | NDArray[np.integer]


class TextPair(Protocol):
    """What can be encoded."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...


class EncodedPairs(Protocol):
    """Pairs that batches are made of."""

    @property
    def corpus_sizes(self) -> Sequence[int]:
        """Pairs of each corpus, which stand one after the other."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> TokenPair: ...
    def lengths(self, indices: Indices, /) -> tuple[Indices, Indices]:
        """Tokens of the sources and of the targets of some pairs."""


class PairList:
    """Pairs in memory, all of one corpus."""

    def __init__(self, pairs: Iterable[TokenPair]) -> None:
        self._pairs = list(pairs)
        self._lengths = np.array([(len(s), len(t)) for s, t in self._pairs], np.int64).reshape(
            -1, 2
        )

    @property
    def corpus_sizes(self) -> Sequence[int]:
        return (len(self._pairs),)

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int) -> TokenPair:
        return self._pairs[index]

    def lengths(self, indices: Indices) -> tuple[Indices, Indices]:
        """Tokens of the sources and of the targets of some pairs."""
        return self._lengths[indices, 0], self._lengths[indices, 1]


def encode_pairs(
    pairs: Sequence[TextPair],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    *,
    end_symbol: bool,
) -> list[TokenPair]:
    """The ids of each pair, in the same order."""
    source_end = [source_tokenizer.eos_id] if end_symbol else []
    target_end = [target_tokenizer.eos_id] if end_symbol else []
    sources = source_tokenizer.encode_batch([pair.source for pair in pairs])
    targets = target_tokenizer.encode_batch([pair.target for pair in pairs])
    return [
        TokenPair(source + source_end, target + target_end)
        for source, target in zip(sources, targets, strict=True)
    ]
