"""Calibration: whether a token that gets the probability 0.8 is right in 80 of 100 cases.

Teacher forcing: at each place of a reference, the model has read the reference up to this place. Its most probable
token is its prediction, the probability of this token is its confidence, and the prediction is right if the
reference has this token here.

Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 3; for translation: Müller et al. 2019,
"When Does Label Smoothing Help?", section 3.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Request, Translator
from transformer_cli.decoding.engine import ExplainingEngine

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
        means = (
            (float(confidences[chosen].mean()), float(is_right[chosen].mean()))
            if chosen.any()
            else (0.0, 0.0)
        )
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
