import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import jiwer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.evaluation.metrics import Score, score_corpus
from transformer_cli.process.errors import DataError

ALL = ("bleu", "chrf", "ter", "cer", "wer")
REFERENCES = [
    "Le macchine rosse sono davanti alla stazione.",
    "Non ho mai visto un'isola così bella!",
    "Dov'è l'acqua?",
    "Costa 1.250,50 euro, più l'IVA.",
    "",
]
HYPOTHESES = [
    "Le macchine rosse sono davanti la stazione.",
    "Non ho visto mai un'isola tanto bella!",
    "",
    "Costa 1250 euro e più.",
    "Niente.",
]
CHINESE = (["红色的汽车在车站前面。"], ["红色汽车在车站前面。"])
JAPANESE = (["赤い車は駅の前にあります。"], ["赤い車が駅の前にある。"])


def by_command(
    folder: Path, hypotheses: Sequence[str], references: Sequence[str], *options: str
) -> list[dict[str, object]]:
    """The scores that the command `sacrebleu reference -i hypothesis` prints."""
    (folder / "reference").write_text("".join(f"{line}\n" for line in references), "utf-8")
    (folder / "hypothesis").write_text("".join(f"{line}\n" for line in hypotheses), "utf-8")
    command = [sys.executable, "-m", "sacrebleu", "reference", "-i", "hypothesis", "-w", "9"]
    finished = subprocess.run([*command, *options], cwd=folder, capture_output=True, encoding="utf-8", check=True)
    said = json.loads(finished.stdout)
    return said if isinstance(said, list) else [said]


def assert_same(scores: Sequence[Score], said: Sequence[dict[str, object]]) -> None:
    assert len(scores) == len(said)
    for score, of_command in zip(scores, said, strict=True):
        name = str(of_command["name"])
        assert score.name == ("chrF" if name == "chrF2" else name)
        assert score.value == pytest.approx(of_command["score"], abs=1e-8)
        assert score.signature == of_command["signature"]


@pytest.mark.process
def test_bleu_chrf_and_ter_are_those_of_the_command_of_sacrebleu(tmp_path: Path) -> None:
    said = by_command(tmp_path, HYPOTHESES, REFERENCES, "-m", "bleu", "chrf", "ter")
    scores = score_corpus(HYPOTHESES, REFERENCES, ["bleu", "chrf", "ter"], target_language="it")
    assert 0 < scores[0].value < 100
    assert_same(scores, said)


@pytest.mark.process
@pytest.mark.parametrize(
    ("language", "tokenizer", "corpus"),
    [("zh-CN", "zh", CHINESE), ("Zho", "zh", CHINESE), ("ja", "char", JAPANESE)],
)
def test_languages_without_spaces_have_a_tokenizer_of_their_own(
    tmp_path: Path, language: str, tokenizer: str, corpus: tuple[list[str], list[str]]
) -> None:
    references, hypotheses = corpus
    options = ["-m", "bleu", "ter", "-tok", tokenizer, "--ter-normalized", "--ter-asian-support"]
    said = by_command(tmp_path, hypotheses, references, *options)
    scores = score_corpus(hypotheses, references, ["bleu", "ter"], target_language=language)
    assert f"tok:{tokenizer}" in scores[0].signature
    assert_same(scores, said)
    spaced = score_corpus(hypotheses, references, ["bleu"], target_language="en")
    assert scores[0].value > spaced[0].value


@pytest.mark.parametrize("language", [None, "en", "de", "pt-BR", "Zha"])
def test_other_languages_have_the_default_tokenizer(language: str | None) -> None:
    [score] = score_corpus(HYPOTHESES, REFERENCES, ["bleu"], target_language=language)
    assert "tok:13a" in score.signature


