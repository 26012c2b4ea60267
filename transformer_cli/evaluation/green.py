"""Calibration of the quality estimate: how trusted and how good translations are, and a threshold with a statistical promise.

Sources: Bates et al. 2021, "Distribution-Free, Risk-Controlling Prediction Sets"; Angelopoulos et al. 2021, "Learn then Test",
sections 2 and 4.1 (a sequence of tests in a fixed order, with several starts); Platt 1999, "Probabilistic Outputs for Support
Vector Machines" (a score as a probability).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.acceleration.optimizers import without_tracer
from transformer_cli.decoding import Translation
from transformer_cli.decoding.checks.doubts import without_unseen_words
from transformer_cli.decoding.checks.quality import (
    FEATURES,
    STATISTICS,
    Quality,
    QualityPromise,
    features_of,
    least_log_prob_of,
    percentiles,
    pieces_per_word,
    statistics_of,
)
from transformer_cli.text.seen_words import SeenWords

NUM_STARTS = 3
"""A sequence of tests begins with the fewest translations that can keep a promise, with twice and with four times as many; each
has its part of the allowed error."""
_STEPS = 50
FEWEST_SENTENCES = 100
_LEAST_CONFIDENT = 0.01
_LEAST_TOKENS = 0.03
_LEAST_DEVIATION = 1e-6
# The same sentence has another last digit in another batch, so numbers that lie so near each other count as equal.
_EQUAL_ESTIMATES, _EQUAL_LOG_PROBS = 1e-4, 1e-3


class Calibrated(NamedTuple):
    """A calibration, and what it says about its text."""

    quality: Quality
    num_sentences: int
    """That the model has translated."""
    num_green: int
    num_bad: int
    """Of the green ones."""
    share_bad: float
    """Of all sentences."""
    num_unseen: int = 0
    """Of all sentences: those with words that training has not seen."""


def calibrated(
    translations: Sequence[Translation],
    scores: Sequence[float],
    promise: QualityPromise,
    *,
    conditions: Mapping[str, Any],
    num_samples: int = 0,
    words: SeenWords | None = None,
    reverse: str | None = None,
) -> Calibrated | None:
    """Choose the threshold of the estimate.

    The estimate orders translations by the sum of their features, each divided by its standard deviation in this text. No score
    of a translation has a part in the order, so all of them can choose the threshold.

    Args:
        translations: with details.
        scores: the score of each against its reference, 0 to 100.
        promise: what the green ones must keep.
        conditions: as of `Quality`.
        words, reverse: as of `Quality`.
        num_samples: as of `Quality`; the details of the translations have agreements with so many samples.

    Returns:
        None if fewer than a hundred translations have tokens.
    """
    # A word that training has not seen decides by itself whether a translation can be green, not by the estimate.
    plain = [replace(one, doubts=without_unseen_words(one.doubts)) for one in translations]
    rows = [
        (features, translation, score < promise.below, translation.doubts != given.doubts)
        for given, translation, score in zip(translations, plain, scores, strict=True)
        if (features := features_of(translation)) is not None
    ]
    if len(rows) < FEWEST_SENTENCES:
        return None
    matrix = torch.tensor([[row[0][name] for name in FEATURES] for row in rows], dtype=torch.float64)
    weights, bias = fit_probability(matrix, torch.tensor([not row[2] for row in rows]))
    confidences = [row[1].least_confidence for row in rows if row[1].least_confidence is not None]
    pieces = [
        pieces_per_word(row[1].source, part.source_ids)
        for row in rows
        if row[1].details is not None and len(row[1].details.parts) == 1
        for part in row[1].details.parts
    ]
    quality = Quality(
        weights=dict(zip(FEATURES, weights.tolist(), strict=True)),
        bias=bias,
        least_confidence=_quantile(confidences, _LEAST_CONFIDENT),
        most_pieces=_quantile(pieces, 1 - _LEAST_CONFIDENT),
        threshold=None,
        promise=promise,
        conditions=conditions,
        num_samples=num_samples,
        least_log_prob=_quantile([least_log_prob_of(row[1]) for row in rows], _LEAST_TOKENS) - _EQUAL_LOG_PROBS,
        words=words,
        reverse=reverse,
        finds_omissions=True,
        statistics=_statistics([row[1] for row in rows]),
    )
    # What is never green for another reason takes no part in the choice.
    able = [(quality.probability(row[1]) or 0.0, row[2], row[3]) for row in rows if quality.can_be_green(row[1])]
    seen, unseen = ([row for row in able if row[2] == is_unseen] for is_unseen in (False, True))
    # Words that training has not seen have a test of their own, with an equal part of the allowed error.
    num_tests = NUM_STARTS + (len(unseen) >= fewest_sentences(promise, NUM_STARTS + 1))
    threshold = chosen_threshold([row[0] for row in seen], [row[1] for row in seen], promise, num_tests=num_tests)
    green, green_of_unseen = (
        [row[1] for row in some if threshold is not None and row[0] >= threshold] for some in (seen, unseen)
    )
    are_green = num_tests > NUM_STARTS and keeps_promise(green_of_unseen, promise, num_tests)
    green += green_of_unseen if are_green else []
    return Calibrated(
        replace(quality, threshold=threshold, unseen_words_are_green=are_green),
        num_sentences=len(rows),
        num_green=len(green),
        num_bad=sum(green),
        share_bad=sum(row[2] for row in rows) / len(rows),
        num_unseen=sum(row[3] for row in rows),
    )


def _statistics(translations: Sequence[Translation]) -> dict[str, tuple[float, ...]]:
    found = [each for each in map(statistics_of, translations) if each is not None]
    return {name: percentiles([each[name] for each in found]) for name in STATISTICS}


def _quantile(numbers: Sequence[float], share: float) -> float:
    return float(torch.tensor(numbers, dtype=torch.float64).quantile(share)) if numbers else 0.0


def fit_probability(features: Tensor, is_good: Tensor) -> tuple[Tensor, float]:
    """The sum of the features, each in standard deviations, as a probability: logistic regression, by L-BFGS.

    Its slope is positive, so that the probability has the order of the sum. As if one more translation of each kind were there
    (Platt 1999, section 2.2), it stays finite where all are good or all are bad.

    Args:
        features: (N, F).
        is_good: (N,) of bool.

    Returns:
        (F,) the weights of the features, 0 for one that is always the same; the bias.
    """
    deviations = features.std(0)
    scales = torch.where(deviations < _LEAST_DEVIATION, 0.0, 1 / deviations)
    sums = features @ scales
    middle = sums.mean()
    num_good = int(is_good.sum())
    targets = torch.where(is_good, (num_good + 1) / (num_good + 2), 1 / (len(is_good) - num_good + 2)).double()
    raw = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    without_tracer()
    optimizer = torch.optim.LBFGS([raw], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        raw.grad = None
        value = F.binary_cross_entropy_with_logits(F.softplus(raw[0]) * (sums - middle) + raw[1], targets)
        value.backward()
        return value

    optimizer.step(loss)
    slope, bias = float(F.softplus(raw[0]).detach()), float(raw[1].detach())
    return slope * scales, bias - slope * float(middle)


def chosen_threshold(
    estimates: Sequence[float],
    is_bad: Sequence[bool],
    promise: QualityPromise,
    *,
    num_tests: int = NUM_STARTS,
) -> float | None:
    """The lowest threshold whose green translations keep the promise; None if none does.

    For a growing number of the most trusted translations, a test rejects "more than the allowed share is bad". From each start
    (see `NUM_STARTS`) the number grows until a test fails; each start has an equal part of the allowed error 1 - certainty, so
    the promise holds for the lowest threshold of all.

    Args:
        estimates: the probability of each translation.
        is_bad: whether it is bad.
        num_tests: the allowed error is divided into this number of equal parts, of which `NUM_STARTS` are used here.
    """
    order = sorted(range(len(estimates)), key=lambda index: -estimates[index])
    bad_before = [0]
    for index in order:
        bad_before.append(bad_before[-1] + is_bad[index])
    allowed = (1 - promise.certainty) / num_tests
    lowest: float | None = None
    for number in range(NUM_STARTS):
        next_size = fewest_sentences(promise, num_tests) << number
        while next_size <= len(order):
            size, least = _with_equals(estimates, order, next_size)
            if _tail(size, bad_before[size], promise.share) > allowed:
                break
            lowest = least if lowest is None else min(lowest, least)
            next_size = size + max(1, len(order) // _STEPS)
    return lowest


def keeps_promise(is_bad: Sequence[bool], promise: QualityPromise, num_tests: int) -> bool:
    """Whether a test rejects "more than the allowed share is bad", with one of `num_tests` equal parts of the allowed error."""
    return _tail(len(is_bad), sum(is_bad), promise.share) <= (1 - promise.certainty) / num_tests


def fewest_sentences(promise: QualityPromise, num_tests: int = NUM_STARTS) -> int:
    """The smallest number of green translations that can show that a promise is kept: if not one of them is bad."""
    return math.ceil(math.log((1 - promise.certainty) / num_tests) / math.log1p(-promise.share))


def _with_equals(estimates: Sequence[float], order: Sequence[int], size: int) -> tuple[int, float]:
    """The size, plus those with nearly the same estimate as the last one; and the threshold that takes exactly these."""
    least = estimates[order[size - 1]] - _EQUAL_ESTIMATES
    while size < len(order) and estimates[order[size]] >= least:
        size += 1
    return size, least


def _tail(size: int, num_bad: int, share: float) -> float:
    """P(at most `num_bad` of `size` are bad) if each is bad with the probability `share`: the binomial distribution."""
    logs = (
        math.lgamma(size + 1)
        - math.lgamma(number + 1)
        - math.lgamma(size - number + 1)
        + number * math.log(share)
        + (size - number) * math.log1p(-share)
        for number in range(num_bad + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))
