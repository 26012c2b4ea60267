import io
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Retention
from transformer_cli.cli import app
from transformer_cli.commands.runs import prune_runs, show_list, show_run_comparison
from transformer_cli.config import load_config, to_yaml
from transformer_cli.process.errors import TryAgainError, UsageError
from transformer_cli.storage import RunLock, append_json_line

from ..checkpoint.snapshots import saved, snapshot


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs: the best BLEU of `a` is at step 20; `b` has a larger model and one validation."""
    monkeypatch.chdir(tmp_path)
    make("a", {10: (3.0, 5.0), 20: (2.5, 9.0), 30: (2.4, 8.0)})
    make("b", {20: (2.0, 12.0)}, "model.d_model=512")
    return tmp_path / "runs"


def make(name: str, validations: dict[int, tuple[float, float]], *changes: str) -> None:
    run = Path("runs", name)
    checkpoints = Checkpoints(run, Retention(keep_last=9, metric="bleu"))
    for step, (loss, bleu) in validations.items():
        checkpoints.save(snapshot(step), bleu)
        scores = [{"name": "BLEU", "value": bleu, "signature": ""}]
        line = {"kind": "validation", "step": step, "loss": loss, "scores": scores}
        append_json_line(run / "metrics.jsonl", line)
        append_json_line(run / "metrics.jsonl", {"kind": "train", "step": step, "loss": 7.0})
    config = load_config("en-it.yaml", [f"name={name}", *changes])
    (run / "config.yaml").write_text(to_yaml(config))


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_the_list_has_a_row_for_each_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_list(runs, as_json=False)
    heads, first, second = shown(capsys).splitlines()
    assert heads.split() == [
        "run",
        "state",
        "step",
        "best",
        "at",
        "step",
        "size",
        "saved",
        "languages",
    ]
    assert first.split()[:6] == ["b", "resumable", "20", "bleu", "12", "20"]
    assert second.split()[:6] == ["a", "resumable", "30", "bleu", "9", "20"]
    show_list(runs, as_json=True)
    assert [run["name"] for run in json.loads(shown(capsys))["runs"]] == ["b", "a"]


def test_a_name_of_a_run_cannot_write_to_the_terminal(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(runs / "\x1b[31m", 1)
    show_list(runs, as_json=False)
    assert "\x1b" not in shown(capsys)


def test_a_comparison_shows_what_differs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_run_comparison(["a", "b"], runs, as_json=True)
    figures = json.loads(shown(capsys))
    assert figures["settings"] == {"model.d_model": [256, 512]}
    assert figures["best"] == [
        {"step": 20, "loss": 2.5, "bleu": 9.0},
        {"step": 20, "loss": 2.0, "bleu": 12.0},
    ]
    assert [last["step"] for last in figures["last"]] == [30, 20]
    assert [[at["step"] for at in curve] for curve in figures["curves"]] == [[10, 20, 30], [20]]
    show_run_comparison(["a", "runs/b"], runs, as_json=False)
    lines = [line.split() for line in shown(capsys).splitlines()]
    assert ["model.d_model", "256", "512"] in lines
    assert ["bleu", "9.0000", "8.0000", "12.00", "12.00"] in lines
    assert ["30", "2.4000", "-"] in lines, "the curve of the loss"


def test_lines_of_metrics_that_are_no_figures_are_passed_over(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = runs / "a" / "metrics.jsonl"
    with metrics.open("a") as file:
        file.write('{"kind": "validation", "step": 40, "loss": null, "scores": [7, {"name": 1}]}\n')
        file.write('{"kind": "validation", "step": "x"}\nnoise\n')
    show_run_comparison(["a", "b"], runs, as_json=True)
    assert json.loads(shown(capsys))["last"][0] == {"step": 40}


def test_one_run_cannot_be_compared(runs: Path) -> None:
    with pytest.raises(UsageError, match="two different runs or more are compared, found only "):
        show_run_comparison(["a", "runs/a"], runs, as_json=False)


def test_pruning_says_what_it_freed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prune_runs(
        ["a", "b"],
        runs,
        keep_last=1,
        keep_best=1,
        is_dry_run=True,
        is_confirmed=False,
        as_json=False,
    )
    first_line, second_line = shown(capsys).splitlines()
    assert first_line.startswith("a: would delete steps 10 (")
    assert first_line.endswith("; keeps 20, 30")
    assert second_line.startswith("b: nothing to delete; keeps ")
    assert len(list(runs.glob("a/checkpoints/step-*"))) == 3
    prune_runs(
        ["a", "b"],
        runs,
        keep_last=1,
        keep_best=1,
        is_dry_run=False,
        is_confirmed=True,
        as_json=True,
    )
    first, second = json.loads(shown(capsys))["runs"]
    assert (first["deleted"], sorted(first["kept"])) == ([10], [20, 30])
    assert first["freed_bytes"] > 0
    assert second["deleted"] == []
    assert len(list(runs.glob("a/checkpoints/step-*"))) == 2


def test_a_run_in_training_is_passed_over_and_what_was_done_to_the_others_is_told(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "a", runs / "c")
    with RunLock(runs / "b"), pytest.raises(TryAgainError, match="b: in use by ") as refused:
        prune_runs(
            ["a", "b", "c"],
            runs,
            keep_last=1,
            keep_best=1,
            is_dry_run=False,
            is_confirmed=True,
            as_json=True,
        )
    told = json.loads(shown(capsys))
    assert [(Path(one["run"]).name, one["deleted"]) for one in told["runs"]] == [("a", [10]), ("c", [10])]
    assert told["skipped"] == [{"run": str(runs / "b"), "reason": refused.value.message}]
    assert [len(list((runs / name / "checkpoints").glob("step-*"))) for name in "ac"] == [2, 2]


def test_without_a_terminal_nothing_is_asked_and_nothing_deleted(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError, match="no terminal to ask at") as refused:
        prune_runs(
            ["a"],
            runs,
            keep_last=1,
            keep_best=1,
            is_dry_run=False,
            is_confirmed=False,
            as_json=False,
        )
    assert "--yes" in str(refused.value.hint)
    assert len(list(runs.glob("a/checkpoints/step-*"))) == 3


@pytest.mark.long
@pytest.mark.parametrize(("answer", "num_left"), [("y\n", 2), ("n\n", 3), ("", 3)])
def test_at_a_terminal_the_answer_decides(
    runs: Path, monkeypatch: pytest.MonkeyPatch, answer: str, num_left: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    if num_left == 3:
        with pytest.raises(UsageError, match="nothing was deleted"):
            prune_runs(
                ["a"],
                runs,
                keep_last=1,
                keep_best=1,
                is_dry_run=False,
                is_confirmed=False,
                as_json=False,
            )
    else:
        prune_runs(
            ["a"],
            runs,
            keep_last=1,
            keep_best=1,
            is_dry_run=False,
            is_confirmed=False,
            as_json=False,
        )
    assert terminal.getvalue().startswith("delete 1 checkpoint (")
    assert len(list(runs.glob("a/checkpoints/step-*"))) == num_left


@pytest.mark.long
@pytest.mark.parametrize("before", ["--folder elsewhere --json", "--json --folder elsewhere"])
def test_options_before_a_subcommand_count(runs: Path, before: str) -> None:
    """`tfm runs --folder elsewhere prune a` deletes nothing under runs/."""
    shutil.copytree(runs, "elsewhere")
    (runs / "b").rename(runs / "c")
    done = CliRunner().invoke(app, ["runs", *before.split(), "prune", "a", "--yes"])
    assert json.loads(done.stdout)["runs"][0]["run"] == "elsewhere/a"
    assert len(list((runs / "a/checkpoints").glob("step-*"))) == 3
    assert len(list(Path("elsewhere/a/checkpoints").glob("step-*"))) == 2
    compared = CliRunner().invoke(app, ["runs", *before.split(), "compare", "a", "b"])
    assert json.loads(compared.stdout)["runs"] == ["a", "b"]
