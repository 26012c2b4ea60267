"""The average at the end of a run, and `tfm average`: exact, repeatable, and never in the way of training."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ..experiments import TINY, essence, manifest_of, write_tiny
from ..launcher import Launcher, Tfm

AVERAGED = TINY.replace("  max_steps: 13", "  max_steps: 13\n  average_last: 3")
SCORED = (
    AVERAGED.replace("best_metric: loss", "best_metric: chrf")
    .replace("[bleu]", "[chrf]")
    .replace("max_sentences: 6", "max_sentences: 1000")
)
OF_BEST = AVERAGED.replace("average_last: 3", "average_last: 2\n  average_of: best")
CHECKPOINTS = Path("runs/tiny/checkpoints")
AVERAGE = "average-00000013"


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "MANIFEST.json"}


def found(tfm: Tfm) -> dict[str, Any]:
    """Everything that the run has left, and the bytes of its average."""
    average = tfm.folder / CHECKPOINTS / AVERAGE
    return essence(tfm.folder / "runs/tiny") | {"the average": files_of(average)}


@pytest.fixture(scope="module")
def whole(launcher: Launcher, memory_folder: Path) -> dict[str, dict[str, Any]]:
    """What uninterrupted runs leave, below `averaged-last` and `averaged-best` of the folder in memory."""
    results = {}
    for name, text in (("last", AVERAGED), ("best", OF_BEST)):
        tfm = Tfm(launcher, memory_folder / f"averaged-{name}")
        tfm.folder.mkdir()
        finished = tfm("train", "--config", write_tiny(tfm.folder, text))
        assert finished.exit_code == 0, finished.talk
        assert "average of the checkpoints of steps" in finished.talk
        results[name] = found(tfm)
    return results


def test_the_average_is_the_mean_of_the_last_checkpoints(tfm: Tfm) -> None:
    """Of those at multiples of save_every and at the end: steps 8, 12 and 13 of 4, 8, 12 and 13."""
    finished = tfm("train", "--config", write_tiny(tfm.folder, AVERAGED))
    folder = tfm.folder / CHECKPOINTS
    weights = [load_file(folder / f"step-{step:08d}/model.safetensors") for step in (8, 12, 13)]
    average = load_file(folder / AVERAGE / "model.safetensors")
    for name, tensor in average.items():
        mean = torch.stack([one[name].double() for one in weights]).mean(0)
        torch.testing.assert_close(tensor.double(), mean, rtol=1e-7, atol=1e-9)
    assert "average of the checkpoints of steps 8, 12, 13: loss" in finished.talk
    best, score = (folder / "best").resolve().name, manifest_of(folder / AVERAGE).score
    of_checkpoints = [manifest_of(path).score for path in folder.glob("step-*")]
    assert score is not None
    is_better = all(score < one for one in of_checkpoints if one is not None)
    assert (best == AVERAGE) is is_better
    chosen = "it" if is_better else "that checkpoint"
    assert f"tfm translate uses {chosen}\n" in finished.talk
    assert f"checkpoints/{best}, step 13" in tfm("translate", "1 2 3").talk
    assert tfm("info").exit_code == 0


def test_the_average_and_the_best_checkpoint_are_compared_with_the_search_of_translations(
    tfm: Tfm,
) -> None:
    """Validations are greedy, translations have beam size 2."""
    config = write_tiny(tfm.folder, SCORED)
    finished = tfm("train", "--config", config)
    assert finished.exit_code == 0, finished.talk
    folder = tfm.folder / CHECKPOINTS
    told = re.search(r"with beam size 2: average chrf (\S+), checkpoint of step (\d+) (\S+)", finished.talk)
    assert told is not None, finished.talk
    rival = json.loads((folder / AVERAGE / "state.json").read_text())["average"]["rival"]
    step = f"step-{int(told[2]):08d}"
    measured = {}
    for name in (AVERAGE, step):
        validated = tfm("validate", "--run", str(folder / name), "--scores", "chrf", "--json")
        [score] = json.loads(validated.out)["scores"]
        measured[name] = score["value"]
    assert rival["own_value"] == pytest.approx(measured[AVERAGE])
    assert rival["value"] == pytest.approx(measured[step])
    assert rival["is_worse"] is (measured[AVERAGE] > measured[step])
    winner = AVERAGE if rival["is_worse"] else step
    assert (folder / "best").readlink().name == winner
    assert f"checkpoints/{winner}, step" in tfm("translate", "1 2 3").talk
    before = found(tfm)
    assert tfm("train", "--config", config).exit_code == 0
    assert found(tfm) == before


@pytest.mark.parametrize("kind", ["last", "best"])
@pytest.mark.parametrize("step", [3, 7, 10])
def test_a_run_that_was_interrupted_has_the_same_average(
    tfm: Tfm, whole: dict[str, dict[str, Any]], kind: str, step: int
) -> None:
    config = write_tiny(tfm.folder, AVERAGED if kind == "last" else OF_BEST)
    tfm("train", "--config", config, faults=[("at", "step", step, "signal", "SIGTERM")])
    assert tfm("train", "--config", config).exit_code == 0
    result, expected = found(tfm), whole[kind]
    # The checkpoint of the interruption may be among the newest two; the result does not depend on it.
    assert result["the average"] == expected["the average"]
    assert result["best"] == expected["best"]


@pytest.mark.parametrize("point", ["averaging", "average", "choice"])
def test_a_kill_while_averaging_costs_nothing(tfm: Tfm, whole: dict[str, dict[str, Any]], point: str) -> None:
    config = write_tiny(tfm.folder, AVERAGED)
    killed = tfm("train", "--config", config, faults=[("at", point, 1, "signal", "SIGKILL")])
    assert killed.exit_code == -9, killed.talk
    assert tfm("translate", "1 2 3").exit_code == 0
    for _ in range(2):
        assert tfm("train", "--config", config).exit_code == 0
        assert found(tfm) == whole["last"]


@pytest.fixture
def tfm_with_average(tfm: Tfm, whole: dict[str, dict[str, Any]], memory_folder: Path) -> Tfm:
    """`tfm` in a folder of its own, with a copy of the run of AVERAGED."""
    shutil.copytree(memory_folder / "averaged-last", tfm.folder, symlinks=True, dirs_exist_ok=True)
    return tfm


def test_another_number_makes_another_average_of_a_finished_run(tfm_with_average: Tfm) -> None:
    again = tfm_with_average("train", "--config", "tiny.yaml", "--set", "training.average_last=2")
    assert again.exit_code == 0, again.talk
    assert "average of the checkpoints of steps 12, 13" in again.talk
    state = json.loads((tfm_with_average.folder / CHECKPOINTS / AVERAGE / "state.json").read_bytes())
    assert state["average"] == {"steps": [12, 13]}


def test_the_same_command_keeps_an_average_whose_checkpoints_were_deleted_since(tfm_with_average: Tfm) -> None:
    kept = files_of(tfm_with_average.folder / CHECKPOINTS / AVERAGE)
    assert tfm_with_average("runs", "prune", "tiny", "--keep-last", "1", "--yes").exit_code == 0
    assert len([*(tfm_with_average.folder / CHECKPOINTS).glob("step-*")]) < 3
    again = tfm_with_average("train", "--config", "tiny.yaml")
    assert again.exit_code == 0, again.talk
    assert files_of(tfm_with_average.folder / CHECKPOINTS / AVERAGE) == kept


def test_training_longer_goes_on_from_the_last_checkpoint_and_makes_a_new_average(
    tfm_with_average: Tfm,
) -> None:
    longer = tfm_with_average("train", "--config", "tiny.yaml", "--set", "training.max_steps=17")
    assert "resuming runs/tiny at step 13" in longer.talk
    assert "average of the checkpoints of steps 12, 16, 17" in longer.talk
    averages = {path.name for path in (tfm_with_average.folder / CHECKPOINTS).glob("average-*")}
    assert "average-00000017" in averages


def test_the_command_averages_what_is_asked_for_and_leaves_the_run_as_it_is(tfm: Tfm) -> None:
    write_tiny(tfm.folder, TINY.replace("  max_steps: 13", "  max_steps: 13\n  keep_last: 3"))
    tfm("train", "--config", "tiny.yaml")
    before = essence(tfm.folder / "runs/tiny")
    del before["checkpoints"]
    folder = tfm.folder / CHECKPOINTS
    for arguments, name, steps in (
        (("--last", "2"), "average-00000013-last-2", [12, 13]),
        (("--best", "2"), "average-00000013-best-2", [12, 13]),
        (("8", "13"), "average-00000013-2-steps", [8, 13]),
        (("step-00000008", "step-00000012/", "13"), "average-00000013-3-steps", [8, 12, 13]),
    ):
        made = tfm("average", "--run", "tiny", *arguments)
        assert made.exit_code == 0, made.talk
        assert made.lines == [f"{CHECKPOINTS}/{name}"]
        assert f"tfm validate --run {CHECKPOINTS}/{name}" in made.talk
        assert json.loads((folder / name / "state.json").read_bytes())["average"]["steps"] == steps
        assert tfm("translate", "--run", made.lines[0], "1 2 3").exit_code == 0
    assert tfm("validate", "--run", made.lines[0]).exit_code == 0
    after = essence(tfm.folder / "runs/tiny")
    del after["checkpoints"]
    assert after == before
    elsewhere = tfm("average", "--last", "3", "--output", "copy/here")
    assert elsewhere.lines == ["copy/here"]
    assert tfm("translate", "--run", "copy/here", "1 2 3").exit_code == 0


def test_the_command_refuses_what_cannot_be_averaged(tfm_with_run: Tfm) -> None:
    tfm_with_run("average", "--last", "2")
    for arguments, exit_code, text in (
        ((), 2, "give either the steps of checkpoints, or --last N, or --best N"),
        (("--last", "2", "--best", "2"), 2, "give either the steps"),
        (("13", "best"), 2, "best: no step of a checkpoint\n  hint: a step is a number"),
        (("13",), 2, "give two steps or more"),
        (("13", "13"), 2, "give two steps or more"),
        (("4", "13"), 66, "no checkpoint of step 4\n  hint: it keeps steps 12, 13"),
        (("--last", "3"), 66, "training.keep_last=3 or more"),
        (("--best", "9"), 66, "training.keep_best=9 or more"),
        (("--last", "2"), 73, "average-00000013-last-2: exists already"),
        (("--run", "runs/tiny/checkpoints/step-00000013", "--last", "2"), 66, "a single checkpoint, where a run"),
    ):
        refused = tfm_with_run("average", *arguments)
        assert (refused.exit_code, text in refused.talk) == (exit_code, True), refused.talk
