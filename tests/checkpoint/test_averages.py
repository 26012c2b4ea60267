"""Averaged checkpoints: the mean itself, the folder, and which checkpoint translates (A6)."""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.checkpoint.averages import (
    averaged_steps,
    mean_of_checkpoints,
    mean_weights,
    write_average,
)
from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import (
    AVERAGE,
    Checkpoint,
    Retention,
    Snapshot,
    list_checkpoints,
    open_checkpoint,
)
from transformer_cli.checkpoint.trained_files import load_trained, seen_lengths_of
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.text.sentences import SeenLengths

from ..experiments import manifest_of
from .models import Parts, logits, parts

METRIC = Retention(keep_last=9, metric="bleu")


@pytest.mark.long
@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4), min_size=1, max_size=9))
def test_the_mean_is_summed_in_float64_and_rounded_once(values: list[list[float]]) -> None:
    found = mean_weights({"w": torch.tensor(one, dtype=torch.float32)} for one in values)
    expected = np.asarray(values, dtype=np.float64).cumsum(axis=0)[-1] / len(values)
    assert found["w"].dtype == torch.float32
    assert found["w"].numpy().tolist() == expected.astype(np.float32).tolist()


def test_a_mean_in_float32_would_differ() -> None:
    values = [torch.tensor([16777216.0]), torch.tensor([1.0]), torch.tensor([1.0])]
    in_float32 = (values[0] + values[1] + values[2]) / 3
    expected = torch.tensor(16777218.0, dtype=torch.float64).div(3).float()
    assert mean_weights({"w": one} for one in values)["w"].item() == expected.item()
    assert in_float32.item() != expected.item()


def save(run: Path, made_of: Parts, scores: Sequence[float | None]) -> list[Checkpoint]:
    """Save other weights at each of the steps 10, 20, ..., with these scores."""
    checkpoints, found = Checkpoints(run, METRIC), []
    config, source, target, model = made_of
    for number, score in enumerate(scores, start=1):
        weights = {name: tensor + 0.01 * number for name, tensor in model.state_dict().items()}
        step = 10 * number
        validation = {"step": step, "value": score, "loss": 1.0, "scores": []}
        state = {"validation": {} if score is None else validation}
        files = portable_files(config, source, target)
        folder = checkpoints.save(Snapshot(step, weights, {}, state, files), score)
        found.append(open_checkpoint(folder))
    return found


def average_of(
    saved: Sequence[Checkpoint],
    score: float | None = None,
    name: str = "",
    rival: dict[str, Any] | None = None,
) -> Checkpoint:
    step = max(one.step for one in saved)
    final = saved[0].folder.with_name(name or f"{AVERAGE}{step:08d}")
    validation = None if score is None else {"step": step, "value": score, "loss": 1.0}
    mean = mean_of_checkpoints(saved)
    return write_average(final, saved, mean, validation=validation, rival=rival)


@pytest.mark.long
def test_an_average_has_seen_what_its_checkpoints_have_seen(tmp_path: Path) -> None:
    seen = {"longest": 21, "smallest_ratio": 0.6}
    config, source, target, model = parts()
    files = portable_files(config, source, target)
    state = {"validation": {}, "seen_lengths": seen}
    snapshot = Snapshot(10, model.state_dict(), {}, state, files)
    saved = open_checkpoint(Checkpoints(tmp_path, METRIC).save(snapshot))
    for one in (load_trained(saved.folder), load_trained(average_of([saved]).folder)):
        assert seen_lengths_of(one.checkpoint, one.config) == SeenLengths(21, 0.6)


