"""Encoded pairs in memory, in place of an `EncodedCorpus`."""

from collections.abc import Iterable

import numpy as np

from transformer_cli.data.encoded import EncodedCorpus, TokenPair
from transformer_cli.data.order import Indices
from transformer_cli.text.token_ids import Padded, pad_ids


class PairList(EncodedCorpus):
    """Pairs of one corpus."""

    def __init__(self, pairs: Iterable[TokenPair]) -> None:
        self._pairs = list(pairs)
        lengths = [(len(source), len(target)) for source, target in self._pairs]
        self._lengths = np.array(lengths, np.int64).reshape(-1, 2)
        self.corpus_sizes = [len(self._pairs)]

    def __getitem__(self, index: int) -> TokenPair:
        return self._pairs[index]

    def lengths(self, indices: Indices) -> tuple[Indices, Indices]:
        return self._lengths[indices, 0], self._lengths[indices, 1]

    def padded(self, indices: Indices, pad_id: int) -> tuple[Padded, Padded]:
        pairs = [self._pairs[index] for index in indices.tolist()]
        source, target = (pad_ids([pair[side] for pair in pairs], pad_id) for side in (0, 1))
        return source, target

    def links(self, indices: Indices) -> None:
        return None
