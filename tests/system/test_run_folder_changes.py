"""A run folder that holds links or files of another kind, or that is renamed or removed while it is trained."""

import os
from pathlib import Path
from typing import Any

import pytest

from ..experiments import essence, write_tiny
from ..launcher import Tfm

TRAIN = ("train", "--config", "tiny.yaml")
FILES = ("train.log", "metrics.jsonl", "environment.json", "config.yaml", ".lock")
FOLDERS = ("checkpoints", "tensorboard", "tensorboard/train", "tensorboard/validation")
PRECIOUS = '{"kind": "train", "step": 99}\nprecious'


@pytest.mark.parametrize("is_dangling", [False, True], ids=["to a file", "to nothing"])
@pytest.mark.parametrize("name", FILES)
def test_a_run_writes_through_no_link_to_a_file(tfm: Tfm, name: str, is_dangling: bool) -> None:
    run, precious = hostile_run(tfm), tfm.folder / "precious"
    if not is_dangling:
        precious.write_text(PRECIOUS)
    (run / name).symlink_to("../../precious")
    assert_refused(tfm, f"runs/tiny/{name}: a symbolic link; a run writes only into its own folder")
    assert precious.exists() != is_dangling
    assert is_dangling or precious.read_text() == PRECIOUS
    assert os.listdir(run) == [name]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_run_writes_through_no_link_to_a_folder(tfm: Tfm, name: str) -> None:
    run, outside = hostile_run(tfm), tfm.folder / "outside"
    outside.mkdir()
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).symlink_to(outside, target_is_directory=True)
    assert_refused(tfm, f"runs/tiny/{name}: a symbolic link; a run writes only into its own folder")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tfm: Tfm, name: str) -> None:
    os.mkfifo(hostile_run(tfm) / name)
    assert_refused(tfm, f"runs/tiny/{name}: not a file")


@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_in_place_of_a_folder_is_noticed_before_the_first_step(tfm: Tfm, name: str) -> None:
    run = hostile_run(tfm)
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("a file")
    assert_refused(tfm, f"runs/tiny/{name}: not a folder")


