"""Which split a pair belongs to, where its corpus does not say: drawn by a hash of the pair."""

from transformer_cli.config.data import SplitName
from transformer_cli.data.pairs import SentencePair, pair_digest


def draw_split(pair: SentencePair, *, validation_share: float, test_share: float) -> SplitName:
    """The split of a pair: a function of its text, so that adding data moves no pair.

    Equal pairs fall into the same split. Test pairs are taken from one end and validation pairs
    from the other, so that changing one share moves no pair of the other split.
    """
    position = int.from_bytes(pair_digest(pair)[:8], "big") / 2**64
    if position < test_share:
        return "test"
    return "validation" if position >= 1.0 - validation_share else "train"