@pytest.mark.long
def test_the_average_translates_with_the_mean_of_the_weights(tmp_path: Path) -> None:
    saved = save(tmp_path, parts(), [1.0, 2.0, 3.0])
    average = average_of(saved, name="here")
    trained = load_trained(average.folder)
    states = [load_trained(one.folder).model.state_dict() for one in saved]
    expected: dict[str, Tensor] = {
        name: torch.stack([state[name].double() for state in states]).mean(0) for name in states[0]
    }
    for name, tensor in trained.model.state_dict().items():
        assert torch.equal(tensor, expected[name].float()), name
    assert torch.isfinite(logits(trained.model)).all()
    assert averaged_steps(average) == [10, 20, 30]
    copy = shutil.copytree(average.folder, tmp_path / "copied")
    assert load_trained(copy).step == 30, "it holds all that a translation needs"


@pytest.mark.long
@pytest.mark.parametrize(
    ("scores", "of_average", "used"),
    [
        ([5.0, 3.0], 6.0, "average-00000020"),
        ([5.0, 3.0], 4.0, "step-00000010"),
        ([5.0, 3.0], 5.0, "step-00000010"),
        ([5.0, 3.0], None, "step-00000010"),
        ([5.0, 3.0], float("nan"), "step-00000010"),
        ([None, None], 1.0, "average-00000020"),
    ],
)
def test_the_average_translates_only_if_it_is_better(
    tmp_path: Path, scores: list[float | None], of_average: float | None, used: str
) -> None:
    average_of(save(tmp_path, parts(), scores), of_average)
    assert load_trained(tmp_path).folder.name == used
    best = Checkpoints(tmp_path).best()
    assert best is not None
    assert best.folder.name == used
    assert load_trained(tmp_path, which="last").folder.name == "step-00000020"


@pytest.mark.long
@pytest.mark.parametrize(
    ("of_average", "rival", "used"),
    [
        (4.9, {"step": 10, "is_worse": True}, "average-00000020"),
        (5.1, {"step": 10, "is_worse": False}, "step-00000010"),
        # Without the checkpoint that it was compared with, and with a state that says nothing of use, scores decide.
        (5.1, {"step": 70, "is_worse": False}, "average-00000020"),
        (4.9, {"step": 70, "is_worse": True}, "step-00000010"),
        (4.9, {"step": 10, "is_worse": "yes"}, "step-00000010"),
        (4.9, {}, "step-00000010"),
        (None, {"step": 10, "is_worse": True}, "step-00000010"),
    ],
)
def test_an_average_stands_before_or_behind_the_checkpoint_that_it_was_compared_with(
    tmp_path: Path, of_average: float | None, rival: dict[str, Any], used: str
) -> None:
    average_of(save(tmp_path, parts(), [5.0, 3.0]), of_average, rival=rival)
    assert load_trained(tmp_path).folder.name == used
    best = Checkpoints(tmp_path).best()
    assert best is not None
    assert best.folder.name == used


@pytest.mark.long
def test_a_later_checkpoint_that_is_better_comes_before_an_average_that_won(tmp_path: Path) -> None:
    saved = save(tmp_path, parts(), [5.0, 3.0])
    average_of(saved, 4.9, rival={"step": 10, "is_worse": True})
    config, source, target, model = parts()
    files = portable_files(config, source, target)
    Checkpoints(tmp_path, METRIC).save(Snapshot(30, model.state_dict(), {}, {}, files), 5.5)
    assert load_trained(tmp_path).folder.name == "step-00000030"


@pytest.mark.long
def test_training_goes_on_from_the_newest_checkpoint_and_never_from_an_average(
    tmp_path: Path,
) -> None:
    average_of(save(tmp_path, parts(), [5.0, 3.0]), 6.0)
    newest = Checkpoints(tmp_path).newest_valid()
    assert newest is not None
    assert newest.folder.name == "step-00000020"
    assert [one.step for one in list_checkpoints(tmp_path / "checkpoints").whole] == [20, 10]


