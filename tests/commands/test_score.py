"""`tfm score`: what it reads, what it prints, and what it refuses."""

import gzip
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transformer_cli.commands import completion
from transformer_cli.commands.score import chosen_scores, score_command, target_language
from transformer_cli.config.schema import SCORES_BY_DEFAULT
from transformer_cli.evaluation.metrics import warn_of_characters, warn_of_script
from transformer_cli.process.errors import DataError, MissingInputError, UsageError

from ..evaluation.scored_texts import REFERENCES, by_sacrebleu, damaged, write_lines

HYPOTHESES = damaged(REFERENCES, 0.3, seed=1)
OTHERS = damaged(REFERENCES, 0.4, seed=2)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in (("system", HYPOTHESES), ("other", OTHERS), ("reference", REFERENCES)):
        write_lines(Path(name), lines)


def score(*references: str, hypothesis: str = "system", **options: Any) -> None:
    given: dict[str, Any] = {"as_json": True}
    score_command(Path(hypothesis), [Path(each) for each in references], **given | options)


def figures(capfd: pytest.CaptureFixture[str], *references: str, **options: Any) -> Any:
    score(*references, **options)
    return json.loads(capfd.readouterr().out)


@pytest.mark.process
def test_the_scores_are_those_of_the_command_of_sacrebleu(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_lines(Path("second"), OTHERS)
    for references in (["reference"], ["reference", "second"]):
        found = figures(capfd, *references, scores="bleu,chrf,ter")
        options = ["-m", "bleu", "chrf", "ter"]
        said = by_sacrebleu(Path(), references, "system", options=options)
        for one, of_command in zip(found["scores"], said, strict=True):
            assert one["value"] == pytest.approx(of_command["score"])
            assert one["signature"] == of_command["signature"]
        assert found["num_sentences"] == len(REFERENCES)
        assert found["references"] == references


@pytest.mark.long
def test_all_scores_that_need_no_further_package_come_with_intervals(
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = figures(capfd, "reference")
    assert [one["name"].lower() for one in found["scores"]] == list(SCORES_BY_DEFAULT)
    assert all(one["interval"]["half_width"] >= 0 for one in found["scores"])
    score("reference", as_json=False)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith(f"{len(REFERENCES)} sentences; ± 95 % confidence interval")
    bleu = found["scores"][0]
    assert lines[1].split()[:4] == [
        "BLEU",
        f"{bleu['value']:.2f}",
        "±",
        f"{bleu['interval']['half_width']:.2f}",
    ]


@pytest.mark.long
def test_the_mean_and_the_spread_over_seeds_are_those_of_the_files_alone(
    capfd: pytest.CaptureFixture[str], few_samples: None
) -> None:
    write_lines(Path("third"), damaged(REFERENCES, 0.2, seed=3))
    names = ["system", "other", "third"]
    alone = [
        [one["value"] for one in figures(capfd, "reference", hypothesis=name, scores="bleu,ter")["scores"]]
        for name in names
    ]
    seeds: dict[str, Any] = {"scores": "bleu,ter", "other_seeds": [Path("other"), Path("third")]}
    found = figures(capfd, "reference", against=Path("other"), **seeds)
    assert found["seeds"]["hypotheses"] == names
    for one, values in zip(found["seeds"]["scores"], zip(*alone, strict=True), strict=True):
        assert one["values"] == list(values)
        assert one["mean"] == pytest.approx(np.mean(values))
        assert one["deviation"] == pytest.approx(np.std(values, ddof=1))
    assert found["against"]["scores"][0]["other"] == alone[1][0]
    assert found["against"]["hypothesis"] == "system"
    score("reference", as_json=False, **seeds)
    table = capfd.readouterr().out.split("\n\n")[1].splitlines()
    bleu = [values[0] for values in alone]
    assert table[0].startswith("3 seeds")
    shown = np.mean(bleu), np.std(bleu, ddof=1), min(bleu), max(bleu)
    assert table[2].split() == ["BLEU", *(f"{value:.2f}" for value in shown)]


@pytest.mark.long
def test_a_p_value_beside_several_seeds_is_said_to_be_of_the_first_file_alone(
    capfd: pytest.CaptureFixture[str], few_samples: None
) -> None:
    write_lines(Path("third"), damaged(REFERENCES, 0.2, seed=3))
    given: dict[str, Any] = {"scores": "bleu", "against": Path("third"), "as_json": False}
    score("reference", other_seeds=[Path("other")], **given)
    expected = "This compares system alone with third: p and * say nothing about other seeds."
    assert capfd.readouterr().out.splitlines()[-1] == expected
    score("reference", **given)
    assert "seeds" not in capfd.readouterr().out


@pytest.mark.long
def test_another_system_is_compared(capfd: pytest.CaptureFixture[str]) -> None:
    found = figures(capfd, "reference", scores="bleu", against=Path("other"))["against"]
    alone = figures(capfd, "reference", hypothesis="other", scores="bleu")["scores"][0]["value"]
    [bleu] = found["scores"]
    assert (found["name"], bleu["other"]) == ("other", alone)
    assert 0 < bleu["p_value"] < 1
    score("reference", scores="bleu", against=Path("other"), as_json=False)
    assert "against other: paired bootstrap, 1,000 samples" in capfd.readouterr().out


@pytest.mark.long
def test_the_test_of_significance_can_be_chosen(capfd: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {"scores": "bleu,ter", "against": Path("other")}
    by_test = [
        figures(capfd, "reference", significance=test, **given)["against"]
        for test in (None, "bootstrap", "randomization")
    ]
    assert by_test[0] == by_test[1]
    assert [one["test"] for one in by_test] == ["bootstrap", "bootstrap", "randomization"]
    for bootstrap, randomization in zip(by_test[1]["scores"], by_test[2]["scores"], strict=True):
        assert bootstrap["other"] == randomization["other"]
        assert 0 < bootstrap["p_value"] != randomization["p_value"] < 1
    with pytest.raises(UsageError, match="--significance works only with --against"):
        score("reference", significance="randomization")


@pytest.mark.long
def test_compressed_files_and_bad_bytes_are_read(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    Path("packed.gz").write_bytes(gzip.compress(Path("system").read_bytes()))
    assert figures(capfd, "reference", hypothesis="packed.gz")["scores"] == (figures(capfd, "reference")["scores"])
    Path("system").write_bytes(b"caff\xe8\r\n" + b"x\n" * (len(REFERENCES) - 1))
    with caplog.at_level(logging.WARNING):
        score("reference")
    assert "not UTF-8" in caplog.text


@pytest.mark.process
def test_standard_input_is_a_dash_and_no_torch_is_imported() -> None:
    code = (
        "import sys; from transformer_cli.__main__ import main; sys.argv[1:] = "
        "['score', '-', 'reference', '--scores', 'bleu,cer', '--json']\n"
        "try: main()\n"
        "finally: assert 'torch' not in sys.modules, 'torch'"
    )
    command = [sys.executable, "-c", code]
    with Path("system").open("rb") as system:
        finished = subprocess.run(command, stdin=system, capture_output=True, check=False)
    assert b"AssertionError" not in finished.stderr
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["hypothesis"] == "-"


def test_files_that_do_not_fit_together_are_refused() -> None:
    write_lines(Path("short"), REFERENCES[:-1])
    with pytest.raises(DataError, match="system has 60 lines, short has 59 lines"):
        score("reference", "short")
    with pytest.raises(DataError, match="system has 60 lines, short has 59 lines"):
        score("reference", against=Path("short"))
    for name in ("empty", "nothing"):
        Path(name).write_text("")
    with pytest.raises(DataError, match="empty is empty"):
        score("nothing", hypothesis="empty")
    with pytest.raises(MissingInputError, match="lost: no such file"):
        score("lost")
    with pytest.raises(UsageError, match="standard input"):
        score("-", hypothesis="-")


def test_a_file_is_not_compared_with_itself_under_whatever_name() -> None:
    Path("link").symlink_to("other")
    os.link("other", "same")
    for twice in (
        {"other_seeds": [Path("system")]},
        {"other_seeds": [Path("other"), Path("link")]},
        {"other_seeds": [Path("other"), Path("same")]},
        {"against": Path("./system")},
    ):
        with pytest.raises(UsageError, match=r"this is the same file as .* compared with itself"):
            score("reference", **twice)


def test_an_unknown_score_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(UsageError, match="there is no score 'blue'") as refusal:
        chosen_scores("chrf,blue")
    assert str(refusal.value.hint).startswith("did you mean bleu? known: bleu, chrf")
    with pytest.raises(UsageError, match="names no score"):
        chosen_scores(" ,")


@pytest.mark.long
@pytest.mark.parametrize("language", ["zh", "ZH-cn", " zh_Hant", "zho", "cmn", "Chinese", "中文"])
def test_the_target_language_may_be_a_code_or_a_name(
    language: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    write_lines(
        Path("reference"),
        ["\u6211\u4eec\u6628\u5929\u53bb\u4e86\u706b\u8f66\u7ad9"] * len(HYPOTHESES),
    )
    found = figures(capfd, "reference", scores="bleu,ter", to=language)["scores"]
    assert "tok:zh" in found[0]["signature"]
    assert "asian:yes" in found[1]["signature"]
    assert not caplog.messages


@pytest.mark.parametrize(("language", "meant"), [("Chinesse", "did you mean chinese? "), ("+", "")])
def test_a_target_language_that_is_none_is_refused(language: str, meant: str) -> None:
    with pytest.raises(UsageError, match="this is not a known language") as refusal:
        score("reference", to=language)
    assert f"--to {language}: " in str(refusal.value)
    assert refusal.value.hint == f"{meant}give a code such as zh or pt-BR, or a name such as Chinese"


@pytest.mark.long
def test_a_code_of_a_language_that_is_not_known_is_taken_with_a_warning(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    found = figures(capfd, "reference", to="xx")
    assert found["scores"] == figures(capfd, "reference", to="it")["scores"]
    [warning] = caplog.messages
    assert warning.startswith("--to xx: this code is not known here; BLEU and TER split")


@pytest.mark.parametrize("language", ["hy", "ta", "am", "sw", "hy-AM", "tam", "arm", "Tamil", "armenian", "हिन्दी"])
def test_every_language_of_unicode_is_known_by_its_codes_and_its_name(
    language: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert target_language(language) == {
        "Tamil": "ta",
        "armenian": "hy",
        "हिन्दी": "hi",
    }.get(language, language)
    assert not caplog.messages


def test_scores_are_chosen_in_any_case_and_once() -> None:
    assert chosen_scores("TER, chrF++,ter") == ("ter", "chrf++")
    assert chosen_scores(None) == SCORES_BY_DEFAULT


def test_a_shell_completes_the_next_score() -> None:
    assert completion.scores("bleu,ch") == [("bleu,chrf", ""), ("bleu,chrf++", "")]


@pytest.mark.long
def test_the_groups_of_a_breakdown_are_scored_alone(capfd: pytest.CaptureFixture[str]) -> None:
    found = figures(capfd, "reference", scores="bleu,wer", breakdown=True)["breakdown"]
    [by_reference] = found
    assert by_reference["by"] == "words of reference"
    short = [row for row, line in enumerate(REFERENCES) if len(line.split()) <= 5]
    for name, lines in (("system", HYPOTHESES), ("reference", REFERENCES)):
        write_lines(Path(name), [lines[row] for row in short])
    group = by_reference["groups"][0]
    alone = figures(capfd, "reference", scores="bleu,wer")
    assert (group["label"], group["num_sentences"]) == ("1 to 5", len(short))
    assert group["scores"] == {one["name"]: one["value"] for one in alone["scores"]}


UNSPACED = {
    "zh": ("我们 昨天 去了 火车站", "tok:zh"),
    "ja": ("わたし は きのう えき に いきました", "tok:char"),
    "th": ("เมื่อวาน เรา ไป สถานี รถไฟ", "tok:char"),
    "lo": ("ມື້ວານນີ້ ພວກເຮົາ ໄປ ສະຖານີ", "tok:char"),
    "km": ("ម្សិលមិញ យើង បាន ទៅ ស្ថានីយ", "tok:char"),
    "my": ("မနေ့က ကျွန်တော်တို့ ဘူတာ သွားခဲ့တယ်", "tok:char"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("language", UNSPACED)
def test_references_without_spaces_are_split_by_their_script(
    language: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    words, tokenizer = UNSPACED[language]
    warn_of_script.cache_clear()
    write_lines(Path("reference"), [words.replace(" ", "")] * 3)
    write_lines(Path("system"), ["".join(words.split()[:-1])] * 3)
    found = figures(capfd, "reference", breakdown=True)
    [warning] = caplog.messages
    assert f"({language})" in warning
    named = figures(capfd, "reference", breakdown=True, to=language)
    assert found == named
    assert found["scores"][0]["value"] > 10
    assert tokenizer in found["scores"][0]["signature"]
    assert found["breakdown"][0]["by"] == "characters of reference"


def test_a_language_with_spaces_for_text_without_them_is_taken_with_a_warning(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_script.cache_clear()
    write_lines(Path("reference"), ["我们昨天去了火车站"] * len(HYPOTHESES))
    found = figures(capfd, "reference", to="en", scores="bleu")["scores"]
    assert "tok:13a" in found[0]["signature"]
    assert "for en, BLEU and TER still split them at spaces" in caplog.text


def test_a_language_without_spaces_for_text_with_them_is_taken_with_a_warning(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_characters.cache_clear()
    write_lines(Path("reference"), ["The dog is in the house, and I am not there."] * len(HYPOTHESES))
    found = figures(capfd, "reference", to="ja", scores="bleu")["scores"]
    assert "tok:char" in found[0]["signature"]
    assert "look like English (en), but ja is named, so BLEU compares characters" in caplog.text


@pytest.mark.long
@pytest.mark.parametrize("text", ["나는 어제 역에 갔다.", "Я вчера ходил на вокзал.", "12 + 30"])
def test_other_scripts_are_split_at_spaces(
    text: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    write_lines(Path("reference"), [text] * len(HYPOTHESES))
    found = figures(capfd, "reference", scores="bleu")["scores"]
    assert "tok:13a" in found[0]["signature"]
    assert not caplog.messages
