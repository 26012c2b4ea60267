"""The comparison of two systems: its figures and its table."""

import pytest

from transformer_cli.evaluation.metrics import measure_corpus, score_corpus
from transformer_cli.evaluation.system_comparison import compare_systems

from .scored_texts import REFERENCES, damaged

NAMES = ("bleu", "wer", "length_ratio")
GOOD, BAD = damaged(REFERENCES, 0.1, seed=1), damaged(REFERENCES, 0.6, seed=2)


def test_a_much_worse_system_differs_significantly_and_the_table_says_so() -> None:
    of = [measure_corpus(texts, REFERENCES, NAMES) for texts in (GOOD, BAD)]
    comparison = compare_systems(*of, "bad.txt")
    bleu, wer, ratio = comparison.differences
    assert [bleu.value, wer.value] == [one.value for one in score_corpus(GOOD, REFERENCES, NAMES)[:2]]
    assert bleu.other == score_corpus(BAD, REFERENCES, NAMES)[0].value
    assert bleu.value > bleu.other
    assert wer.value < wer.other
    assert bleu.p_value == pytest.approx(1 / 1001)
    heading, columns, *rows = comparison.lines()
    assert heading == "against bad.txt: paired bootstrap, 1,000 samples; * for p < 0.05"
    assert columns.split() == ["score", "this", "other", "difference", "p-value"]
    assert rows[0].split()[0] == "BLEU"
    assert rows[0].endswith("0.0010 *"), "as sacrebleu prints it"
    assert f"{ratio.value - ratio.other:+.3f}" in rows[2]


@pytest.mark.long
def test_systems_that_differ_in_few_words_may_differ_by_chance() -> None:
    similar = [*GOOD[:-1], REFERENCES[-1]]
    of = [measure_corpus(texts, REFERENCES, ["bleu"]) for texts in (GOOD, similar)]
    [bleu] = compare_systems(*of, "similar.txt").differences
    assert bleu.p_value > 0.05
    assert not compare_systems(*of, "similar.txt").lines()[-1].endswith("*")


@pytest.mark.long
def test_the_other_test_finds_the_same_in_these_systems_and_is_named() -> None:
    names = ("bleu", "chrf", "ter", "cer", "wer", "exact_match", "unknown", "length_ratio")
    of = [measure_corpus(texts, REFERENCES, names) for texts in (GOOD, BAD)]
    comparison = compare_systems(*of, "bad.txt", "randomization")
    assert comparison.lines()[0] == ("against bad.txt: approximate randomization, 10,000 samples; * for p < 0.05")
    assert (comparison.as_json()["test"], comparison.as_json()["samples"]) == (
        "randomization",
        10_000,
    )
    by_name = {one.name: one for one in comparison.differences}
    for name in ("BLEU", "chrF", "TER", "CER", "WER"):
        assert by_name[name].p_value == pytest.approx(1 / 10_001)
    assert by_name["unknown"].p_value == 1.0


@pytest.mark.long
@pytest.mark.parametrize(("num_different", "at_least"), [(0, 1.0), (1, 1.0), (2, 0.5), (4, 0.125)])
def test_a_few_sentences_that_differ_are_not_significant(num_different: int, at_least: float) -> None:
    first = [line.replace("acqua", "birra") for line in REFERENCES]
    rows = [row for row, line in enumerate(first) if "birra" in line][:num_different]
    better = [REFERENCES[row] if row in rows else line for row, line in enumerate(first)]
    of = [measure_corpus(texts, REFERENCES, ["wer"]) for texts in (better, first)]
    [wer] = compare_systems(*of, "first.txt", "randomization").differences
    assert wer.p_value == at_least  # of 2^K exchanges, all or none are as good as this
