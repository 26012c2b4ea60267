"""Drawing splits: a hash of a pair decides its split if its corpus does not."""

from transformer_cli.config.data import SplitName
from transformer_cli.data.pairs import SentencePair, pair_digest


def draw_split(pair: SentencePair, *, validation_share: float, test_share: float) -> SplitName:
    """The split of a pair, from a hash of its text; adding pairs to a corpus moves no other pair.

    Equal pairs get the same split. The smallest hashes go to test and the largest to validation, so
    changing the share of one moves no pair into or out of the other.
    """
    position = int.from_bytes(pair_digest(pair)[:8], "big") / 2**64
    if position < test_share:
        return "test"
    return "validation" if position >= 1.0 - validation_share else "train"
