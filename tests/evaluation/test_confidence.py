"""The confidence of a line: from the probabilities of its tokens; its correlation with quality, against a formula."""

import math

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from transformer_cli.decoding import Translation
from transformer_cli.evaluation.confidence import confidence_report, rank_correlation

from ..decoding.small_translators import WORDS, tokenizer_of_words, translator

RNG = np.random.default_rng(1)


@pytest.mark.long
def test_the_confidence_is_the_geometric_mean_of_the_probabilities_of_the_tokens() -> None:
    of = translator(tokenizer_of_words())
    lines = ["uno due", "tre. quattro cinque", "", WORDS[5]]
    for line, found in zip(lines, of.translate(lines, with_details=True), strict=True):
        prepared = of.pipeline.prepare(line)
        product, num_tokens = 1.0, 0
        for request, [best, *_] in zip(
            prepared.requests, of.engine.translate(prepared.requests, of.decoding), strict=True
        ):
            for place, token in enumerate(best.ids):
                probabilities = of.engine.next_token_probabilities(request.ids, best.ids[:place])
                product *= float(probabilities[token])
                num_tokens += 1
        expected = product ** (1 / num_tokens) if num_tokens else 0.0
        assert (found.confidence or 0.0) == pytest.approx(expected, rel=1e-4)


def test_without_details_there_is_no_confidence() -> None:
    translation = Translation("uno", "one", -1.0, ())
    assert translation.confidence is None
    assert confidence_report([translation], ["one"]) is None


def test_the_correlation_without_ties_is_spearmans_formula() -> None:
    first, second = RNG.permutation(30), RNG.permutation(30)
    distances = ((first - second) ** 2).sum()
    assert rank_correlation(first, second) == pytest.approx(1 - 6 * distances / (30 * (30**2 - 1)))
    assert rank_correlation(first, np.exp(first / 9)) == pytest.approx(1.0)
    assert rank_correlation(first, -first) == pytest.approx(-1.0)


def test_equal_numbers_have_the_mean_of_their_ranks() -> None:
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3.5, 3.5: Pearson's correlation of these.
    ranks = [1, 2.5, 2.5, 4], [1, 2, 3.5, 3.5]
    expected = np.corrcoef(*ranks)[0, 1]
    assert rank_correlation([5, 7, 7, 9], [0, 1, 2, 2]) == pytest.approx(expected)


def test_a_constant_list_has_no_correlation() -> None:
    assert math.isnan(rank_correlation([1, 1, 1], [1, 2, 3]))


def test_quarters_hold_all_lines_the_least_confident_first() -> None:
    of = translator(tokenizer_of_words())
    lines = [" ".join(RNG.choice(WORDS, size=n % 4 + 1)) for n in range(10)]
    references = [" ".join(RNG.choice(WORDS, size=2)) for _ in lines]
    found = list(of.translate(lines, with_details=True))
    report = confidence_report(found, references)
    assert report is not None
    assert sum(quarter.num_lines for quarter in report.quarters) == len(lines)
    means = [quarter.confidence for quarter in report.quarters]
    assert means == sorted(means)
    chrf = [
        CHRF().sentence_score(one.text, [reference]).score for one, reference in zip(found, references, strict=True)
    ]
    total = sum(quarter.num_lines * quarter.chrf for quarter in report.quarters)
    assert total == pytest.approx(sum(chrf))
    confidences = [one.confidence for one in found]
    assert None not in confidences
    assert report.correlation == pytest.approx(rank_correlation(confidences, chrf), nan_ok=True)
    assert len(report.lines()) == 2 + len(report.quarters)
