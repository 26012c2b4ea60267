"""A run that was interrupted, at any point and in any way, gives the same result (group C)."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load, save

from ..experiments import TINY, essence, forge, newest_checkpoint, state_of, write_tiny
from ..launcher import Launcher, Tfm

EXIT_CODES = {"SIGTERM": 143, "SIGINT": 130, "SIGKILL": -9}


def interrupt(tfm: Tfm, step: int, name: str = "SIGTERM") -> None:
    """Train the tiny experiment up to a signal that comes in the middle of a step."""
    config = write_tiny(tfm.folder)
    finished = tfm("train", "--config", config, faults=[("at", "step", step, "signal", name)])
    assert finished.exit_code == EXIT_CODES[name], finished.talk


def resume(tfm: Tfm, *options: str) -> dict[str, Any]:
    finished = tfm("train", "--config", "tiny.yaml", *options)
    assert finished.exit_code == 0, finished.talk
    return essence(tfm.folder / "runs/tiny")


# The first step, the middle of an epoch, before an epoch's last update, an epoch's start, a save.
@pytest.mark.parametrize(
    ("step", "name"),
    [*((step, "SIGTERM") for step in (1, 3, 4, 5, 7, 10, 12)), (3, "SIGKILL"), (8, "SIGKILL")],
)
def test_a_resumed_run_equals_the_uninterrupted_one(
    tfm: Tfm, uninterrupted: dict[str, Any], step: int, name: str
) -> None:
    interrupt(tfm, step, name)
    assert resume(tfm) == uninterrupted


def test_an_interrupt_from_the_keyboard_costs_nothing(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    interrupt(tfm, 6, "SIGINT")
    assert resume(tfm) == uninterrupted


def test_a_resume_of_a_resume_of_a_resume_is_equal(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    for step, name in ((2, "SIGTERM"), (3, "SIGKILL"), (1, "SIGTERM"), (4, "SIGINT")):
        interrupt(tfm, step, name)
    assert resume(tfm) == uninterrupted


def forge_state(tfm: Tfm, change: Callable[[dict[str, Any]], None]) -> None:
    state = state_of(tfm.folder / "runs/tiny")
    change(state)
    data = json.dumps(state).encode()
    forge(newest_checkpoint(tfm.folder / "runs/tiny"), "state.json", data)


# A resumed run needs each of these; the comparison of two runs must notice if one is changed.
ALTERATIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "the step": lambda state: state["progress"].update(step=6),
    "the epoch": lambda state: state["progress"].update(position=[2, 4]),
    "the batch": lambda state: state["progress"].update(position=[1, 2]),
    "the last validation": lambda state: state["progress"].update(validated_at=8),
    "the best score": lambda state: state["progress"].update(best_goodness=[0.0]),
    "the sums of the loss": lambda state: state["meter"].update(objective=0.0),
    "the skipped updates": lambda state: state["meter"].update(num_skipped=1.0),
}


@pytest.fixture(scope="module")
def stopped(launcher: Launcher, memory_folder: Path) -> Path:
    """A folder with the tiny experiment, stopped in the middle."""
    folder = memory_folder / "stopped"
    folder.mkdir()
    interrupt(Tfm(launcher, folder), 7)
    return folder


@pytest.fixture
def stopped_tfm(tfm: Tfm, stopped: Path) -> Tfm:
    shutil.copytree(stopped, tfm.folder, symlinks=True, dirs_exist_ok=True)
    return tfm


def test_a_copy_of_the_run_resumes_to_the_same_end(stopped_tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """A run may be moved (A17); this is also the positive control of the alterations below."""
    assert resume(stopped_tfm) == uninterrupted


@pytest.mark.parametrize("what", ALTERATIONS)
def test_the_comparison_notices_an_altered(stopped_tfm: Tfm, uninterrupted: dict[str, Any], what: str) -> None:
    forge_state(stopped_tfm, ALTERATIONS[what])
    finished = stopped_tfm("train", "--config", "tiny.yaml")
    assert finished.exit_code != 0 or essence(stopped_tfm.folder / "runs/tiny") != uninterrupted


@pytest.mark.parametrize("part", ["progress", "meter", "validation"])
def test_a_state_that_lacks_a_part_is_refused(stopped_tfm: Tfm, part: str) -> None:
    forge_state(stopped_tfm, lambda state: state.pop(part))
    finished = stopped_tfm("train", "--config", "tiny.yaml")
    assert finished.exit_code == 65
    assert f"state.json: {part} is missing" in finished.talk


@pytest.mark.parametrize("moment", ["exp_avg", "exp_avg_sq", "step"])
def test_the_comparison_notices_a_lost_moment(stopped_tfm: Tfm, uninterrupted: dict[str, Any], moment: str) -> None:
    checkpoint = newest_checkpoint(stopped_tfm.folder / "runs/tiny")
    tensors = load((checkpoint / "optimizer.safetensors").read_bytes())
    name = next(name for name in tensors if name.endswith(f".{moment}"))
    tensors[name].zero_()
    forge(checkpoint, "optimizer.safetensors", save(tensors))
    assert resume(stopped_tfm) != uninterrupted


def test_the_comparison_notices_another_seed(stopped_tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """The test changes the seed in the files of the run; as an option, another seed would be refused."""
    run_config = stopped_tfm.folder / "runs/tiny/config.yaml"
    run_config.write_text(run_config.read_text().replace("seed: 3", "seed: 4"))
    shutil.rmtree(stopped_tfm.folder / "runs/tiny/data")
    # It says on which pairs the run was trained, which follow from the seed; the checkpoint alone cannot tell which they were.
    (stopped_tfm.folder / "runs/tiny/environment.json").unlink()
    assert resume(stopped_tfm, "--set", "seed=4") != uninterrupted


ADDED = {
    "a moving average of muon's weights": "optimizer: muon\n  ema_decay: 0.9",
    "drops of a plateau": "schedule: plateau\n  plateau_patience: 1\n  ema_decay: 0.9",
}


@pytest.mark.parametrize("what", ADDED)
def test_what_a_run_was_asked_to_keep_survives(tfm: Tfm, launcher: Launcher, what: str) -> None:
    """The same files, bit for bit, with the raw weights in the state of the optimizer."""
    text = TINY.replace("  max_steps: 13", f"  max_steps: 13\n  {ADDED[what]}")
    ends = []
    for stops in ((), ((3, "SIGTERM"), (5, "SIGKILL"), (2, "SIGINT"))):
        here = Tfm(launcher, tfm.folder / str(len(stops)))
        here.folder.mkdir()
        config = write_tiny(here.folder, text)
        for step, name in stops:
            here("train", "--config", config, faults=[("at", "step", step, "signal", name)])
        finished = here("train", "--config", config)
        assert finished.exit_code == 0, finished.talk
        ends.append(essence(here.folder / "runs/tiny"))
        assert here("translate", "1 2 3").exit_code == 0
    assert ends[0] == ends[1]
    tensors = load((newest_checkpoint(here.folder / "runs/tiny") / "optimizer.safetensors").read_bytes())
    weights = load((newest_checkpoint(here.folder / "runs/tiny") / "model.safetensors").read_bytes())
    assert {f"{name}.raw" for name in weights} < tensors.keys()
    assert not any(value.equal(tensors[f"{name}.raw"]) for name, value in weights.items())


def test_patience_and_best_score_survive(tfm: Tfm, launcher: Launcher) -> None:
    """A model that does not learn is given up after the same number of validations (C5)."""
    hopeless = TINY.replace("learning_rate: 5e-3", "learning_rate: 1e-9\n  patience: 2")
    hopeless = hopeless.replace("validate_every: 4", "validate_every: 2").replace("loss", "bleu")
    ends, kinds = {}, ("uninterrupted", "resumed", "patience lost", "best lost")
    for kind in kinds:
        folder = tfm.folder / kind
        folder.mkdir()
        here = Tfm(launcher, folder)
        config = write_tiny(folder, hopeless)
        if kind != "uninterrupted":
            here("train", "--config", config, faults=[("at", "step", 5, "signal", "SIGTERM")])
            progress = state_of(folder / "runs/tiny")["progress"]
            assert progress["validations_without_best"] == 1
        if kind == "patience lost":
            forge_state(here, lambda state: state["progress"].update(validations_without_best=0))
        if kind == "best lost":
            forge_state(here, lambda state: state["progress"].update(best_goodness=[], best_losses=[]))
        ends[kind] = resume(here)
    steps = [newest_checkpoint(tfm.folder / kind / "runs/tiny").name for kind in kinds]
    assert steps == ["step-00000006", "step-00000006", "step-00000008", "step-00000010"]
    for end in ends.values():
        del end["checkpoints"]  # the interrupted run also has one of the step of its interruption
    assert ends["resumed"] == ends["uninterrupted"]
