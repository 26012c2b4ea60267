"""Re-signed states of training: `train` and `info` refuse them and name the field; translating needs no state."""

import json
import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import open_checkpoint
from transformer_cli.process.errors import DataError
from transformer_cli.storage.filesystem import MANIFEST_NAME

from ..experiments import forge, manifest_of, newest_checkpoint, write_tiny
from ..launcher import TfmHere
from .snapshots import snapshot

TRAIN = ("train", "--config", "tiny.yaml", "--set", "training.max_steps=20")


@pytest.fixture
def tfm(memory_folder: Path) -> TfmHere:
    """In this process: nothing here depends on how it ends."""
    return TfmHere(Path(tempfile.mkdtemp(dir=memory_folder)))


@pytest.fixture(scope="module")
def stopped(memory_folder: Path) -> Path:
    """A folder with a run of 13 steps, which every test copies."""
    folder = memory_folder / "stopped"
    folder.mkdir()
    assert TfmHere(folder)("train", "--config", write_tiny(folder)).exit_code == 0
    return folder


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set a value, such as that of `progress.step`."""

    def change(state: dict[str, Any]) -> None:
        *parts, name = path.split(".")
        for part in parts:
            state = state[part]
        state[name] = value

    return change


CHANGES: dict[str, tuple[str, Any]] = {
    "a negative step": ("progress.step", -1),
    "an enormous step": ("progress.step", 10**11),
    "a step of another checkpoint": ("progress.step", 12),
    "a step as a list": ("progress.step", [13]),
    "a step as a fraction": ("progress.step", 13.5),
    "a negative position": ("progress.position", [0, -5]),
    "a huge epoch": ("progress.position", [10**9, 0]),
    "a position of one number": ("progress.position", [1]),
    "NaN among the best": ("progress.best_goodness", [math.nan]),
    "text among the best": ("progress.best_goodness", ["good"]),
    "a validation in the future": ("progress.validated_at", 10**6),
    "more drops of the learning rate than updates": ("progress.plateau_drops", 10**6),
    "a negative number of drops": ("progress.plateau_drops", -1),
    "a number of validations without end": ("progress.validations_without_best", 10**9),
    "no progress": ("progress", []),
    "NaN as a sum": ("meter.objective", math.nan),
    "a negative count": ("meter.num_target_tokens", -1.0),
    "a meter of text": ("meter.num_skipped", "many"),
    "a value of validation that is text": ("validation.value", "\x1b[2Jgood"),
    "a validation that is a list": ("validation", [1, 2]),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", CHANGES)
def test_an_impossible_state_is_refused_with_its_file_and_field(tfm: TfmHere, stopped: Path, case: str) -> None:
    path, value = CHANGES[case]
    checkpoint = copy_of(stopped, tfm)
    state = json.loads((checkpoint / "state.json").read_bytes())
    put(path, value)(state)
    forge(checkpoint, "state.json", json.dumps(state).encode())
    refused = tfm(*TRAIN)
    assert refused.exit_code == 65, refused.talk
    assert re.search(rf"checkpoints/step-00000013/state\.json: {re.escape(path)}(?:\[\d\])? ", refused.talk)
    assert refused.talk.count("\n  hint: ") == 1
    assert "Traceback" not in refused.talk
    assert "\x1b" not in refused.talk
    assert newest_checkpoint(tfm.folder / "runs/tiny") == checkpoint, "nothing was saved"
    # The weights do not depend on the state.
    assert tfm("translate", "1 2 3").exit_code == 0
    assert "internal error" not in tfm("info").talk


def copy_of(stopped: Path, tfm: TfmHere) -> Path:
    """The newest checkpoint of a copy of the run, and the config beside it."""
    write_tiny(tfm.folder)
    copy = tfm.folder / "runs/tiny"
    copy.mkdir(parents=True)
    for path in sorted((stopped / "runs/tiny").rglob("*")):
        target = copy / path.relative_to(stopped / "runs/tiny")
        if path.is_symlink():
            continue
        if path.is_dir():
            target.mkdir()
        else:
            target.write_bytes(path.read_bytes())
    return newest_checkpoint(copy)


@pytest.mark.long
@pytest.mark.parametrize("scores", [3, [1], [{"name": "BLEU"}], {"BLEU": 3}, [{"name": 1, "value": "x"}]])
def test_scores_that_are_not_names_and_numbers_are_refused_by_info(tfm: TfmHere, stopped: Path, scores: Any) -> None:
    checkpoint = copy_of(stopped, tfm)
    for folder in checkpoint.parent.glob("step-*"):
        state = json.loads((folder / "state.json").read_bytes())
        state["validation"]["scores"] = scores
        forge(folder, "state.json", json.dumps(state).encode())
    refused = tfm("info")
    assert refused.exit_code == 65, refused.talk
    assert "state.json: validation.scores are not names and numbers" in refused.talk


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", -1.0),
        ("exp_avg_sq", -1.0),
        ("exp_avg", math.nan),
        ("step", math.nan),
        ("row_var", -1.0),
        ("col_var", -1.0),
        ("variance", -1.0),
        ("momentum_buffer", math.nan),
    ],
)
def test_moments_that_no_optimizer_has_are_refused(tmp_path: Path, name: str, value: float) -> None:
    """A negative second moment would make every weight NaN, with a gradient that is finite."""
    state = {f"w.{name}": torch.tensor([1.0, value])}
    made = snapshot(1)
    folder = Checkpoints(tmp_path).save(type(made)(1, made.model, state, {}, {}))
    with pytest.raises(DataError, match=rf"optimizer\.safetensors: w\.{name} has impossible values"):
        open_checkpoint(folder).optimizer({f"w.{name}": torch.zeros(2)})


def test_a_checkpoint_that_claims_to_be_of_the_far_future_stops_no_other_run(
    tmp_path: Path,
) -> None:
    """Every run begins its times after those of all runs beside it."""
    folder = Checkpoints(tmp_path / "downloaded").save(snapshot(1))
    manifest = manifest_of(folder).model_copy(update={"saved_at": 2**53 - 1})
    (folder / MANIFEST_NAME).write_bytes(manifest.encode())
    own = Checkpoints(tmp_path / "own")
    for step in (1, 2):
        assert open_checkpoint(own.save(snapshot(step))).step == step
