"""`tfm ablate`: the list, the question, what it trains and prints, and what it refuses."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import typer

from transformer_cli.extensions.lessons.ablations import ABLATIONS, ablation_named
from transformer_cli.extensions.lessons.commands.ablate import (
    ablate_command,
    answer_lines,
    asked_prediction,
    question_lines,
)
from transformer_cli.extensions.lessons.laboratory import kept_folder
from transformer_cli.process import signals
from transformer_cli.process.errors import InterruptedBySignal, UsageError

TWO_STEPS = [
    "training.max_steps=2",
    "training.warmup_steps=1",
    "training.log_every=1",
    "data.num_pairs=200",
    "validation.max_sentences=4",
]
NAME = "no-causal-mask"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(prediction: int, *, as_json: bool = False) -> None:
    ablate_command(NAME, Path("out"), prediction, overrides=TWO_STEPS, as_json=as_json)


def test_the_list_has_each_ablation_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    ablate_command()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[: len(ABLATIONS)]] == [one.name for one in ABLATIONS]


def test_the_answer_trains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    ablate_command(NAME, answer=True)
    shown = capsys.readouterr().out
    assert "Answer 1: " in shown
    assert "Why: " in shown
    assert list(Path().iterdir()) == []


@pytest.mark.long
def test_a_run_prints_a_table_and_draws_the_curves_and_the_same_command_again_prints_json(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run(2)
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split("  ")[-2:] == ["with causal mask", "no causal mask"]
    assert "Your prediction, 2, was not right." in shown
    assert Path(f"out/{NAME}/curves.png").read_bytes().startswith(b"\x89PNG")
    assert f"out/{NAME}/no-causal-mask: its checkpoints are deleted" in caplog.text
    run(1, as_json=True)
    [line] = capsys.readouterr().out.splitlines()
    facts = json.loads(line)
    assert [one["variant"] for one in facts["outcomes"]] == ["with causal mask", "no causal mask"]
    assert facts["prediction"] == facts["right"] == 1
    assert json.loads(Path(f"out/{NAME}/result.json").read_text()) == facts


def test_a_prediction_that_does_not_exist_is_refused_before_training() -> None:
    with pytest.raises(UsageError, match="this question has 3 answers") as refused:
        run(4)
    assert f"tfm ablate {NAME} --answer shows them" in str(refused.value.hint)
    assert list(Path().iterdir()) == []


def test_a_person_is_asked_until_the_number_is_one_of_the_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed = iter(["7", "two", "2"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(typed))
    assert asked_prediction(ablation_named(NAME)) == 2


def test_nobody_is_asked_without_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert asked_prediction(ablation_named(NAME)) is None
    assert ablation_named(NAME).options[0] in " ".join(caplog.text.split())


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda one: one.name)
def test_the_lines_fit_a_terminal_of_100_columns(ablation: Any) -> None:
    lines = [*question_lines(ablation), *answer_lines(ablation, 1)]
    assert max(map(len, lines)) <= 100


def test_an_interrupted_training_says_how_to_go_on() -> None:
    folder = Path(f"out/{NAME}")
    with pytest.raises(InterruptedBySignal) as interrupted, kept_folder(folder):
        raise InterruptedBySignal(2, "stopped and saved at step 22")
    assert str(interrupted.value.hint).startswith(f"{folder}: finished trainings and checkpoints are kept")
    assert "the same command goes on" in str(interrupted.value.hint)


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_signal_leaves_no_empty_folder(has_begun: bool, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(f"out/{NAME}")
    with kept_folder(folder):
        if has_begun:
            (folder / "with-causal-mask").mkdir()
        [*signals._ending.cleanups.values()][-1]()  # what a signal does before it ends the process
    assert Path("out").exists() is has_begun
    told = "the same command goes on" if has_begun else "no training has begun"
    assert told in capsys.readouterr().err