def test_error_rates_are_those_of_jiwer_over_the_whole_corpus() -> None:
    references, hypotheses = REFERENCES[:4], HYPOTHESES[:4]
    cer, wer = score_corpus(hypotheses, references, ["cer", "wer"])
    assert cer.value == pytest.approx(100 * jiwer.cer(references, hypotheses))
    assert wer.value == pytest.approx(100 * jiwer.wer(references, hypotheses))
    for score, unit in ((cer, "character"), (wer, "word")):
        assert score.signature == (f"nrefs:1|case:mixed|unit:{unit}|library:jiwer|version:{metadata.version('jiwer')}")


def test_error_rates_are_corpus_level_and_not_means_of_sentences() -> None:
    cer, wer = score_corpus(["a", "b c d f"], ["x", "b c d e"], ["cer", "wer"])
    assert cer.value == pytest.approx(100 * 2 / 8)
    assert wer.value == pytest.approx(100 * 2 / 5)


def test_beside_an_empty_reference_everything_is_an_insertion() -> None:
    cer, wer = score_corpus(["a b c d", "e f", ""], ["a b c d", " ", ""], ["cer", "wer"])
    assert cer.value == pytest.approx(100 * 3 / 7)
    assert wer.value == pytest.approx(100 * 2 / 4)


@pytest.mark.parametrize(("hypothesis", "expected"), [("", 0.0), ("a", 100.0)])
def test_the_error_rate_against_an_empty_reference_is_0_or_100_percent(hypothesis: str, expected: float) -> None:
    assert [s.value for s in score_corpus([hypothesis], [""], ["cer", "wer"])] == [expected] * 2


def test_text_is_scored_as_it_is() -> None:
    raw, spaced = (
        score_corpus([text], ["Dov'è l'acqua?"], ["wer"])[0].value for text in ("Dov'è l'acqua?", "Dov ' è l ' acqua ?")
    )
    assert raw == 0.0
    assert spaced > 100.0


lines = st.lists(st.text(alphabet="ab .'è\u3000", max_size=12), min_size=1, max_size=4)


@given(references=lines)
def test_a_perfect_translation_has_no_errors(references: list[str]) -> None:
    scores = score_corpus(references, references, ["ter", "cer", "wer"])
    assert [score.value for score in scores] == [0.0, 0.0, 0.0]


def test_tokenised_text_is_warned_of_in_our_own_words(caplog: pytest.LogCaptureFixture) -> None:
    lines = [f"La casa {number} ." for number in range(100)]
    score_corpus(lines[1:], lines[1:], ["bleu"])
    score_corpus(lines, lines, ["chrf"])
    assert caplog.messages == []
    score_corpus(lines, lines, ["bleu"])
    (message,) = caplog.messages
    assert message.startswith("100 translations end with a space and a full stop, as tokenised text does")


def test_a_perfect_translation_has_full_marks() -> None:
    scores = score_corpus(REFERENCES, REFERENCES, ["bleu", "chrf"])
    assert [score.value for score in scores] == pytest.approx([100.0, 100.0])


@pytest.mark.long
@given(references=lines, data=st.data())
def test_any_text_can_be_scored(references: list[str], data: st.DataObject) -> None:
    size = len(references)
    hypotheses = data.draw(st.lists(st.text(max_size=9), min_size=size, max_size=size))
    for score in score_corpus(hypotheses, references, ALL):
        assert score.value >= 0.0


def test_scores_come_in_the_order_of_their_names() -> None:
    scores = score_corpus(HYPOTHESES, REFERENCES, ["wer", "BLEU", "chrF"])
    assert [score.name for score in scores] == ["WER", "BLEU", "chrF"]


def test_unequal_counts_are_refused_with_both() -> None:
    with pytest.raises(DataError, match="2 translations cannot be scored against 1 references"):
        score_corpus(["a", "b"], ["a"], ALL)


def test_an_empty_list_of_sentences_cannot_be_scored() -> None:
    with pytest.raises(DataError, match="no sentence to score"):
        score_corpus([], [], ALL)
