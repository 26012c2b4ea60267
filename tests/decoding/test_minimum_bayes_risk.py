"""The choice by minimum Bayes risk equals a double loop over the scores of sacrebleu."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from transformer_cli.decoding import Hypothesis
from transformer_cli.decoding.minimum_bayes_risk import (
    by_expected_utility,
    chrf_matrix,
    expected_utilities,
)

words = st.sampled_from(["il", "gatto", "dorme", "dorme.", "x", "ö", "gattone", "è", ""])
texts = st.lists(st.lists(words, max_size=6).map(" ".join), min_size=1, max_size=7)


@given(texts=texts)
def test_the_matrix_holds_the_scores_of_sacrebleu(texts: list[str]) -> None:
    metric = CHRF()
    expected = [
        [metric.sentence_score(text, [reference]).score for reference in texts] for text in texts
    ]
    assert chrf_matrix(texts) == pytest.approx(np.array(expected), abs=1e-9)


@given(texts=texts)
def test_the_choice_is_that_of_a_double_loop(texts: list[str]) -> None:
    metric = CHRF()
    expected = []
    for text in texts:
        total = 0.0
        for reference in texts:
            total += metric.sentence_score(text, [reference]).score
        expected.append(total / len(texts))
    assert expected_utilities(texts) == pytest.approx(np.array(expected), abs=1e-9)
    candidates = [Hypothesis((number,), -float(number)) for number in range(len(texts))]
    ordered = by_expected_utility(candidates, lambda ids: texts[ids[0]])
    found = [expected[hypothesis.ids[0]] for hypothesis in ordered]
    assert found == pytest.approx(sorted(expected, reverse=True), abs=1e-9)
    assert sorted(ordered, key=lambda one: one.ids) == candidates


def test_of_equal_candidates_the_better_score_comes_first_and_repeated_ones_count() -> None:
    texts = ["uno", "due tre", "due tre", "quattro"]
    candidates = [Hypothesis((number,), -float(number)) for number in range(4)]
    ordered = by_expected_utility(candidates, lambda ids: texts[ids[0]])
    assert [one.ids[0] for one in ordered][:2] == [1, 2]
    alike = by_expected_utility(candidates, lambda ids: "same")
    assert alike == candidates
    assert by_expected_utility([], lambda ids: "") == []
