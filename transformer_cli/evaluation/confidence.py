"""Whether the confidence of a model in its translations is right: for each token, and for each line.

Source: Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine Translation", section 3.1 (TP).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Request, Translation, Translator
from transformer_cli.decoding.engine import ExplainingEngine
from transformer_cli.evaluation.metrics import measure_corpus

# Calibration: whether a token that gets the probability 0.8 is right in 80 of 100 cases.
#
# Teacher forcing: at each place of a reference, the model has read the reference up to this place. Its most probable
# token is its prediction, the probability of this token is its confidence, and the prediction is right if the
# reference has this token here.
#
# Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 3; for translation: Müller et al. 2019,
# "When Does Label Smoothing Help?", section 3.


NUM_BINS = 10
# The attention weights of each pair are in its explanation, so not all pairs are explained at once.
_PAIRS_AT_ONCE = 500


class Bin(NamedTuple):
    """The predictions whose probability is in one tenth of the range from 0 to 1."""

    lowest: float
    """Of the probabilities that belong to the bin; the next bin begins 0.1 above."""
    num_tokens: int
    confidence: float
    """Mean probability of the predictions; 0 if there are none."""
    accuracy: float
    """Share of the predictions that are right; 0 if there are none."""


class Calibration(NamedTuple):
    """How well probabilities and accuracies agree."""

    error: float
    """Expected calibration error, 0 to 1: the mean over the predictions of |accuracy - confidence| of their bin."""
    confidence: float
    """Mean over all predictions."""
    accuracy: float
    """Mean over all predictions."""
    bins: list[Bin]

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        return self._asdict() | {"bins": [one._asdict() for one in self.bins]}

    def lines(self) -> list[str]:
        """A table for people; bins without predictions are left out."""
        heading = (
            f"calibration of {sum(one.num_tokens for one in self.bins):,} tokens: expected calibration error "
            f"{100 * self.error:.1f} %, mean probability {100 * self.confidence:.1f} %, "
            f"accuracy {100 * self.accuracy:.1f} %"
        )
        rows = [
            f"{100 * one.lowest:>4.0f} to {100 * (one.lowest + 1 / NUM_BINS):>3.0f} %"
            f"{one.num_tokens:>10,}{100 * one.confidence:>12.1f} %{100 * one.accuracy:>10.1f} %"
            for one in self.bins
            if one.num_tokens
        ]
        return [heading, f"{'probability':<13}{'tokens':>9}{'mean':>14}{'accuracy':>12}", *rows]


def calibration(confidences: NDArray[np.floating[Any]], is_right: NDArray[np.bool_]) -> Calibration:
    """The calibration of predictions.

    Args:
        confidences: (N,) probability of each prediction, 0 to 1.
        is_right: (N,) whether the prediction is right.
    """
    numbers = np.minimum((confidences * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    bins = []
    for number in range(NUM_BINS):
        chosen = numbers == number
        means = (float(confidences[chosen].mean()), float(is_right[chosen].mean())) if chosen.any() else (0.0, 0.0)
        bins.append(Bin(number / NUM_BINS, int(chosen.sum()), *means))
    distances = [one.num_tokens * abs(one.accuracy - one.confidence) for one in bins]
    return Calibration(
        sum(distances) / max(1, len(confidences)),
        float(confidences.mean()) if len(confidences) else 0.0,
        float(is_right.mean()) if len(confidences) else 0.0,
        bins,
    )


def calibration_on(translator: Translator, pairs: Sequence[SentencePair]) -> Calibration | None:
    """The calibration of a model on the references of pairs; None if its engine tells no probabilities.

    Args:
        translator: of the direction of the pairs.
        pairs: sides that are too long for the model are cut.
    """
    engine, pipeline = translator.engine, translator.pipeline
    if not isinstance(engine, ExplainingEngine):
        return None
    confidences, is_right = [np.zeros(0, np.float32)], [np.zeros(0, np.bool_)]
    for first in range(0, len(pairs), _PAIRS_AT_ONCE):
        encoded = [
            (
                pipeline.source_ids(pipeline.normalize_source(pair.source))[: pipeline.max_length],
                pipeline.target_ids(pipeline.normalize_target(pair.target))[: pipeline.max_length],
            )
            for pair in pairs[first : first + _PAIRS_AT_ONCE]
        ]
        encoded = [sides for sides in encoded if all(sides)]
        explanations = engine.explain(
            [Request(source_ids) for source_ids, _ in encoded],
            [target_ids for _, target_ids in encoded],
            batch_tokens=translator.decoding.batch_tokens,
            num_best=1,
        )
        for (_, target_ids), found in zip(encoded, explanations, strict=True):
            confidences.append(np.exp(found.best_log_probs[:, 0]))
            is_right.append(found.best_ids[:, 0] == np.array(target_ids))
    return calibration(np.concatenate(confidences), np.concatenate(is_right))


NUM_GROUPS = 4


class Quarter(NamedTuple):
    """A quarter of the lines."""

    num_lines: int
    confidence: float
    """Mean over its lines."""
    chrf: float
    """Mean of the chrF of each line."""


class ConfidenceReport(NamedTuple):
    """How confidence and quality go together."""

    correlation: float
    """Spearman's rank correlation of the confidence of a line with its chrF, -1 to 1; NaN if one of them is constant."""
    quarters: list[Quarter]
    """The least confident lines first."""

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`; None for NaN."""
        is_number = math.isfinite(self.correlation)
        return {
            "spearman_with_chrf": self.correlation if is_number else None,
            "quarters": [quarter._asdict() for quarter in self.quarters],
        }

    def lines(self) -> list[str]:
        """A table for people."""
        heading = (
            "confidence of each line, the geometric mean of its token probabilities: "
            f"Spearman's correlation with its chrF {self.correlation:.2f}"
        )
        rows = [
            f"{quarter.num_lines:>7,}{100 * quarter.confidence:>14.1f} %{quarter.chrf:>12.1f}"
            for quarter in self.quarters
        ]
        return [heading, f"{'lines':>7}{'confidence':>16}{'mean chrF':>12}", *rows]


def confidence_report(translations: Sequence[Translation], references: Sequence[str]) -> ConfidenceReport | None:
    """Compare the confidence of each line with the quality of its translation; None without details.

    Args:
        translations: made with their details; blank lines are left out.
        references: one for each translation.
    """
    confidences = [translation.confidence for translation in translations]
    rows = [row for row, value in enumerate(confidences) if value is not None]
    if not rows:
        return None
    texts = [translations[row].text for row in rows]
    [chrf] = measure_corpus(texts, [references[row] for row in rows], ["chrf"])
    quality = np.array([chrf.value([place]) for place in range(len(rows))])
    certain = np.array([value for value in confidences if value is not None])
    groups = np.array_split(np.argsort(certain, kind="stable"), min(NUM_GROUPS, len(rows)))
    quarters = [Quarter(len(group), float(certain[group].mean()), float(quality[group].mean())) for group in groups]
    return ConfidenceReport(rank_correlation(certain, quality), quarters)


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation of two lists of numbers, -1 to 1; NaN if one of them is constant.

    Equal numbers get the mean of their ranks.
    """
    ranks = [_ranks(np.asarray(numbers)) for numbers in (first, second)]
    centred = [list_ranks - list_ranks.mean() for list_ranks in ranks]
    spread = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / spread if spread else math.nan


def _ranks(numbers: NDArray[Any]) -> NDArray[np.float64]:
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]
