"""`tfm exercises`: what a learner types, reads and gets as exit code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_cli.extensions.lessons.exercises.catalogue import EXERCISES, exercise_named

from ....launcher import Tfm


def fill_in(tfm: Tfm, name: str, old: str = "", new: str = "") -> None:
    exercise = exercise_named(name)
    text = exercise.solution_file.read_text(encoding="utf-8")
    assert old in text
    (tfm.folder / "mine" / exercise.file_name).write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.heavy
def test_a_learner_makes_a_folder_fills_in_functions_and_checks_them(tfm: Tfm) -> None:
    made = tfm("exercises", "mine")
    assert made.exit_code == 0
    assert made.lines == [
        "wrote mine, with 9 exercises",
        "Begin with mine/README.md.",
        "Your work is checked by: tfm exercises --check mine",
    ]
    checked = tfm("exercises", "--check", "mine")
    assert checked.exit_code == 0
    assert [line.split(maxsplit=1) for line in checked.lines[:-3]] == [
        [exercise.name, "not begun"] for exercise in EXERCISES
    ]
    assert checked.lines[-3:] == [
        "finale            waits",
        "    it begins when all exercises pass",
        "0 of 9 pass; next: mine/01_causal_mask.py",
    ]
    fill_in(tfm, "causal_mask")
    fill_in(tfm, "scaled_attention", " / math.sqrt(queries.size(-1))")
    checked = tfm("exercises", "--check", "mine")
    assert checked.exit_code == 65
    assert checked.lines[:4] == [
        "causal_mask       passes",
        "scaled_attention  fails",
        "    attention: the scores are not divided by sqrt(d_k): the weights are softmax(Q K^T), so they",
        "      become extreme in wide heads, and the gradients small",
    ]
    assert checked.lines[-1] == "1 of 9 pass; next: mine/02_scaled_attention.py"
    assert checked.talk == (
        "tfm: scaled_attention: not right yet\n"
        "  hint: read the messages above; tfm exercises --check mine scaled_attention --hint tells more\n"
    )
    hinted = tfm("exercises", "--check", "mine", "scaled_attention", "--hint")
    assert hinted.lines[-2:] == [
        "    hint: divide by math.sqrt(queries.size(-1)) before the softmax",
        "0 of 1 pass; next: mine/02_scaled_attention.py",
    ]
    again = tfm("exercises", "mine")
    assert again.exit_code == 73
    assert "mine: exists, and is not overwritten" in again.talk
    assert "such as mine-2; to check your work: tfm exercises --check mine" in again.talk


def test_a_hint_for_an_exercise_that_is_not_begun_says_how_to_begin(tfm: Tfm) -> None:
    assert tfm("exercises", "mine").exit_code == 0
    hinted = tfm("exercises", "--check", "mine", "warmup", "--hint")
    assert hinted.exit_code == 0
    assert hinted.lines[0] == "warmup  not begun"
    assert "".join(hinted.lines[1:]).startswith("    hint: the smaller one of two curves is taken")


def test_the_outcomes_are_json_on_wish(tfm: Tfm) -> None:
    assert json.loads(tfm("exercises", "mine", "--json").text)["folder"] == "mine"
    checked = json.loads(tfm("exercises", "--check", "mine", "7", "--json").text)
    (outcome,) = checked["outcomes"]
    assert (outcome["name"], outcome["status"]) == ("greedy_search", "not begun")


def test_the_solution_comes_behind_a_warning(tfm: Tfm) -> None:
    shown = tfm("exercises", "--solution", "bleu")
    assert shown.exit_code == 0
    assert shown.text == exercise_named("bleu").solution_file.read_text(encoding="utf-8")
    assert shown.talk.startswith("warning: this is the solution of bleu; ")


def test_what_only_a_check_takes_is_refused_without_one(tfm: Tfm) -> None:
    refused = tfm("exercises", "mine", "heads")
    assert refused.exit_code == 2
    assert "hint: tfm exercises --check mine heads" in refused.talk
    assert not (tfm.folder / "mine").exists()


def test_ctrl_c_ends_a_check_and_its_child_process(tfm: Tfm) -> None:
    assert tfm("exercises", "mine").exit_code == 0
    path = tfm.folder / "child"
    loop = f"open({str(path)!r}, 'w').write(str(__import__('os').getpid()) + ' ')\n    while True: pass"
    fill_in(tfm, "causal_mask", "return torch", f"{loop}\n    return torch")
    process = tfm.start("exercises", "--check", "mine")
    process.wait_until(lambda: path.is_file() and path.read_text().endswith(" "))
    process.send(signal.SIGINT)
    assert process.wait().exit_code == 130
    process.wait_until(lambda: not is_running(int(path.read_text())))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.is_file() or ") Z " not in status.read_text()


@pytest.mark.heavy
@pytest.mark.process
def test_pytest_runs_the_same_checks(tfm: Tfm) -> None:
    assert tfm("exercises", "mine").exit_code == 0
    fill_in(tfm, "causal_mask")
    fill_in(tfm, "warmup", "min(", "max(")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "mine"],
        cwd=tfm.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert "1 failed, 1 passed, 7 skipped" in finished.stdout
    assert "the larger one of the two curves is taken" in finished.stdout
