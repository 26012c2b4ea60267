"""Checking a folder: blanks, faults of every kind in a learner's code, its output, and the finale."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import transformer_cli
from transformer_cli.extensions.lessons.exercises import learner_folder
from transformer_cli.extensions.lessons.exercises.catalogue import (
    EXERCISES,
    Exercise,
    WrongAnswer,
    exercise_named,
    exercises_named,
)
from transformer_cli.extensions.lessons.exercises.finale import play_finale
from transformer_cli.extensions.lessons.exercises.learner_code import LimitedOutput, load_module
from transformer_cli.extensions.lessons.exercises.learner_folder import (
    blank_file,
    blank_functions,
    check_folder,
    write_folder_of_exercises,
)
from transformer_cli.process.errors import CannotCreateError, MissingInputError, UsageError

from .solved import solve

pytestmark = pytest.mark.process
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)


@each_exercise
def test_a_blank_file_has_the_docstrings_and_no_line_of_the_solution(exercise: Exercise) -> None:
    blank = blank_file(exercise)
    solution = exercise.solution_file.read_text(encoding="utf-8")
    assert set(blank.splitlines()) - set(solution.splitlines()) == {
        f'    raise NotImplementedError("{name} is blank: replace this line with your code")'
        for name in exercise.functions
    }
    assert blank.count('"""') == 2 + 2 * len(exercise.functions)
    assert "return " not in blank
    assert "Returns:" in blank
    assert "def _" not in blank
    assert "In tfm: `" + exercise.answered_by in " ".join(blank.split())
    assert f"section {exercise.paper}" in blank


@each_exercise
def test_the_file_that_answers_an_exercise_exists(exercise: Exercise) -> None:
    assert (Path(transformer_cli.__file__).parent / exercise.answered_by).is_file()


def test_a_new_folder_is_not_begun_and_needs_no_child_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_folder, "_run_one_child", lambda *_: pytest.fail("a child was started"))
    write_folder_of_exercises(tmp_path / "mine")
    outcomes = check_folder(tmp_path / "mine", with_finale=True)
    assert [one.status for one in outcomes] == ["not begun"] * len(EXERCISES) + ["waits"]


def test_the_readme_of_a_folder_lists_each_file(tmp_path: Path) -> None:
    write_folder_of_exercises(tmp_path / "mine")
    readme = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    for exercise in EXERCISES:
        functions = ", ".join(f"`{name}`" for name in exercise.functions)
        row = f"| `{exercise.file_name}` | {functions} | {exercise.paper} | `{exercise.answered_by}` |"
        assert row in readme
        assert (tmp_path / "mine" / exercise.file_name).is_file()
    assert "{" not in readme
    assert "tfm exercises --check mine" in readme


def test_a_folder_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine-2").mkdir()
    with pytest.raises(CannotCreateError) as refused:
        write_folder_of_exercises(tmp_path / "mine")
    assert refused.value.message == f"{tmp_path}/mine: exists, and is not overwritten"
    assert f"another name, such as {tmp_path}/mine-3;" in str(refused.value)
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_folder_without_exercises_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="no exercises in this folder") as refused:
        check_folder(tmp_path)
    assert "tfm exercises my-exercises makes" in str(refused.value.hint)  # the folder itself exists
    with pytest.raises(MissingInputError, match="x: no such folder") as refused:
        check_folder(tmp_path / "x")
    assert "tfm exercises x makes" in str(refused.value.hint)


@pytest.mark.parametrize("name", ["3", "heads", "03_heads", "03_heads.py", "a/03_heads.py", "join_heads"])
def test_an_exercise_has_several_names(name: str) -> None:
    assert exercise_named(name).name == "heads"


def test_an_unknown_exercise_is_refused_with_the_known_names() -> None:
    with pytest.raises(UsageError, match=r"hats: no exercise has this name\n.*scaled_attention"):
        exercises_named(["heads", "hats"])


def test_a_function_is_blank_only_as_long_as_it_has_no_other_line(tmp_path: Path) -> None:
    path, heads = tmp_path / "a.py", exercise_named("heads")
    path.write_text(blank_file(heads))
    assert blank_functions(path, heads) == ("split_heads", "join_heads")
    text = path.read_text()
    path.write_text(text.replace("    raise", "    num = 1\n    raise", 1))
    assert blank_functions(path, heads) == ("join_heads",)
    path.write_text("def split_heads(:")
    assert blank_functions(path, heads) == ()