@pytest.mark.long
def test_a_later_save_keeps_the_link_to_a_better_average(tmp_path: Path) -> None:
    average_of(save(tmp_path, parts(), [5.0, 3.0]), 6.0)
    for score, name in ((5.5, "average-00000020"), (7.0, "step-00000040")):
        step = 30 if score == 5.5 else 40
        config, source, target, model = parts()
        files = portable_files(config, source, target)
        Checkpoints(tmp_path, METRIC).save(Snapshot(step, model.state_dict(), {}, {}, files), score)
        assert (tmp_path / "checkpoints/best").readlink().name == name


def test_an_unvalidated_average_of_another_name_never_takes_part(tmp_path: Path) -> None:
    saved = save(tmp_path, parts(), [5.0, 3.0])
    average_of(saved, 9.0, name=f"{AVERAGE}00000020-last-2")
    assert list_checkpoints(tmp_path / "checkpoints", AVERAGE).whole == []
    assert load_trained(tmp_path).folder.name == "step-00000010"


@pytest.mark.parametrize("score", [6.0, None])
def test_an_average_alone_translates_only_if_it_was_validated(tmp_path: Path, score: float | None) -> None:
    saved = save(tmp_path, parts(), [5.0])
    average = average_of(saved, score)
    shutil.rmtree(saved[0].folder)
    if score is None:
        with pytest.raises(MissingInputError, match="this run has no checkpoint yet"):
            load_trained(tmp_path)
    else:
        assert load_trained(tmp_path).folder == average.folder


def test_a_damaged_average_is_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    average = average_of(save(tmp_path, parts(), [5.0, 3.0]), 6.0)
    path = average.folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert load_trained(tmp_path).folder.name == "step-00000010"
    assert "average-00000020" in caplog.text


@pytest.mark.long
def test_an_average_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A14: a process that was killed between the two renames leaves the old one, which the next start puts back."""
    saved = save(tmp_path, parts(), [5.0, 3.0, 1.0])
    average_of(saved, 6.0)
    newer = average_of(saved[1:], 7.0)
    assert averaged_steps(newer) == [20, 30]
    newer.folder.rename(newer.folder.with_name(f".replaced-{newer.folder.name}"))
    (left,) = list_checkpoints(tmp_path / "checkpoints", AVERAGE).whole
    assert left.manifest.score == 7.0
    Checkpoints(tmp_path).sweep()
    assert open_checkpoint(newer.folder).manifest.score == 7.0


@pytest.mark.long
def test_different_models_have_no_mean(tmp_path: Path) -> None:
    one = save(tmp_path / "one", parts(), [1.0])
    other = save(tmp_path / "other", parts(positions="rotary"), [1.0])
    with pytest.raises(DataError, match=r"other settings of the model \(config\.yaml\) than") as refused:
        mean_of_checkpoints([*one, *other])
    assert refused.value.hint == "average checkpoints of one run"
    shared = save(tmp_path / "shared", parts(is_shared=True), [1.0])
    with pytest.raises(DataError, match=r"other tokenizers than .*one"):
        mean_of_checkpoints([*one, *shared])


def test_weights_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    saved = save(tmp_path, parts(), [1.0, 2.0])
    weights = mean_of_checkpoints(saved)
    weights["output.weight"][0, 0] = float("inf")
    with pytest.raises(DataError, match=r"output\.weight has values that are NaN or infinite"):
        write_average(tmp_path / "new", saved, weights)
    assert not (tmp_path / "new").exists()


def test_the_manifest_says_which_run_and_metric_it_belongs_to(tmp_path: Path) -> None:
    saved = save(tmp_path, parts(), [5.0, 3.0])
    manifest, of_newest = manifest_of(average_of(saved, 6.0).folder), saved[-1].manifest
    assert (manifest.run_id, manifest.metric, manifest.step) == (of_newest.run_id, "bleu", 20)
    assert manifest.score == 6.0
    assert {file.name for file in manifest.files} == {
        "config.yaml",
        "model.safetensors",
        "state.json",
        "tokenizer.source.json",
        "tokenizer.target.json",
    }
