"""The confidence of a model in its own translation of a line, and whether confident translations are better.

Source: Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine Translation", section 3.1 (TP).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_cli.decoding import Translation
from transformer_cli.evaluation.metrics import measure_corpus

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


def confidence_report(
    translations: Sequence[Translation], references: Sequence[str]
) -> ConfidenceReport | None:
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
    quarters = [
        Quarter(len(group), float(certain[group].mean()), float(quality[group].mean()))
        for group in groups
    ]
    return ConfidenceReport(rank_correlation(certain, quality), quarters)


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation of two lists of numbers, -1 to 1; NaN if one of them is constant.

    Equal numbers get the mean of their ranks.
    """
    ranks = [_ranks(np.asarray(numbers)) for numbers in (first, second)]
    centred = [of_list - of_list.mean() for of_list in ranks]
    spread = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / spread if spread else math.nan


def _ranks(numbers: NDArray[Any]) -> NDArray[np.float64]:
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]
