"""Scores beside BLEU, chrF, TER, CER and WER: chrF++, shares of lines and words, lengths, BLEU of papers; several references."""

import re
import sys
from pathlib import Path

import jiwer
import pytest
from sacrebleu.metrics import BLEU

from transformer_cli.config import ValidationConfig
from transformer_cli.config.schema import SCORES_BY_DEFAULT
from transformer_cli.evaluation.metrics import metric_of, score_corpus
from transformer_cli.process.errors import UsageError

from .scored_texts import REFERENCES, by_sacrebleu, damaged, write_lines

HYPOTHESES = damaged(REFERENCES, 0.3, seed=1)
OTHER_REFERENCES = damaged(REFERENCES, 0.2, seed=2)


@pytest.mark.process
def test_chrf_plus_plus_is_that_of_the_command_of_sacrebleu(tmp_path: Path) -> None:
    write_lines(tmp_path / "reference", REFERENCES)
    write_lines(tmp_path / "system", HYPOTHESES)
    options = ["-m", "chrf", "--chrf-word-order", "2"]
    [said] = by_sacrebleu(tmp_path, ["reference"], "system", options=options)
    [score] = score_corpus(HYPOTHESES, REFERENCES, ["chrf++"])
    assert (score.value, score.signature) == (pytest.approx(said["score"]), said["signature"])
    assert said["name"] == "chrF2++"
    assert score.name == "chrF++"


@pytest.mark.process
def test_with_several_references_the_scores_are_those_of_the_command_of_sacrebleu(
    tmp_path: Path,
) -> None:
    write_lines(tmp_path / "one", REFERENCES)
    write_lines(tmp_path / "two", OTHER_REFERENCES)
    write_lines(tmp_path / "system", HYPOTHESES)
    options = ["-m", "bleu", "chrf", "ter"]
    said = by_sacrebleu(tmp_path, ["one", "two"], "system", options=options)
    scores = score_corpus(HYPOTHESES, [REFERENCES, OTHER_REFERENCES], ["bleu", "chrf", "ter"])
    for score, of_command in zip(scores, said, strict=True):
        assert score.value == pytest.approx(of_command["score"])
        assert score.signature == of_command["signature"]
        assert "nrefs:2" in score.signature


def test_of_several_references_error_rates_count_the_nearest_one() -> None:
    hypotheses, references = ["a b c", "d e"], [["a b c d", "d e"], ["a b", "x"]]
    cer, wer, exact = score_corpus(hypotheses, references, ["cer", "wer", "exact_match"])
    assert wer.value == pytest.approx(100 * jiwer.wer(["a b c d", "d e"], hypotheses))
    assert cer.value == pytest.approx(100 * jiwer.cer(["a b c d", "d e"], hypotheses))
    assert exact.value == 50.0


def test_exact_matches_are_counted_by_words() -> None:
    hypotheses = ["uno  due ", "uno due", "Uno due", ""]
    [score] = score_corpus(hypotheses, ["uno due"] * 3 + [""], ["exact_match"])
    assert score.value == 75.0


def test_unknown_words_are_a_share_of_all_words() -> None:
    [score] = score_corpus(["il [UNK] dorme .", "[UNK]"], ["a", "b"], ["unknown"])
    assert score.value == pytest.approx(100 * 2 / 5)
    assert score_corpus([""], ["a"], ["unknown"])[0].value == 0.0


@pytest.mark.process
def test_the_ratio_of_lengths_is_the_one_that_sacrebleu_prints_after_bleu(tmp_path: Path) -> None:
    write_lines(tmp_path / "reference", REFERENCES)
    write_lines(tmp_path / "system", HYPOTHESES)
    [said] = by_sacrebleu(tmp_path, ["reference"], "system", options=[])
    [printed] = re.findall(r"ratio = ([0-9.]+)", str(said["verbose_score"]))
    [score] = score_corpus(HYPOTHESES, REFERENCES, ["length_ratio"])
    assert f"{score.value:.3f}" == printed
    assert score.value < 1
    assert score.signature == re.sub(r"eff:no\||smooth:exp\|", "", str(said["signature"]))


@pytest.mark.parametrize("language", ["it", "de", None])
def test_bleu_of_papers_is_bleu_of_lower_cased_moses_tokens(language: str | None) -> None:
    from sacremoses import MosesTokenizer  # takes a third of a second, also where these tests are only collected

    moses = MosesTokenizer(language or "en")
    hypotheses, references = (
        [moses.tokenize(line, return_str=True).lower() for line in lines] for lines in (HYPOTHESES, REFERENCES)
    )
    expected = BLEU(tokenize="none", force=True).corpus_score(hypotheses, [references]).score
    names = ["bleu_lc_moses", "bleu"]
    score, cased = score_corpus(HYPOTHESES, REFERENCES, names, target_language=language)
    assert score.value == pytest.approx(expected)
    assert score.value != pytest.approx(cased.value)
    assert f"case:lc|eff:no|tok:moses-{language or 'en'}-sacremoses-" in score.signature


def test_without_sacremoses_the_message_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UsageError, match="bleu_lc_moses needs the package sacremoses") as refusal:
        score_corpus(["a"], ["a"], ["bleu_lc_moses"])
    assert 'pip install ".[scores]"' in str(refusal.value.hint)


def test_every_name_of_the_config_is_a_score() -> None:
    names = [*SCORES_BY_DEFAULT, "bleu_lc_moses"]
    assert ValidationConfig.model_validate({"scores": names}).scores == tuple(names)
    for name in names:
        assert metric_of(name) is not None
    scores = score_corpus(HYPOTHESES, REFERENCES, names)
    assert [score.name.lower() for score in scores] == names
