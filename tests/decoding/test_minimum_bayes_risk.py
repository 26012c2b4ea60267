"""The choice by minimum Bayes risk equals a double loop over the scores of sacrebleu."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Hypothesis
from transformer_cli.decoding.minimum_bayes_risk import (
    by_expected_utility,
    chrf_matrix,
    expected_utilities,
)

from .small_translators import WORDS, tokenizer_of_words, translator

words = st.sampled_from(["il", "gatto", "dorme", "dorme.", "x", "ö", "gattone", "è", ""])
texts = st.lists(st.lists(words, max_size=6).map(" ".join), min_size=1, max_size=7)


@pytest.mark.long
@given(texts=texts)
def test_the_matrix_holds_the_scores_of_sacrebleu(texts: list[str]) -> None:
    metric = CHRF()
    expected = [[metric.sentence_score(text, [reference]).score for reference in texts] for text in texts]
    assert chrf_matrix(texts) == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.long
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
    best_first = sorted(dict(zip(texts, expected, strict=True)).values(), reverse=True)
    assert found == pytest.approx(best_first, abs=1e-9)
    first_of_each = {texts[one.ids[0]]: one for one in reversed(candidates)}
    assert {*ordered} == {*first_of_each.values()}


def test_of_equal_candidates_the_better_score_comes_first_and_repeated_ones_count() -> None:
    texts = ["ab", "cd", "ef", "ef"]
    candidates = [Hypothesis((number,), -float(number)) for number in range(4)]
    ordered = by_expected_utility(candidates, lambda ids: texts[ids[0]])
    assert [one.ids[0] for one in ordered] == [2, 0, 1]
    assert by_expected_utility(candidates, lambda ids: "same") == candidates[:1]
    assert by_expected_utility([], lambda ids: "") == []


@pytest.mark.long
@pytest.mark.parametrize("sampling", [None, {"seed": 3}], ids=["beam", "samples"])
def test_a_translator_chooses_among_all_candidates(sampling: dict[str, int] | None) -> None:
    tokenizer = tokenizer_of_words()
    search = {"beam_size": 8, "sampling": sampling, "max_length": 6}
    by_score = translator(tokenizer, num_best=8, **search)
    by_risk = translator(tokenizer, num_best=2, mbr={"candidates": 8}, **search)
    lines = [f"{one} {other}" for one in WORDS for other in WORDS]
    num_changed = 0
    for all_of_line, chosen in zip(by_score.translate(lines), by_risk.translate(lines), strict=True):
        parts = by_score.pipeline.prepare(chosen.source).requests
        assert len(parts) == 1
        if sampling is None:
            texts = [one.text for one in all_of_line.alternatives]
            utilities = expected_utilities(texts)
            expected = sorted(texts, key=lambda text: -utilities[texts.index(text)])
            assert [one.text for one in chosen.alternatives] == expected[:2]
        assert {one.text for one in chosen.alternatives} <= {one.text for one in all_of_line.alternatives}
        assert chosen.text == chosen.alternatives[0].text
        num_changed += chosen.text != all_of_line.text
    assert num_changed > 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mbr": {"candidates": 5}}, r"mbr.candidates \(5\) is above beam_size \(4\)"),
        (
            {"mbr": {"candidates": 2}, "num_best": 3},
            r"num_best \(3\) is above mbr.candidates \(2\)",
        ),
        ({"mbr": {}, "beam_size": 1}, "nothing to choose from: beam_size is 1"),
        ({"mbr": {}, "sampling": {}, "num_best": 33}, r"above mbr.candidates \(32\)"),
    ],
)
def test_candidates_come_from_the_beam_and_the_best_from_the_candidates(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        DecodingConfig.model_validate(settings)


def test_without_a_number_the_whole_beam_or_32_samples_are_candidates() -> None:
    assert DecodingConfig.model_validate({"mbr": {}}).num_candidates == 4
    sampled = DecodingConfig.model_validate({"mbr": {}, "sampling": {}, "beam_size": 1})
    assert sampled.num_candidates == 32
    assert DecodingConfig(num_best=3).num_candidates == 3
    assert sampled.best_of_beam(2) == DecodingConfig(beam_size=2)
