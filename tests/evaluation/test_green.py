"""The estimate of quality rises with each feature, and the threshold keeps its promise."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer_cli.checkpoint.run_folder import CALIBRATION_FILE
from transformer_cli.decoding.checks.doubts import UNSEEN
from transformer_cli.decoding.checks.quality import (
    FEATURES,
    Drift,
    Quality,
    QualityPromise,
    features_of,
    largest_distance,
    least_log_prob_of,
    quality_json,
    read_quality,
)
from transformer_cli.decoding.details import LineDetails
from transformer_cli.decoding.engine import Explanation
from transformer_cli.decoding.translation import PartDetails, Translation
from transformer_cli.evaluation.green import calibrated, chosen_threshold, fit_probability
from transformer_cli.process.errors import DataError
from transformer_cli.text.seen_words import SeenWords

PROMISE = QualityPromise("chrf", 60.0, 0.1, 0.9)


def translation_of(log_prob: float, *, length: int = 5, doubts: tuple[str, ...] = ()) -> Translation:
    explanation = Explanation(
        np.full(length, log_prob, np.float32),
        np.full((length, length), 1 / length, np.float32),
        tuple(range(length)),
        np.zeros((length, 0), np.int64),
        np.zeros((length, 0), np.float32),
    )
    ids = tuple(range(length))
    details = LineDetails((PartDetails(ids, ids, explanation),), ())
    text = " ".join(map(str, ids))
    return Translation(text, text, -1.0, (), details=details, doubts=doubts, confidences=(0.5,))


def drawn(number: int, seed: int, noise: float = 0.1) -> tuple[list[Translation], list[float]]:
    """Translations whose score rises with their probability, with noise."""
    dice = random.Random(seed)
    translations, scores = [], []
    for _ in range(number):
        log_prob = -3 * dice.random()
        translations.append(translation_of(log_prob))
        scores.append(100 * min(1.0, max(0.0, 1 + log_prob / 3 + dice.gauss(0, noise))))
    return translations, scores


def is_green(quality: Quality, translation: Translation) -> bool:
    estimate = quality.estimate(translation)
    return estimate is not None and estimate.is_green


def test_the_probability_is_that_of_the_data_and_each_feature_counts_in_its_own_unit() -> None:
    torch.manual_seed(0)
    features = torch.randn(4000, 2, dtype=torch.float64) * torch.tensor([0.1, 3.0]) + torch.tensor([-5.0, 7.0])
    sums = (features / features.std(0)).sum(1)
    is_good = torch.rand(4000, dtype=torch.float64) < torch.sigmoid(1.5 * (sums - sums.mean()) + 0.4)
    weights, bias = fit_probability(features, is_good)
    assert (weights * features.std(0)).tolist() == pytest.approx([1.5, 1.5], abs=0.15)
    assert bias + float(features.mean(0) @ weights) == pytest.approx(0.4, abs=0.15)


def test_the_fit_is_the_best_of_its_kind() -> None:
    """There the errors of the probabilities have the mean 0, and do not depend on the sum of the features."""
    torch.manual_seed(1)
    features = torch.randn(300, 2, dtype=torch.float64) * torch.tensor([0.1, 3.0])
    sums = (features / features.std(0)).sum(1)
    is_good = torch.rand(300, dtype=torch.float64) < torch.sigmoid(2.0 * sums + 1.0)
    weights, bias = fit_probability(features, is_good)
    num_good, num_bad = int(is_good.sum()), int((~is_good).sum())
    targets = torch.where(is_good, (num_good + 1) / (num_good + 2), 1 / (num_bad + 2)).double()
    errors = torch.sigmoid(features @ weights + bias) - targets
    assert float(errors.mean()) == pytest.approx(0.0, abs=1e-4)
    assert float((errors * sums).mean()) == pytest.approx(0.0, abs=1e-4)


def test_the_probability_never_falls_although_the_scores_do() -> None:
    features = torch.linspace(-1, 1, 200, dtype=torch.float64)[:, None]
    weights, _ = fit_probability(features, features[:, 0] < 0)
    assert 0.0 < weights[0] < 0.05


def test_a_feature_that_never_changes_has_no_weight_and_equal_translations_have_finite_ones() -> None:
    features = torch.stack([torch.linspace(-1, 1, 200, dtype=torch.float64), torch.zeros(200).double()], 1)
    for is_good in (features[:, 0] > 0, torch.ones(200, dtype=torch.bool), torch.zeros(200, dtype=torch.bool)):
        weights, bias = fit_probability(features, is_good)
        assert weights[1] == 0.0
        assert 0.0 <= weights[0] < 100.0
        assert abs(bias) < 100.0


def test_better_features_never_make_the_estimate_worse() -> None:
    found = calibrated(*drawn(400, 1), PROMISE, conditions={})
    assert found is not None
    estimates = [found.quality.probability(translation_of(x)) for x in (-3.0, -1.0, -0.5, -0.1)]
    assert estimates == sorted(estimates)  # type: ignore[type-var]


@pytest.mark.heavy
def test_the_promise_is_broken_as_seldom_as_promised() -> None:
    """Of 30 calibrations with 90 % certainty at most 3 are expected to break it; 8 would be far too many."""
    broken = has_green = 0
    truth, scores = drawn(1500, 1000)
    for seed in range(30):
        found = calibrated(*drawn(400, seed), PROMISE, conditions={})
        assert found is not None
        green = [score for each, score in zip(truth, scores, strict=True) if is_green(found.quality, each)]
        has_green += bool(green)
        broken += sum(score < PROMISE.below for score in green) > PROMISE.share * len(green)
    assert has_green >= 15
    assert broken <= 7


def test_more_translations_are_green_than_of_the_strictest_threshold_only() -> None:
    estimates = [number / 1000 for number in range(1000)]
    is_bad = [estimate < 0.4 for estimate in estimates]
    threshold = chosen_threshold(estimates, is_bad, QualityPromise("chrf", 60, 0.05, 0.95))
    assert threshold is not None
    assert 0.35 <= threshold <= 0.42


def test_no_threshold_is_chosen_where_bad_ones_are_everywhere() -> None:
    dice = random.Random(1)
    estimates = [dice.random() for _ in range(1000)]
    is_bad = [dice.random() < 0.5 for _ in range(1000)]
    assert chosen_threshold(estimates, is_bad, PROMISE) is None
    assert chosen_threshold([], [], PROMISE) is None


def test_equal_estimates_are_green_together() -> None:
    estimates, is_bad = [0.9] * 500 + [0.1] * 500, [False] * 500 + [True] * 500
    assert chosen_threshold(estimates, is_bad, PROMISE) == pytest.approx(0.9, abs=1e-4)
    assert chosen_threshold(estimates, is_bad[::-1], PROMISE) is None


def test_no_translation_is_green_that_no_test_has_counted() -> None:
    """Just below the last one that counts as equal there may be others: the threshold leaves them out."""
    good, bad = [0.9] * 60 + [0.5, 0.5 - 0.9e-4], [0.5 - 1.2e-4] * 30
    is_bad = [False] * len(good) + [True] * len(bad)
    threshold = chosen_threshold(good + bad, is_bad, PROMISE)
    assert threshold is not None
    num_bad = sum(estimate >= threshold for estimate in bad)
    assert num_bad <= PROMISE.share * (len(good) + num_bad)


def test_a_last_digit_that_differs_makes_no_translation_of_the_calibration_less_than_green() -> None:
    """In another batch, PyTorch adds up the same numbers in another order."""
    dice = random.Random(1)
    translations = [translation_of(-0.3 + 1e-6 * dice.random()) for _ in range(200)]
    found = calibrated(translations, [90.0] * 200, PROMISE, conditions={"sentences": 200})
    assert found is not None
    assert found.num_green == 200
    again = [translation_of(-0.3 - 1e-6 * dice.random()) for _ in range(200)]
    assert all(is_green(found.quality, one) for one in again)


def test_equal_ratios_that_need_many_digits_are_no_other_kind_of_text() -> None:
    lines = [translation_of(-1 / 7, length=7) for _ in range(100)]
    assert differences(quality_of(lines), lines) == set()


def test_a_doubtful_or_untranslated_text_is_never_green() -> None:
    found = calibrated(*drawn(400, 1, noise=0.0), PROMISE, conditions={})
    assert found is not None
    best = translation_of(-0.001)
    assert is_green(found.quality, best)
    for worse in (
        replace(best, doubts=("repeats itself",)),
        replace(best, is_untranslated=True),
        replace(best, is_partly_copied=True),
        replace(best, is_in_pieces=True),
        replace(best, details=None),
    ):
        assert not is_green(found.quality, worse)


def test_a_text_that_stays_as_it_is_is_not_good_and_a_number_needs_no_estimate() -> None:
    found = calibrated(*drawn(400, 1), PROMISE, conditions={})
    assert found is not None
    number = Translation("42", "42", 0.0, ())
    assert found.quality.estimate(number) is None
    assert found.quality.estimate(replace(number, is_untranslated=True)) == (0.0, False)


def test_too_few_translations_make_no_calibration() -> None:
    assert calibrated(*drawn(99, 1), PROMISE, conditions={}) is None


def test_a_calibration_comes_back_from_its_file(tmp_path: Path) -> None:
    found = calibrated(*drawn(200, 1), PROMISE, conditions={"step": 3})
    assert found is not None
    assert read_quality(tmp_path) == {}
    (tmp_path / CALIBRATION_FILE).write_bytes(quality_json({"en-it": found.quality}))
    assert read_quality(tmp_path) == {"en-it": found.quality}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"format": 9}',
        b'{"format": 3, "directions": {"en-it": {}}}',
        b"\xff",
    ],
)
def test_a_damaged_calibration_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CALIBRATION_FILE).write_bytes(content)
    with pytest.raises(DataError, match=CALIBRATION_FILE):
        read_quality(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("num_samples",), float("inf")),
        (("num_samples",), -1),
        (("promise", "share"), "a twentieth"),
        (("promise", "share"), 7),
        (("promise", "certainty"), 0.0),
        (("bias",), float("inf")),
        (("weights", "agreement"), float("nan")),
        (("statistics", "length"), [1.0, 2.0]),
        (("conditions", "sentences"), "many"),
    ],
)
def test_a_value_that_nothing_can_be_computed_from_is_damage(
    tmp_path: Path, place: tuple[str, ...], value: object
) -> None:
    found = calibrated(*drawn(200, 1), PROMISE, conditions={})
    assert found is not None
    facts = json.loads(quality_json({"en-it": found.quality}))
    inner = facts["directions"]["en-it"]
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    (tmp_path / CALIBRATION_FILE).write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(DataError, match="not a calibration, or damaged"):
        read_quality(tmp_path)


@pytest.mark.parametrize("number", [b"1", b"2"])
def test_an_older_calibration_is_not_used(number: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / CALIBRATION_FILE).write_bytes(b'{"format": %s, "directions": {"en-it": {}}}' % number)
    assert read_quality(tmp_path) == {}
    assert f"make it again: tfm calibrate --run {tmp_path}" in caplog.text


def test_the_features_are_those_of_the_worst_part() -> None:
    good, bad = (translation_of(log_prob) for log_prob in (-0.1, -2.0))
    assert good.details is not None
    assert bad.details is not None
    both = replace(good, details=LineDetails((*good.details.parts, *bad.details.parts), ()))
    features = features_of(both)
    assert features is not None
    assert set(features) == set(FEATURES)
    assert features["mean_log_prob"] == pytest.approx(-2.0)
    assert least_log_prob_of(both) == pytest.approx(-2.0)
    assert least_log_prob_of(replace(both, details=None)) == -math.inf


def lines_of(number: int, seed: int, *, length: int = 5) -> list[Translation]:
    dice = random.Random(seed)
    return [translation_of(-dice.random(), length=dice.randint(2, 2 + length)) for _ in range(number)]


def quality_of(lines: list[Translation]) -> Quality:
    scores = [90.0 if number % 3 else 10.0 for number in range(len(lines))]
    found = calibrated(lines, scores, PROMISE, conditions={"sentences": len(lines)})
    assert found is not None
    return found.quality


def differences(quality: Quality, lines: list[Translation]) -> set[str]:
    drift = Drift(quality)
    drift.add(lines)
    return set(drift.differences())


@pytest.mark.long
def test_a_text_of_the_same_kind_is_seldom_called_another_one() -> None:
    quality = quality_of(lines_of(300, 1))
    found = [differences(quality, lines_of(100, seed)) for seed in range(2, 102)]
    assert sum(map(bool, found)) <= 1


def test_longer_sentences_and_less_probable_ones_are_another_kind_of_text() -> None:
    quality = quality_of(lines_of(300, 1))
    assert "length" in differences(quality, lines_of(100, 2, length=12))
    unsure = [translation_of(-1.0 - number % 3) for number in range(100)]
    assert "mean_log_prob" in differences(quality, unsure)
    assert differences(quality, unsure[:29]) == set(), "too few lines say nothing"


def test_a_calibration_without_statistics_finds_no_drift() -> None:
    older = replace(quality_of(lines_of(300, 1)), statistics={})
    assert differences(older, lines_of(100, 2, length=12)) == set()


def test_the_distance_of_two_texts_is_that_of_kolmogorov_and_smirnov() -> None:
    dice = random.Random(1)
    for _ in range(20):
        one = [float(dice.randint(0, 9)) for _ in range(dice.randint(30, 80))]
        other = [float(dice.randint(0, 12)) for _ in range(dice.randint(30, 80))]
        shares = ([sum(x <= place for x in each) / len(each) for place in range(13)] for each in (one, other))
        expected = max(abs(a - b) for a, b in zip(*shares, strict=True))
        assert largest_distance(one, sorted(other)) == pytest.approx(expected)


def test_a_blank_line_has_no_estimate() -> None:
    quality = Quality({}, 0.0, 0.0, 0.0, 0.5, PROMISE, {})
    assert quality.probability(Translation("", "", 0.0, ())) is None


def with_unseen(translations: list[Translation], places: range) -> list[Translation]:
    return [
        replace(one, doubts=(f"{UNSEEN}: quokka",)) if place in places else one
        for place, one in enumerate(translations)
    ]


@pytest.mark.long
@pytest.mark.parametrize("are_right", [True, False])
def test_unseen_words_are_green_only_if_the_calibration_shows_that_they_come_out_right(
    are_right: bool,
) -> None:
    translations, scores = drawn(1500, 1)
    unseen, of_unseen = range(0, 1500, 3), 90.0 if are_right else 10.0
    scores = [of_unseen if place in unseen else score for place, score in enumerate(scores)]
    found = calibrated(with_unseen(translations, unseen), scores, PROMISE, conditions={})
    assert found is not None
    assert found.num_unseen == 500
    assert found.quality.threshold is not None
    assert found.quality.unseen_words_are_green == are_right
    sure = replace(translation_of(-0.01), doubts=(f"{UNSEEN}: quokka",))
    assert not is_green(found.quality, sure), "whoever asks adds no doubt if these words may be green"
    assert is_green(found.quality, translation_of(-0.01))


@pytest.mark.long
def test_too_few_sentences_with_unseen_words_show_nothing() -> None:
    translations, scores = drawn(1500, 1)
    found = calibrated(with_unseen(translations, range(20)), scores, PROMISE, conditions={})
    plain = calibrated(translations, scores, PROMISE, conditions={})
    assert found is not None
    assert plain is not None
    assert not found.quality.unseen_words_are_green
    assert (found.quality.weights, found.quality.bias) == (
        plain.quality.weights,
        plain.quality.bias,
    )


def test_the_words_of_a_calibration_are_read_again(tmp_path: Path) -> None:
    words = SeenWords.of({"cat": 1})
    found = calibrated(*drawn(400, 1), PROMISE, conditions={}, words=words)
    assert found is not None
    (tmp_path / CALIBRATION_FILE).write_bytes(quality_json({"en-it": found.quality}))
    assert read_quality(tmp_path)["en-it"].words == words


@pytest.mark.long
def test_a_reverse_model_that_knows_more_makes_more_translations_green() -> None:
    """Its numbers follow the score with less noise than the log-probability."""
    translations, scores = drawn(1500, 1, noise=0.4)
    read = [replace(one, reverse_log_prob=(score - 100) / 30) for one, score in zip(translations, scores, strict=True)]
    without = calibrated(translations, scores, PROMISE, conditions={})
    found = calibrated(read, scores, PROMISE, conditions={}, reverse="it-en")
    assert found is not None
    assert without is not None
    assert found.quality.weights["reverse"] > 0.1
    assert found.num_green > 1.5 * max(1, without.num_green)
    assert found.num_bad <= PROMISE.share * found.num_green


def test_a_translation_that_is_not_green_says_why() -> None:
    strict = Quality(
        dict.fromkeys(FEATURES, 0.0),
        *(0.0, 0.0, 9.0, 0.4),
        PROMISE,
        {},
        least_log_prob=-0.5,
    )
    estimated = {
        why: replace(one, estimate=strict.estimate(one))
        for why, one in {
            "": translation_of(-0.01),
            "it has doubts": translation_of(-0.01, doubts=("loses a negation",)),
            "text of it stays in its own language": replace(translation_of(-0.01), is_untranslated=True),
            "it was made in pieces around protected spans": replace(translation_of(-0.01), is_in_pieces=True),
            "one of its tokens has a probability below 0.61, and 97 % of the calibration have no such token": (
                translation_of(-2.0)
            ),
        }.items()
    }
    assert {why: strict.why_not_green(one) for why, one in estimated.items()} == {why: why for why in estimated}
    sure = translation_of(-0.01)
    for threshold, why in ((0.75, "its probability is below 0.750"), (None, "no threshold keeps the promise")):
        other = replace(strict, threshold=threshold)
        assert other.why_not_green(replace(sure, estimate=other.estimate(sure))) == why
    assert strict.why_not_green(sure) == "", "without an estimate nothing is said"


def test_a_sentence_that_is_shorter_than_those_of_the_calibration_is_not_green() -> None:
    sure = translation_of(-0.01)
    assert sure.details is not None
    length = len(sure.details.parts[0].source_ids)
    open_to_all = Quality(
        dict.fromkeys(FEATURES, 0.0),
        *(9.0, 0.0, 9.0, 0.4),
        PROMISE,
        {},
    )
    for shortest, is_green in ((length, True), (length + 1, False)):
        # The one line of a hundred that is shorter does not count.
        lengths = (1.0, *[float(shortest)] * 100)
        quality = replace(open_to_all, statistics={"length": lengths})
        found = quality.estimate(sure)
        assert found is not None
        assert found.is_green == is_green
        why = quality.why_not_green(replace(sure, estimate=found))
        assert ("shorter than 99 %" in why) == (not is_green)
    older = open_to_all.estimate(sure)
    assert older is not None
    assert older.is_green, "a file of an earlier version has no lengths"