# What is put before the body of a function; or, with a name, another text for it.
FAULTS = {
    "causal_mask": (
        "    return torch",
        "    print('T', num_positions)\n    return torch.ones(3).reshape(7)\n    return torch",
    ),
    "scaled_attention": ("    return weights", "    return weights.x.."),
    "heads": ("    return x", "    import os; os._exit(3)\n    return x"),
    "sinusoids": ("    positions = ", "    raise SystemExit('bye')\n    positions = "),
    "label_smoothing": ("def smoothed_loss", "def smooth_loss"),
    "warmup": ("warmup_steps: int", "*, warmup_steps: int"),
    "greedy_search": ("    ids: list[int] = []", "    ids = []\n    while True:\n        print('again')"),
    "beam_search": ("import Callable", "import Callable, Nothing"),
    "bleu": ("    log_precisions = []", "    log_precisions = [*corpus_bleu(hypotheses, references)]"),
}
# The message, and the learner's own line.
WANTED = {
    "causal_mask": (
        "the code stops with an error: RuntimeError: shape '[7]' is invalid for input of size 3",
        "return torch.ones(3).reshape(7)",
    ),
    "scaled_attention": ("the file is not Python: invalid syntax", "return weights.x.. @ values"),
    "heads": ("the code ended the Python process, with exit code 3", ""),
    "sinusoids": ("the code calls sys.exit or exit", "raise SystemExit('bye')"),
    "label_smoothing": ("the function smoothed_loss is missing", ""),
    "warmup": ("the function cannot be called or compared: TypeError: learning_rate() takes 2", ""),
    "greedy_search": ("the code was stopped after 5 seconds; is there a loop without an end?", ""),
    "beam_search": (
        "the code stops with an error: ImportError: cannot import name 'Nothing'",
        "from collections.abc import Callable, Nothing",
    ),
    "bleu": (
        "the code stops with an error: RecursionError: maximum recursion depth exceeded",
        "log_precisions = [*corpus_bleu(hypotheses, references)]",
    ),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exercises") / "faulty"
    solve(folder)
    for name, (old, new) in FAULTS.items():
        path = folder / exercise_named(name).file_name
        text = path.read_text(encoding="utf-8")
        assert old in text, name
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


@pytest.mark.heavy
def test_every_fault_of_a_learners_code_is_told_and_stops_no_other_check(
    faulty: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcomes = {one.name: one for one in check_folder(faulty, max_seconds=5.0)}
    talk = capfd.readouterr().err
    assert list(outcomes) == list(FAULTS)
    for name, (message, _) in WANTED.items():
        assert outcomes[name].status == "fails"
        assert outcomes[name].message.startswith(message), outcomes[name]
        assert outcomes[name].hint
    assert outcomes["scaled_attention"].hint.startswith("mend this line")
    assert outcomes["sinusoids"].hint == "end the function with return"
    for name, (_, line) in WANTED.items():
        if line:
            file_name = exercise_named(name).file_name
            numbered = enumerate((faulty / file_name).read_text().splitlines(), start=1)
            (number,) = [number for number, text in numbered if text.strip() == line]
            assert outcomes[name].lines[-1].startswith(f"{file_name}, line {number}")
            assert outcomes[name].lines[-1].endswith(f": {line}")
    assert outcomes["greedy_search"].lines[-1].startswith("07_greedy_search.py, line ")
    assert not any("transformer_cli" in line for one in outcomes.values() for line in one.lines)
    assert "01_causal_mask.py prints: T 5\n" in talk
    assert 10 < talk.count("07_greedy_search.py prints: again\n") < 30
    assert "07_greedy_search.py prints: ... (the rest of what this code prints is left out)\n" in talk


def test_what_code_prints_ends_once_whether_it_prints_lines_alone_or_together(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for texts in (["again\n"] * 50, ["again\n" * 50, "more\n" * 50]):
        printed = LimitedOutput("a.py")
        for text in texts:
            printed.write(text)
        printed.flush()
        rows = capfd.readouterr().err.splitlines()
        assert rows == [
            *["a.py prints: again"] * 19,
            "a.py prints: ... (the rest of what this code prints is left out)",
        ]


def test_a_check_leaves_no_files_and_some_exercises_can_be_checked_alone(tmp_path: Path) -> None:
    solve(tmp_path / "mine")
    heads = tmp_path / "mine" / "03_heads.py"
    blank = blank_file(exercise_named("heads"))
    right = "return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)"
    heads.write_text(blank.replace("    raise", f"    {right}\n    raise", 1))
    before = sorted(tmp_path.rglob("*"))
    outcomes = check_folder(tmp_path / "mine", exercises_named(["warmup", "1", "heads"]))
    assert [(one.name, one.status) for one in outcomes] == [
        ("warmup", "passes"),
        ("causal_mask", "passes"),
        ("heads", "fails"),
    ]
    assert outcomes[2].message == "join_heads is blank: replace this line with your code"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_is_missing_or_half_blank_fails(tmp_path: Path) -> None:
    write_folder_of_exercises(tmp_path / "mine")
    (tmp_path / "mine" / "01_causal_mask.py").unlink()
    heads = tmp_path / "mine" / "03_heads.py"
    heads.write_text(heads.read_text().replace("    raise", "    return x\n    raise", 1))
    outcomes = check_folder(tmp_path / "mine")
    assert outcomes[0].message == "the file 01_causal_mask.py is missing"
    assert (outcomes[2].status, outcomes[2].message[:12]) == ("fails", "split_heads:")  # the half that is there


@pytest.mark.long
def test_functions_that_do_not_work_together_fail_in_the_finale() -> None:
    functions: dict[str, Any] = {one.name: load_module(one.solution_file) for one in EXERCISES}
    heads = functions["heads"]
    functions["heads"] = SimpleNamespace(split_heads=heads.split_heads, join_heads=lambda x: 0 * heads.join_heads(x))
    with pytest.raises(WrongAnswer, match="the model has not learned to copy: BLEU "):
        list(play_finale(functions, num_updates=20))


@pytest.mark.heavy
def test_a_solved_folder_trains_a_transformer_that_copies(tmp_path: Path) -> None:
    solve(tmp_path / "mine")
    outcomes = check_folder(tmp_path / "mine", with_finale=True)
    assert [one.status for one in outcomes] == ["passes"] * 10
    assert outcomes[-1].lines[0].startswith("loss per token: 2.")
    assert outcomes[-1].lines[-1].startswith("BLEU of 20 new sequences: ")
