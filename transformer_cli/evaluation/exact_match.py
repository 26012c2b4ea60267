"""How many sequences of a synthetic task come out exactly right, by their length."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_cli.config import SequencesData
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.sources.sequences import sequences_of_length
from transformer_cli.decoding.translator import Translator


class ExactMatch(NamedTuple):
    """What came out for the sources of one length."""

    length: int
    """Symbols of the source."""
    num_sequences: int
    exact: float
    """Percentage of sequences that are right from the first symbol to the last."""
    symbols: float
    """Percentage of the target's symbols that stand in their place."""


def exact_match_by_length(
    translator: Translator, data: SequencesData, lengths: Sequence[int] | None, *, seed: int
) -> list[ExactMatch]:
    """One row for each length, over sequences that were not trained on.

    Args:
        translator: the model, searched as it is to be.
        data: the task.
        lengths: of the sources, in symbols; `None`: all that the task has.
        seed: of the run, which decides what was trained on.
    """
    rows = []
    for length in lengths or range(data.min_length, data.max_length + 1):
        pairs = sequences_of_length(data, length, seed=seed)
        if pairs:  # with memorise, no sequence need have this length
            rows.append(_exact_match(translator, pairs, length))
    return rows


def _exact_match(translator: Translator, pairs: Sequence[SentencePair], length: int) -> ExactMatch:
    translations = translator.translate(pair.source for pair in pairs)
    predicted = [translation.text.split() for translation in translations]
    targets = [pair.target.split() for pair in pairs]
    num_exact = num_right = num_symbols = 0
    for symbols, wanted in zip(predicted, targets, strict=True):
        num_exact += symbols == wanted
        num_right += sum(map(str.__eq__, symbols, wanted))
        num_symbols += len(wanted)
    return ExactMatch(
        length, len(pairs), 100.0 * num_exact / len(pairs), 100.0 * num_right / num_symbols
    )
