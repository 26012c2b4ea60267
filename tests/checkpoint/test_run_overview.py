"""The list of runs: what it says about each, and that it needs no PyTorch and no whole run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.limits import is_finished
from transformer_cli.checkpoint.run_folder import Retention
from transformer_cli.checkpoint.runs import interrupted_at, list_runs, overview
from transformer_cli.config import load_config, to_yaml
from transformer_cli.config.schema import TrainingConfig
from transformer_cli.process.errors import MissingInputError
from transformer_cli.storage import RunLock
from transformer_cli.training.loop import Progress

from .snapshots import saved, snapshot

CONFIG = ["training.max_steps=100", "training.max_epochs=3", "training.patience=2"]


def run_with(folder: Path, progress: Progress) -> Path:
    """A run whose newest checkpoint has this progress."""
    state = {"progress": progress.to_json(), "validation": {"step": progress.step, "loss": 2.0}}
    of_step = snapshot(progress.step)
    object.__setattr__(of_step, "state", state)
    Checkpoints(folder, Retention(metric="bleu")).save(of_step, 12.5)
    (folder / "config.yaml").write_text(to_yaml(load_config("en-it.yaml", CONFIG)))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("step", [99, 100, 101])
@pytest.mark.parametrize("epoch", [2, 3])
@pytest.mark.parametrize("validated_at", [0, 99, 100])
@pytest.mark.parametrize("without_best", [1, 2])
@pytest.mark.parametrize("place_in_a_stream", [[], [2, 0, 10]])
def test_a_run_is_finished_when_the_training_says_so(
    step: int,
    epoch: int,
    validated_at: int,
    without_best: int,
    place_in_a_stream: list[int],
    tmp_path: Path,
) -> None:
    if validated_at > step:
        return
    progress = Progress.from_json(
        Progress(step, validated_at=validated_at, validations_without_best=without_best).to_json()
        | {"position": [epoch, 0, *place_in_a_stream]}
    )
    training: TrainingConfig = load_config("en-it.yaml", CONFIG).training
    found = overview(run_with(tmp_path / "a", progress))
    # After the last validation of the last step, nothing is due any more.
    expected = "finished" if is_finished(progress, training) else "resumable"
    assert (found.status, found.step, found.problem) == (expected, step, None)
    assert interrupted_at(tmp_path / "a") == (step if expected == "resumable" else None)


def test_a_run_that_has_its_average_alone_is_finished(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", Progress(7))
    step = run / "checkpoints/step-00000007"
    step.rename(step.with_name("average-00000007"))
    found = overview(run)
    assert (found.status, found.step, found.best) == ("finished", 7, 12.5)
    assert interrupted_at(run) is None


def test_a_run_without_the_state_of_its_training_is_not_called_interrupted(tmp_path: Path) -> None:
    """Its translations would come with a command that cannot go on."""
    run = tmp_path / "weights alone"
    saved(run, 7)
    (run / "config.yaml").write_text(to_yaml(load_config("en-it.yaml", CONFIG)))
    assert interrupted_at(run) is None


def test_a_run_is_listed_with_its_score_languages_and_size(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", Progress(7))
    found = overview(run)
    assert (found.metric, found.best, found.best_step, found.num_checkpoints) == (
        "bleu",
        12.5,
        7,
        1,
    )
    assert found.languages == "en-it"
    files = [path for path in run.rglob("*") if path.is_file()]
    assert found.size_bytes == sum(path.lstat().st_size for path in files)
    assert found.saved_at is not None
    assert abs(found.saved_at / 1000 - time.time()) < 60
    (run / "config.yaml").write_text(
        to_yaml(load_config("en-it.yaml", ["data.both_directions=true", "tokenizer.shared=true"]))
    )
    assert overview(run).languages == "en-it, it-en"


def test_a_run_is_running_while_its_lock_is_held(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", Progress(7))
    with RunLock(run):
        assert overview(run).status == "running"
        long_ago = time.time() - 3600
        os.utime(run / ".lock", (long_ago, long_ago))
        assert overview(run).status == "resumable", "without a heartbeat the holder is dead"
    assert overview(run).status == "resumable"


@pytest.mark.process
def test_the_process_that_holds_a_lock_must_be_alive(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", Progress(7))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    import socket

    for process_id in (ended.pid, 0, -1, 10**30, "7", None):
        (run / ".lock").write_text(json.dumps({"pid": process_id, "host": socket.gethostname()}))
        assert overview(run).status == "resumable"
    (run / ".lock").write_text(json.dumps({"pid": 1, "host": "another machine"}))
    assert overview(run).status == "running"


def test_damaged_runs_are_shown_as_such(tmp_path: Path) -> None:
    saved(tmp_path / "whole", 1)
    (broken,) = saved(tmp_path / "no manifest", 1)
    (broken / "MANIFEST.json").unlink()
    for name, text in (
        ("yaml", "a: [b"),
        ("nothing", ""),
        ("list", "- a"),
        ("other", "data: {source: nowhere}"),
        ("deep", "[" * 5000),
        ("binary", "\0\ud800"),
        ("tags", "data: !!python/object/apply:os.system [false]"),
    ):
        folder = tmp_path / name
        saved(folder, 1)
        (folder / "config.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "train.log").touch()
    (tmp_path / "a file").touch()
    (tmp_path / "no run").mkdir()
    statuses = {run.name: run.status for run in list_runs(tmp_path)}
    damaged = ("no manifest", "yaml", "nothing", "list", "other", "deep", "binary", "tags")
    assert statuses == dict.fromkeys(damaged, "damaged") | {
        "whole": "resumable",
        "begun": "empty",
    }
    assert all(run.problem for run in list_runs(tmp_path) if run.status == "damaged")
    told = {run.name: run.problem for run in list_runs(tmp_path)}
    for name in ("yaml", "list", "binary"):
        assert told[name] == f"{tmp_path / name / 'config.yaml'}: not the config of a run, written in YAML"


def test_the_run_that_saved_last_comes_first(tmp_path: Path) -> None:
    for name in ("b", "c", "a"):
        saved(tmp_path / name, 1)
    assert [run.name for run in list_runs(tmp_path)] == ["a", "c", "b"]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="nowhere: no such folder"):
        list_runs(tmp_path / "nowhere")
    assert list_runs(tmp_path) == []


@pytest.mark.process
def test_a_list_of_runs_needs_no_pytorch(tmp_path: Path) -> None:
    saved(tmp_path / "a", 1)
    code = (
        "import sys; from pathlib import Path; from transformer_cli.commands.runs import show_list; "
        f"show_list(Path({str(tmp_path)!r}), as_json=True); sys.exit('torch' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["runs"][0]["name"] == "a"
