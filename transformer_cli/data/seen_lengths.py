"""The lengths of the training pairs, which a checkpoint records: a translation of longer texts loses some of them."""

import numpy as np

from transformer_cli.config import Config, SequencesData
from transformer_cli.data.batches.encoded import EncodedCorpus
from transformer_cli.text.seen_lengths import FEWEST_TOKENS, SeenLengths

MOST_PAIRS = 1_000_000
"""Of a larger corpus, so many pairs are measured, evenly spread."""
_RARE = 0.01


def lengths_seen_in(train: EncodedCorpus, config: Config) -> SeenLengths:
    """The quantiles of the lengths of a corpus; not known for the sequences of a task, which are no text."""
    if isinstance(config.data, SequencesData) or not len(train):
        return SeenLengths()
    step = -(-len(train) // MOST_PAIRS)
    sources, targets = train.lengths(np.arange(0, len(train), step))
    is_long = sources >= FEWEST_TOKENS
    ratio = None
    if is_long.any():
        ratios = targets[is_long] / sources[is_long]
        ratio = round(float(np.quantile(ratios, _RARE, method="lower")), 4)
    # The length of a real sentence, not a value between two.
    return SeenLengths(int(np.quantile(sources, 1 - _RARE, method="higher")), ratio)
