"""Error rates and the BLEU of papers equal what the commands of other programs print."""

import subprocess
import sys
from pathlib import Path

import pytest

from transformer_cli.evaluation.metrics import score_corpus

from .scored_texts import REFERENCES, by_sacrebleu, damaged, write_lines

HYPOTHESES = damaged(REFERENCES, 0.3, seed=1)


def printed(*command: str, given: str | None = None) -> str:
    """What Python prints with these arguments."""
    finished = subprocess.run(
        [sys.executable, *command],
        input=given,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return finished.stdout


@pytest.mark.process
@pytest.mark.parametrize(("name", "options"), [("wer", ()), ("cer", ("-c",))])
def test_error_rates_are_those_of_the_command_of_jiwer(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    reference = str(write_lines(tmp_path / "reference", REFERENCES))
    system = str(write_lines(tmp_path / "system", HYPOTHESES))
    said = float(printed("-m", "jiwer.cli", "-r", reference, "-h", system, *options))
    [score] = score_corpus(HYPOTHESES, REFERENCES, [name])
    assert score.value == pytest.approx(100 * said)
    assert said > 0.1


@pytest.mark.process
def test_bleu_of_papers_is_that_of_the_commands_of_sacremoses_and_sacrebleu(tmp_path: Path) -> None:
    for name, lines in (("reference", REFERENCES), ("system", HYPOTHESES)):
        text = "".join(f"{line}\n" for line in lines)
        command = ("-c", "from sacremoses.cli import cli; cli()")  # as its script does
        tokens = printed(*command, "-q", "-l", "it", "tokenize", given=text)
        write_lines(tmp_path / name, tokens.splitlines())
    options = ["--tokenize", "none", "--lowercase", "--force"]
    [said] = by_sacrebleu(tmp_path, ["reference"], "system", options=options)
    [score] = score_corpus(HYPOTHESES, REFERENCES, ["bleu_lc_moses"], target_language="it")
    assert score.value == pytest.approx(said["score"])
    [cased] = score_corpus(HYPOTHESES, REFERENCES, ["bleu"], target_language="it")
    assert score.value != pytest.approx(cased.value)
