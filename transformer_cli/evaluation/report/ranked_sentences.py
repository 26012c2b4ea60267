"""The sentences of a validation in the order of their quality: the worst and the best translations."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_cli.evaluation.metrics import measure_corpus
from transformer_cli.evaluation.report.word_differences import Words, word_differences
from transformer_cli.evaluation.validation import DirectionReport


class RankedSentence(NamedTuple):
    """One sentence with its translation."""

    number: int
    """Counted from 1, in the order of the split or of the file."""
    chrf: float
    source: str
    reference: list[Words]
    hypothesis: list[Words]


def ranked_sentences(part: DirectionReport) -> list[RankedSentence]:
    """All sentences, the lowest chrF of a sentence first; of equal ones, the one with the shorter reference."""
    texts = [translation.text for translation in part.translations]
    references = [pair.target for pair in part.pairs]
    [chrf] = measure_corpus(texts, references, ["chrf"])
    values = [chrf.value([row]) for row in range(len(texts))]
    order = sorted(range(len(texts)), key=lambda row: (values[row], len(references[row]), row))
    return [
        RankedSentence(
            row + 1,
            values[row],
            part.pairs[row].source,
            *word_differences(references[row], texts[row]),
        )
        for row in order
    ]


def evenly_spread(sentences: Sequence[RankedSentence], count: int) -> list[RankedSentence]:
    """At most `count` of the sentences, evenly spread over the text, in its order."""
    in_order = sorted(sentences, key=lambda sentence: sentence.number)
    count = min(count, len(in_order))
    return [in_order[place * len(in_order) // count] for place in range(count)]
