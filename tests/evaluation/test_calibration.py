"""Calibration: bins against a plain loop, and the predictions of a model against its own next-token probabilities."""

import numpy as np
import pytest

from transformer_cli.data.pairs import SentencePair
from transformer_cli.evaluation.confidence import calibration, calibration_on

from ..decoding.small_translators import WORDS, tokenizer_of_words
from ..decoding.small_translators import translator as translator_of

RNG = np.random.default_rng(1)


def test_the_error_is_the_mean_distance_of_confidence_and_accuracy_over_the_bins() -> None:
    confidences, is_right = RNG.random(500), RNG.random(500) < 0.4
    found = calibration(confidences, is_right)
    expected = 0.0
    for number in range(10):
        inside = [i for i, p in enumerate(confidences) if number / 10 <= p < (number + 1) / 10]
        mean = sum(confidences[i] for i in inside) / len(inside)
        share = sum(is_right[i] for i in inside) / len(inside)
        expected += len(inside) / 500 * abs(mean - share)
        one = found.bins[number]
        assert (one.num_tokens, one.confidence, one.accuracy) == pytest.approx((len(inside), mean, share))
    assert found.error == pytest.approx(expected)
    assert found.confidence == pytest.approx(confidences.mean())
    assert found.accuracy == pytest.approx(is_right.mean())


def test_predictions_that_are_right_as_often_as_they_claim_have_almost_no_error() -> None:
    confidences = RNG.random(200_000)
    assert calibration(confidences, RNG.random(200_000) < confidences).error < 0.01
    assert calibration(confidences, RNG.random(200_000) < confidences / 2).error > 0.2


def test_a_certain_prediction_is_in_the_last_bin_and_no_prediction_is_no_error() -> None:
    found = calibration(np.array([1.0, 1.0]), np.array([True, False]))
    assert (found.bins[9].num_tokens, found.error) == (2, 0.5)
    assert calibration(np.zeros(0), np.zeros(0, np.bool_)).error == 0.0
    assert len(found.lines()) == 3
    assert found.lines()[-1].split() == ["90", "to", "100", "%", "2", "100.0", "%", "50.0", "%"]


def test_the_predictions_are_the_most_probable_tokens_after_the_beginning_of_the_reference() -> None:
    tokenizer = tokenizer_of_words()
    translator = translator_of(tokenizer)
    pairs = [SentencePair(" ".join(WORDS[:n]), " ".join(WORDS[n : 2 * n])) for n in (1, 2, 3)]
    confidences, is_right = [], []
    pipeline, engine = translator.pipeline, translator.engine
    for pair in [*pairs, SentencePair("", "")]:
        source_ids, target_ids = pipeline.source_ids(pair.source), pipeline.target_ids(pair.target)
        for place in range(len(target_ids)):
            probabilities = engine.next_token_probabilities(source_ids, target_ids[:place])
            confidences.append(float(probabilities.max()))
            is_right.append(int(probabilities.argmax()) == target_ids[place])
    found = calibration_on(translator, [*pairs, SentencePair("", "")])
    expected = calibration(np.array(confidences), np.array(is_right))
    assert found is not None
    assert found.error == pytest.approx(expected.error, abs=1e-5)
    assert found.confidence == pytest.approx(expected.confidence, abs=1e-5)
    assert [one.num_tokens for one in found.bins] == [one.num_tokens for one in expected.bins]
