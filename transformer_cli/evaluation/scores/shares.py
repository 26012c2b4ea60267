"""Scores that are a share: errors per unit (CER, WER), exact matches per line, and unknown words per word.

They are subclasses of sacrebleu's Metric, so its statistics, references and signatures work for them, too.
"""

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import jiwer
from sacrebleu.metrics.base import Metric, Score, Signature

from transformer_cli import __version__
from transformer_cli.text.words import UNK

_OWN = {"library": "transformer-cli", "version": __version__}

Count = tuple[int, int]
"""Two numbers of a sentence: what is counted, and the number of units that there are."""


class _WrittenSignature(Signature):
    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self.info |= args["signature"]


class SummedMetric(Metric):
    """A metric whose signature is written by hand, and whose score follows from the sums of the statistics of sentences."""

    _SIGNATURE_TYPE = _WrittenSignature

    def __init__(self, name: str, **signature: str) -> None:
        Metric.__init__(self)
        self.name = name
        self.signature = signature

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> Score:
        return self._compute_score_from_stats(
            [sum(numbers) for numbers in zip(*stats, strict=True)]
        )

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": list(refs)}


class Share(SummedMetric):
    """A count of the whole corpus per 100 units of the whole corpus.

    If there is no unit, the share is 0 if nothing was counted, else 100.
    """

    def __init__(
        self, name: str, counts: Callable[[str, list[str]], Count], **signature: str
    ) -> None:
        """A metric.

        Args:
            name: as the score is shown.
            counts: the counts of a sentence, from its hypothesis and its references.
            signature: how the share is counted, for the signature of the score.
        """
        super().__init__(name, case="mixed", **signature)
        self.counts = counts

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        count, num_units = stats
        return Score(self.name, 100.0 * (count / num_units if num_units else float(count > 0)))

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[int]:
        return list(self.counts(hypothesis, ref_kwargs["references"]))


def character_error_rate() -> Share:
    """CER: edits of characters per 100 characters of the references."""
    return _error_rate("CER", "character", jiwer.process_characters)


def word_error_rate() -> Share:
    """WER: edits of words per 100 words of the references."""
    return _error_rate("WER", "word", jiwer.process_words)


def exact_match() -> Share:
    """The percentage of lines that are equal to a reference; runs of white space count as one space."""

    def counts(hypothesis: str, references: list[str]) -> Count:
        return int(hypothesis.split() in [text.split() for text in references]), 1

    return Share("exact_match", counts, space="collapsed", **_OWN)


def unknown_words() -> Share:
    """[UNK] per 100 words of the hypotheses: words that a model without subwords cannot write."""

    def counts(hypothesis: str, references: list[str]) -> Count:
        return hypothesis.count(UNK), len(hypothesis.split())

    return Share("unknown", counts, unit="word", token=UNK, **_OWN)


def _error_rate(name: str, unit: str, process: Callable[..., Any]) -> Share:
    """Errors of the whole corpus per 100 units (words or characters) of its references.

    If a reference is empty, every unit of its hypothesis counts as an insertion: new versions of jiwer do the
    same, old ones refuse an empty reference. Of several references of a sentence, the one with the lowest rate counts.
    """

    def against(hypothesis: str, reference: str) -> Count:
        if not reference.strip():
            surplus = process([hypothesis], [hypothesis]).hits if hypothesis.strip() else 0
            return surplus, 0
        found = process([reference], [hypothesis])
        missed = found.substitutions + found.deletions
        return missed + found.insertions, missed + found.hits

    def counts(hypothesis: str, references: list[str]) -> Count:
        return min((against(hypothesis, text) for text in references), key=_rate)

    version = metadata.version("jiwer")
    return Share(name, counts, unit=unit, library="jiwer", version=version)


def _rate(count: Count) -> float:
    errors, num_units = count
    return errors / num_units if num_units else float(errors)
