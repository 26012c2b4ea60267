"""Confidence intervals and paired tests: the numbers are those of the command `sacrebleu`."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import _bootstrap_resample

from transformer_cli.evaluation.metrics import (
    Measurement,
    confidence_interval,
    measure_corpus,
    paired_p_value,
    resampled_scores,
    score_corpus,
)
from transformer_cli.evaluation.system_comparison import randomized_p_value

from .scored_texts import REFERENCES, by_sacrebleu, damaged, write_lines

HYPOTHESES = damaged(REFERENCES, 0.3, seed=1)
OTHERS = damaged(REFERENCES, 0.4, seed=2)
NAMES = ("bleu", "chrf", "ter")


def measured(hypotheses: Sequence[str]) -> list[Measurement]:
    return measure_corpus(hypotheses, REFERENCES, NAMES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(tmp_path / "reference", REFERENCES)
    write_lines(tmp_path / "system", HYPOTHESES)
    write_lines(tmp_path / "other", OTHERS)
    return tmp_path


@pytest.mark.process
def test_intervals_are_those_of_the_command_of_sacrebleu(folder: Path) -> None:
    options = ["-m", *NAMES, "--confidence"]
    said = by_sacrebleu(folder, ["reference"], "system", options=options)
    scores = score_corpus(HYPOTHESES, REFERENCES, NAMES, with_intervals=True)
    for score, of_command in zip(scores, said, strict=True):
        assert score.interval is not None
        assert score.interval.mean == pytest.approx(of_command["confidence_mean"])
        assert score.interval.half_width == pytest.approx(of_command["confidence_var"])
        assert score.interval.half_width > 0


def paired_by_sacrebleu(folder: Path, option: str) -> tuple[str, list[float]]:
    """The row of the system and its p-values, as the command prints them with 4 digits."""
    systems = ["reference", "-i", "other", "system", "-m", *NAMES, option]
    # Its JSON fails: it cannot hold the float32 numbers of NumPy.
    command = [sys.executable, "-m", "sacrebleu", *systems, "--format", "text", "-w", "9"]
    said = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=True)
    _, of_system, p_values, *_ = [
        line for line in said.stdout.splitlines() if "\N{BOX DRAWINGS LIGHT VERTICAL}" in line
    ][1:]
    return of_system, [float(one) for one in re.findall(r"p = (\S+)\)", p_values)]


@pytest.mark.process
def test_p_values_are_those_of_the_paired_bootstrap_of_sacrebleu(folder: Path) -> None:
    of_system, expected = paired_by_sacrebleu(folder, "--paired-bs")
    intervals = re.findall(r"\((\S+) ± (\S+)\)", of_system)
    assert len(intervals) == len(expected) == len(NAMES)
    for place, (mine, other) in enumerate(zip(measured(HYPOTHESES), measured(OTHERS), strict=True)):
        mean, half_width = map(float, intervals[place])
        assert confidence_interval(mine.resampled()) == pytest.approx((mean, half_width))
        difference = mine.value() - other.value()
        p_value = paired_p_value(mine.resampled(), other.resampled(), difference)
        assert p_value == pytest.approx(expected[place], abs=5e-5)


@pytest.mark.heavy
def test_p_values_are_those_of_the_approximate_randomization_of_sacrebleu(tmp_path: Path) -> None:
    """So many sentences are exchanged in several parts."""
    references = REFERENCES * 8
    systems = [damaged(references, 0.3, seed) for seed in (1, 2)]
    for name, lines in zip(("reference", "system", "other"), (references, *systems), strict=True):
        write_lines(tmp_path / name, lines)
    _, expected = paired_by_sacrebleu(tmp_path, "--paired-ar")
    for hypotheses, others in (systems, systems[::-1]):
        found = [
            randomized_p_value(mine.metric, mine.statistics, other.statistics)
            for mine, other in zip(
                measure_corpus(hypotheses, references, NAMES),
                measure_corpus(others, references, NAMES),
                strict=True,
            )
        ]
        assert found == pytest.approx(expected, abs=5e-5)
    assert all(0.0002 < one < 1 for one in expected)


@pytest.mark.long
def test_a_system_does_not_differ_from_itself_when_its_translations_are_exchanged() -> None:
    for name in NAMES:
        [one] = measure_corpus(HYPOTHESES, REFERENCES, [name])
        assert randomized_p_value(one.metric, one.statistics, one.statistics) == 1.0


def test_the_interval_of_every_other_score_contains_the_score() -> None:
    names = ["chrf++", "cer", "wer", "exact_match", "length_ratio", "bleu_lc_moses"]
    for score in score_corpus(HYPOTHESES, REFERENCES, names, with_intervals=True):
        assert score.interval is not None
        assert abs(score.value - score.interval.mean) <= score.interval.half_width, score.name


def test_sentences_that_are_all_alike_have_an_interval_of_no_width() -> None:
    [bleu] = score_corpus(["uno due tre"] * 9, ["uno due sei"] * 9, ["bleu"], with_intervals=True)
    assert bleu.interval == pytest.approx((bleu.value, 0.0), abs=1e-5)


def test_a_system_does_not_differ_from_itself() -> None:
    [bleu] = measure_corpus(HYPOTHESES, REFERENCES, ["bleu"])
    assert paired_p_value(bleu.resampled(), bleu.resampled(), 0.0) == 1.0


def test_samples_are_drawn_one_by_one_and_equal_those_that_sacrebleu_draws_at_once() -> None:
    metric = BLEU()
    statistics = metric._extract_corpus_statistics(HYPOTHESES, [REFERENCES])
    _, at_once = _bootstrap_resample(statistics, metric, 1000)
    assert resampled_scores(metric, statistics).tolist() == [one.score for one in at_once]