def test_checkpoints_that_cannot_be_written_are_noticed_before_the_first_step(
    tfm: Tfm, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_cli.checkpoint.run_folder import RunFolder
    from transformer_cli.process.errors import CannotCreateError

    run = hostile_run(tfm)
    (run / "checkpoints").mkdir()
    RunFolder(run).require_own_files()
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # root may write anywhere
    with pytest.raises(CannotCreateError, match="checkpoints: no permission to write into this"):
        RunFolder(run).require_own_files()


@pytest.mark.parametrize("is_dangling", [False, True], ids=["to a folder", "to nothing"])
def test_a_data_folder_that_is_a_link_is_replaced_and_not_written_through(
    tfm: Tfm, uninterrupted: dict[str, Any], is_dangling: bool
) -> None:
    run, outside = hostile_run(tfm), tfm.folder / "outside"
    if not is_dangling:
        outside.mkdir()
    (run / "data").symlink_to(outside, target_is_directory=True)
    assert tfm(*TRAIN).exit_code == 0
    assert outside.exists() != is_dangling
    assert is_dangling or list(outside.iterdir()) == []
    assert not (run / "data").is_symlink()
    assert essence(run) == uninterrupted


def test_the_run_folder_itself_may_be_a_link(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    write_tiny(tfm.folder)
    for name in ("disk", "runs"):
        (tfm.folder / name).mkdir()
    (tfm.folder / "runs/tiny").symlink_to(tfm.folder / "disk", target_is_directory=True)
    assert tfm(*TRAIN, "--set", "training.max_steps=5").exit_code == 0
    assert tfm(*TRAIN).exit_code == 0
    assert essence(tfm.folder / "disk")["model.safetensors"] == uninterrupted["model.safetensors"]


def hostile_run(tfm: Tfm) -> Path:
    write_tiny(tfm.folder)
    run = tfm.folder / "runs/tiny"
    run.mkdir(parents=True)
    return run


def assert_refused(tfm: Tfm, said: str) -> None:
    refused = tfm(*TRAIN)
    assert refused.exit_code == 73, refused.talk
    assert f"tfm: {said}" in refused.talk
    assert refused.talk.count("\n  hint: ") == 1
    assert "step 3/13" not in refused.talk


@pytest.mark.parametrize("point", ["step", "report", "save"])
def test_a_run_that_was_renamed_is_saved_where_it_is_and_can_be_renamed_back(
    tfm: Tfm, uninterrupted: dict[str, Any], point: str
) -> None:
    write_tiny(tfm.folder)
    run, renamed = tfm.folder / "runs/tiny", tfm.folder / "runs/other"
    rename = ("at", point, 6 if point == "step" else 1, "move", str(run), str(renamed))
    stopped = tfm(*TRAIN, faults=[rename])
    assert stopped.exit_code == 74, stopped.talk
    if point != "save":  # a rename in the middle of a save makes that save fail, and costs its steps
        assert "runs/tiny: this folder was renamed to runs/other during the training; step " in stopped.talk
        assert "is saved in runs/other/checkpoints/step-" in stopped.talk
        assert "hint: to go on, rename runs/other to runs/tiny" in stopped.talk
    assert stopped.talk.count("\n  hint: ") == 1
    assert not run.exists(), "nothing is made again under the old name"
    renamed.rename(run)
    assert tfm(*TRAIN).exit_code == 0
    assert essence(run) | {"metrics": []} == uninterrupted | {"metrics": []}


@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_work_of_a_run_that_was_removed_is_saved_under_another_name(
    tfm: Tfm, uninterrupted: dict[str, Any], is_replaced: bool
) -> None:
    write_tiny(tfm.folder)
    run, rescued = tfm.folder / "runs/tiny", tfm.folder / "runs/tiny-rescued"
    remove = ("at", "step", 6, "remove_tree", str(run))
    make = ("at", "step", 6, "make_folder", str(run))  # the last of the faults happens first
    stopped = tfm(*TRAIN, faults=[make, remove] if is_replaced else [remove])
    assert stopped.exit_code == 74, stopped.talk
    assert "runs/tiny: this folder was removed or moved away during the training" in stopped.talk
    assert "is saved in runs/tiny-rescued/checkpoints/step-" in stopped.talk
    assert run.exists() == is_replaced
    if is_replaced:
        assert list(run.iterdir()) == [], "another folder of this name is left alone"
        run.rmdir()
    rescued.rename(run)
    again = tfm(*TRAIN)
    assert again.exit_code == 0, again.talk
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert essence(run)[name] == uninterrupted[name]


def test_checkpoints_that_a_link_replaces_are_not_written_through_it(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    write_tiny(tfm.folder)
    run, outside = tfm.folder / "runs/tiny", tfm.folder / "outside"
    outside.mkdir()
    move = ("at", "step", 7, "move", str(run / "checkpoints"), str(tfm.folder / "moved"))
    link = ("at", "step", 7, "make_link", str(outside), str(run / "checkpoints"))
    stopped = tfm(*TRAIN, faults=[link, move])  # the last of the faults happens first
    assert stopped.exit_code == 74, stopped.talk
    assert "runs/tiny/checkpoints: a symbolic link took the place of this folder" in stopped.talk
    assert "step 8 is saved in runs/tiny-rescued/checkpoints/step-00000008" in stopped.talk
    assert stopped.talk.count("\n  hint: ") == 1
    assert list(outside.iterdir()) == []
    (run / "checkpoints").unlink()
    (tfm.folder / "moved").rename(run / "checkpoints")
    rescued = tfm.folder / "runs/tiny-rescued/checkpoints/step-00000008"
    rescued.rename(run / "checkpoints" / rescued.name)
    again = tfm(*TRAIN)
    assert again.exit_code == 0, again.talk
    assert "at step 8" in again.talk
    assert "skipped" not in again.talk
    assert essence(run)["model.safetensors"] == uninterrupted["model.safetensors"]
