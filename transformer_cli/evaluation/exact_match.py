"""Exact match: the share of sequences of a synthetic task that are translated without an error."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_cli.config import SequencesData
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.sources.sequences import sequences_of_length
from transformer_cli.decoding import Translator


class ExactMatch(NamedTuple):
    """The results for the sources of one length."""

    length: int
    """Symbols of the source."""
    num_sequences: int
    exact: float
    """Percentage of sequences without an error."""
    symbols: float
    """Percentage of the target's symbols that have the right position in the translation."""


def exact_match_by_length(
    translator: Translator, data: SequencesData, lengths: Sequence[int] | None, *, seed: int
) -> list[ExactMatch]:
    """One row for each length, measured on sequences that are not in the training split.

    The task `memorise` is the exception: it is measured on the sequences of the training split.

    Args:
        translator: the trained model.
        data: the task.
        lengths: the numbers of symbols of a source; None: every length of the task.
        seed: the seed of the run, which decides which sequences are in the training split.
    """
    rows = []
    for length in lengths or range(data.min_length, data.max_length + 1):
        pairs = sequences_of_length(data, length, seed=seed)
        if pairs:  # the few sequences of memorise do not have every length
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
