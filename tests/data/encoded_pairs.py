"""Pairs of token ids, as tests write them."""

from collections.abc import Sequence

import numpy as np

from transformer_cli.data.encoded import EncodedPairs, TokenPair
from transformer_cli.text.token_ids import IdLists


def encoded_pairs(pairs: Sequence[TokenPair], corpora: Sequence[int]) -> EncodedPairs:
    """Single pairs together, with the number of the corpus of each."""
    source, target = (IdLists.of([pair[side] for pair in pairs]) for side in (0, 1))
    return EncodedPairs(source, target, np.array(corpora, np.uint16))
