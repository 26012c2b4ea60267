"""Weak spots of a translator, measured with changed validation sentences: capitals, single words, numbers, long input."""

import re
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Translator
from transformer_cli.evaluation.metrics import score_corpus

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_DIGITS = re.compile(r"\d+")
MOST_WORDS = 3
"""A translation of a single word with more words than this adds something that is not in its source."""
NUM_JOINED = 5
NUM_WORDS = 50
NUM_WITH_ADDED = 25
ADDED_NUMBERS = ("7", "42", "1998", "365,000", "10:30")


class WeakSpot(NamedTuple):
    """A probe and its result."""

    name: str
    result: str


def weak_spots(translator: Translator, pairs: Sequence[SentencePair]) -> list[WeakSpot]:
    """Measure a translator with changed validation sentences.

    Args:
        translator: of one direction.
        pairs: validation pairs of this direction; at least one.
    """
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    plain = _chrf(translator, sources, references)
    return [
        WeakSpot("as they are", f"chrF {plain:.1f} on {len(pairs)} sentences"),
        _capitals(translator, sources, references),
        _long_input(translator, sources, references),
        *_single_words(translator, sources),
        _numbers(translator, sources),
    ]


def _capitals(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> WeakSpot:
    lowered = [_texts(translator, lines) for lines in (sources, [one.upper() for one in sources])]
    wanted = [reference.lower() for reference in references]
    plain, capital = (
        score_corpus([text.lower() for text in texts], wanted, ["chrf"])[0].value
        for texts in lowered
    )
    return WeakSpot(
        "all in capitals", f"chrF {capital:.1f}, without capitals {plain:.1f} (case ignored)"
    )


def _long_input(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> WeakSpot:
    starts = range(0, len(sources), NUM_JOINED)
    joined, wanted = (
        [" ".join(side[start : start + NUM_JOINED]) for start in starts]
        for side in (sources, references)
    )
    how = "split into sentences" if translator.pipeline.splits_sentences else "not split"
    value = _chrf(translator, joined, wanted)
    return WeakSpot(f"{NUM_JOINED} sentences in a line", f"chrF {value:.1f} ({how})")


def _single_words(translator: Translator, sources: Sequence[str]) -> list[WeakSpot]:
    words = dict.fromkeys(word.lower() for source in sources for word in _LETTERS.findall(source))
    chosen = [*words][:NUM_WORDS]
    if not chosen:
        return []
    found = _texts(translator, chosen)
    num_long = sum(len(text.split()) > MOST_WORDS for text in found)
    result = f"{num_long} of {len(chosen)} translations have more than {MOST_WORDS} words"
    return [WeakSpot("single words", result)]


def _numbers(translator: Translator, sources: Sequence[str]) -> WeakSpot:
    """Sentences of the split that contain numbers; without any, numbers put behind sentences."""
    lines, what = [source for source in sources if NUMBER.search(source)], "with numbers"
    if not lines:
        pairs = zip(sources[:NUM_WITH_ADDED], cycle(ADDED_NUMBERS), strict=False)
        lines = [f"{source.rstrip('.!? ')} {number}." for source, number in pairs]
        what = "with a number put at the end"
    found = _texts(translator, lines)
    num_kept = sum(
        sorted(_DIGITS.findall(line)) == sorted(_DIGITS.findall(text))
        for line, text in zip(lines, found, strict=True)
    )
    return WeakSpot("numbers", f"{num_kept} of {len(lines)} sentences {what} keep all their digits")


def _texts(translator: Translator, lines: Sequence[str]) -> list[str]:
    return [translation.text for translation in translator.translate(lines)]


def _chrf(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> float:
    return score_corpus(_texts(translator, sources), references, ["chrf"])[0].value
