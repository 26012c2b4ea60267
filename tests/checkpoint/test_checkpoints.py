"""Saving and finding checkpoints; damage of every kind (A9-A12, A17, B11, H10)."""

import getpass
import hashlib
import json
import logging
import math
import os
import random
import shutil
import socket
import time
from io import FileIO
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Retention, Snapshot, StateValues, list_checkpoints, open_checkpoint
from transformer_cli.config.schema import Metric
from transformer_cli.process.errors import DataError, StorageError, TrainingStoppedError
from transformer_cli.storage import MANIFEST_NAME, DamagedError, filesystem
from transformer_cli.storage.filesystem import FORMAT_VERSION, parse_manifest

from ..faults import RecordingFileSystem
from .snapshots import EXPECTED, newest_step, saved, snapshot

NAMES = [
    "model.safetensors",
    "optimizer.safetensors",
    "state.json",
    "config.yaml",
    "tokenizer.json",
    MANIFEST_NAME,
]


def steps(run: Path) -> list[int]:
    return sorted(checkpoint.step for checkpoint in list_checkpoints(run / "checkpoints").whole)


def test_a_snapshot_comes_back_bit_for_bit(tmp_path: Path) -> None:
    model = {
        "a": torch.randn(5, 3),
        "b": torch.tensor(3.5),
        "c": torch.randn(4, 6).t(),
        "d": torch.empty(0, 2),
    }
    optimizer = {"a.step": torch.tensor(7), "a.exp_avg": torch.randn(5, 3).bfloat16()}
    state = {
        "position": {"epoch": 2, "batch": 17},
        "best": 0.1 + 0.2,
        "worst": float("inf"),
        "text": "più",
    }
    Checkpoints(tmp_path).save(Snapshot(123, model, optimizer, state, {"config.yaml": b"\xc3\xa8: 1"}), 12.5)
    found = Checkpoints(tmp_path).newest_valid()
    assert found is not None
    assert (found.step, found.manifest.score, found.state()) == (123, 12.5, state)
    assert found.file("config.yaml", max_bytes=10) == b"\xc3\xa8: 1"
    for expected, loaded in ((model, found.model(model)), (optimizer, found.optimizer(optimizer))):
        assert expected.keys() == loaded.keys()
        for name in expected:
            assert expected[name].dtype == loaded[name].dtype
            assert torch.equal(expected[name], loaded[name])


def test_a_folder_without_checkpoints_has_no_newest(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).newest_valid() is None
    (tmp_path / "checkpoints").mkdir()
    assert Checkpoints(tmp_path).newest_valid() is None
    assert Checkpoints(tmp_path).best() is None


def test_steps_are_compared_as_numbers(tmp_path: Path) -> None:
    saved(tmp_path, 9, 10, 99_999_999, 100_000_000)
    assert newest_step(tmp_path) == 100_000_000


def test_the_newest_is_the_one_of_the_highest_step_whatever_the_clock_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 24 * 3600
    checkpoints = Checkpoints(tmp_path, Retention(keep_last=9))
    now = time.time()
    for step, at in ((10, now), (20, now + day), (30, now - day), (40, now)):
        monkeypatch.setattr(time, "time", lambda at=at: at)
        folder = checkpoints.save(snapshot(step))
        os.utime(folder, (at - step * day, at - step * day))
        os.utime(folder / MANIFEST_NAME, (at - step * day, at - step * day))
    assert newest_step(tmp_path) == 40
    saved_at = [open_checkpoint(path).manifest.saved_at for path in sorted((tmp_path / "checkpoints").glob("step-*"))]
    assert saved_at == sorted(set(saved_at))


def damaged_newest(run: Path, reason: str) -> None:
    """Assert that the checkpoint of step 20 is skipped for this reason, and step 10 is used."""
    checkpoints = Checkpoints(run)
    newest = checkpoints.newest_valid()
    assert newest is not None
    assert newest.step == 10
    (skipped,) = checkpoints.skipped.values()
    assert reason in skipped
    assert "step-00000020" in skipped


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", ["0", "1", "8", "half", "n-1", "random"])
def test_a_truncated_file_makes_its_checkpoint_pass_over(tmp_path: Path, name: str, cut: str) -> None:
    path = saved(tmp_path, 10, 20)[1] / name
    size = path.stat().st_size
    places = {"half": size // 2, "n-1": size - 1, "random": random.Random(1).randrange(size)}
    os.truncate(path, min(places.get(cut) if cut in places else int(cut), size - 1))
    damaged_newest(tmp_path, name)


@pytest.mark.long
def test_two_hundred_of_two_hundred_flipped_bits_are_noticed(tmp_path: Path) -> None:
    folder = saved(tmp_path, 10, 20)[1]
    contents = {name: (folder / name).read_bytes() for name in NAMES}
    places = [(name, bit) for name, data in contents.items() for bit in range(8 * len(data))]
    noticed = 0
    for name, bit in random.Random(1).sample(places, 200):
        data = bytearray(contents[name])
        data[bit // 8] ^= 1 << bit % 8
        (folder / name).write_bytes(data)
        noticed += newest_step(tmp_path) == 10
        (folder / name).write_bytes(contents[name])
    assert noticed == 200
    assert newest_step(tmp_path) == 20


@pytest.mark.long
def test_every_flipped_bit_of_a_manifest_is_noticed(tmp_path: Path) -> None:
    data = (saved(tmp_path, 10)[0] / MANIFEST_NAME).read_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DataError):
            parse_manifest(bytes(flipped), "m")


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_makes_its_checkpoint_pass_over(tmp_path: Path, name: str) -> None:
    (saved(tmp_path, 10, 20)[1] / name).unlink()
    damaged_newest(tmp_path, f"{name}: missing")


def test_an_extra_file_makes_its_checkpoint_pass_over(tmp_path: Path) -> None:
    (saved(tmp_path, 10, 20)[1] / "extra.bin").write_text("")
    damaged_newest(tmp_path, "holds 'extra.bin', which its manifest does not list")


def test_hidden_files_of_file_managers_do_no_harm(tmp_path: Path) -> None:
    (saved(tmp_path, 10)[0] / ".DS_Store").write_text("")
    assert newest_step(tmp_path) == 10


def test_a_newer_format_is_passed_over_and_asks_for_an_upgrade(tmp_path: Path) -> None:
    path = saved(tmp_path, 10, 20)[1] / MANIFEST_NAME
    newer = {"format_version": FORMAT_VERSION + 1, "new": 1}
    path.write_text(json.dumps(json.loads(path.read_text()) | newer))
    told = f"format version {FORMAT_VERSION + 1} is newer than tfm knows ({FORMAT_VERSION})"
    damaged_newest(tmp_path, f"{told}: upgrade tfm")


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, True, None])
def test_a_version_that_never_was_is_passed_over(tmp_path: Path, version: object) -> None:
    path = saved(tmp_path, 10, 20)[1] / MANIFEST_NAME
    fields = json.loads(path.read_text()) | {"format_version": version}
    path.write_text(json.dumps(fields))
    damaged_newest(tmp_path, MANIFEST_NAME)


def test_a_renamed_checkpoint_is_not_taken_for_another_step(tmp_path: Path) -> None:
    folder = saved(tmp_path, 10, 20)[1]
    folder.rename(folder.with_name("step-00000030"))
    assert newest_step(tmp_path) == 10


def test_checkpoints_of_which_none_is_valid_are_an_error_and_stay(tmp_path: Path) -> None:
    for folder in saved(tmp_path, 10, 20):
        (folder / "state.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    checkpoints = Checkpoints(tmp_path)
    with pytest.raises(StorageError, match="no checkpoint is valid") as caught:
        checkpoints.newest_valid()
    assert caught.value.exit_code == 74
    assert "--from-scratch" in str(caught.value.hint)
    assert "step-00000010" in caught.value.message
    assert "step-00000020" in caught.value.message
    with pytest.raises(StorageError, match="no checkpoint is valid"):
        checkpoints.save(snapshot(30))
    assert sorted(tmp_path.rglob("*")) == before


def test_from_scratch_keeps_the_old_checkpoints_elsewhere(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20)
    checkpoints = Checkpoints(tmp_path)
    first_id = checkpoints.newest_valid().manifest.run_id  # type: ignore[union-attr]
    assert checkpoints.move_away() == tmp_path / "checkpoints-old-1"
    assert checkpoints.newest_valid() is None
    checkpoints.save(snapshot(5))
    assert newest_step(tmp_path) == 5
    assert checkpoints.newest_valid().manifest.run_id != first_id  # type: ignore[union-attr]
    assert checkpoints.move_away() == tmp_path / "checkpoints-old-2"
    assert open_checkpoint(tmp_path / "checkpoints-old-1" / "step-00000020").step == 20
    assert checkpoints.move_away() is None


@pytest.mark.long
@pytest.mark.parametrize("metric", get_args(Metric))
def test_a_checkpoint_can_be_scored_by_every_metric(tmp_path: Path, metric: Metric) -> None:
    checkpoints = Checkpoints(tmp_path, Retention(metric=metric))
    for step, score in ((10, 1.5), (20, 2.5)):
        checkpoints.save(snapshot(step), score)
    best = Checkpoints(tmp_path, Retention(metric=metric)).best()
    assert best is not None
    is_loss = metric in ("loss", "perplexity", "ter", "cer", "wer")
    assert (best.manifest.metric, best.step) == (metric, 10 if is_loss else 20)


@pytest.mark.parametrize("has_started", [False, True])
def test_checkpoints_that_were_moved_away_come_back_unless_a_new_run_has_started(
    tmp_path: Path, has_started: bool
) -> None:
    """A config is the last file that a new run writes before it trains."""
    saved(tmp_path, 10)
    (tmp_path / "metrics.jsonl").write_text("first")
    (tmp_path / "data").mkdir()
    (tmp_path / "checkpoints-old-9").mkdir()
    place = Checkpoints(tmp_path).move_away(along=("metrics.jsonl", "data"))
    assert place == tmp_path / "checkpoints-old-10"
    (tmp_path / "metrics.jsonl").write_text("second")
    if has_started:
        (tmp_path / "config.yaml").write_text("name: second")
    before = sorted(path for path in tmp_path.rglob("*"))
    Checkpoints(tmp_path).sweep()
    if has_started:
        assert sorted(path for path in tmp_path.rglob("*")) == before
        return
    assert newest_step(tmp_path) == 10
    assert (tmp_path / "metrics.jsonl").read_text() == "first"
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoints", "checkpoints-old-9", "data", "metrics.jsonl"}
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"last", "step-00000010"}


def test_what_goes_along_with_old_checkpoints_is_renamed_and_flushed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    saved(run, 10)
    (run / "data").mkdir()
    (run / "metrics.jsonl").write_text("{}\n")
    fs = RecordingFileSystem(tmp_path)
    assert Checkpoints(run, fs=fs).move_away(along=("metrics.jsonl", "data", "missing"))
    assert [(operation.kind, operation.path, operation.other) for operation in fs.operations] == [
        ("rename", "run/metrics.jsonl", "run/checkpoints/metrics.jsonl"),
        ("flush", "run/checkpoints", ""),
        ("flush", "run", ""),
        ("rename", "run/data", "run/checkpoints/data"),
        ("flush", "run/checkpoints", ""),
        ("flush", "run", ""),
        ("rename", "run/checkpoints", "run/checkpoints-old-1"),
        ("flush", "run", ""),
    ]
    assert [path.name for path in run.iterdir()] == ["checkpoints-old-1"]


def test_an_invalid_checkpoint_is_moved_aside_when_its_step_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = saved(tmp_path, 10, 20)[1]
    (folder / "model.safetensors").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        Checkpoints(tmp_path).save(snapshot(20))
    assert newest_step(tmp_path) == 20
    assert (folder.parent / "invalid-step-00000020-1" / "model.safetensors").stat().st_size == 0
    assert "invalid-step-00000020-1" in caplog.text


def test_a_step_that_is_saved_again_has_the_later_content(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(snapshot(10), 1.0)
    checkpoints.save(snapshot(10), 2.0)
    newest = Checkpoints(tmp_path).newest_valid()
    assert newest is not None
    assert newest.manifest.score == 2.0
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "best",
        "last",
        "step-00000010",
    ]


def test_a_run_that_was_moved_goes_on(tmp_path: Path) -> None:
    saved(tmp_path / "old" / "run", 10, 20)
    shutil.move(tmp_path / "old", tmp_path / "new")
    assert newest_step(tmp_path / "new" / "run") == 20
    assert (tmp_path / "new" / "run" / "checkpoints" / "last" / "state.json").is_file()
    Checkpoints(tmp_path / "new" / "run").save(snapshot(30))
    assert newest_step(tmp_path / "new" / "run") == 30


def test_checkpoints_tell_nothing_about_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary-value-123")
    saved(tmp_path / "canary-folder", 10)
    told = {
        socket.gethostname(),
        str(tmp_path),
        "canary-folder",
        "canary-value-123",
        str(os.getpid()),
    }
    told |= {getpass.getuser()} if getpass.getuser() != "root" else set()
    for path in (tmp_path / "canary-folder" / "checkpoints").rglob("*"):
        if path.is_symlink():
            assert not os.path.isabs(os.readlink(path))
        elif path.is_file():
            text = path.read_bytes().decode("latin-1")
            assert not {word for word in told if word in text and not word.isdecimal()}
            assert "/" not in text.replace("https://", "")


def test_links_are_hints_that_nothing_depends_on(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, Retention(metric="bleu", keep_last=9))
    for step, score in ((10, 1.0), (20, 3.0), (30, 2.0)):
        checkpoints.save(snapshot(step), score)
    folder = tmp_path / "checkpoints"
    assert os.readlink(folder / "last") == "step-00000030"
    assert os.readlink(folder / "best") == "step-00000020"
    (folder / "last").unlink()
    (folder / "best").unlink()
    (folder / "last").symlink_to("/nowhere")
    (folder / "best").mkdir()
    checkpoints = Checkpoints(tmp_path, Retention(metric="bleu", keep_last=9))
    assert newest_step(tmp_path) == 30
    assert checkpoints.best().step == 20  # type: ignore[union-attr]
    checkpoints.save(snapshot(40), 0.5)
    assert os.readlink(folder / "last") == "step-00000040"
    assert steps(tmp_path) == [10, 20, 30, 40]


def test_a_link_in_place_of_a_checkpoint_is_passed_over(tmp_path: Path) -> None:
    folder = saved(tmp_path / "other", 20)[0]
    saved(tmp_path, 10)
    (tmp_path / "checkpoints" / "step-00000020").symlink_to(folder)
    damaged_newest(tmp_path, "a symbolic link")


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    saved(tmp_path, 10)
    bad = snapshot(20)
    bad.model["output.bias"][1] = float("nan")
    with pytest.raises(TrainingStoppedError, match=r"step 20: output\.bias has values that are NaN or infinite"):
        Checkpoints(tmp_path).save(bad)
    assert [path.name for path in (tmp_path / "checkpoints").glob("*20*")] == []
    assert newest_step(tmp_path) == 10


def test_an_earlier_step_than_the_newest_is_an_internal_error(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20)
    with pytest.raises(AssertionError, match="step 5 after step 20"):
        Checkpoints(tmp_path).save(snapshot(5))


def test_the_optimizer_is_not_read_for_the_model(tmp_path: Path) -> None:
    folder = saved(tmp_path, 10)[0]
    size = (folder / "optimizer.safetensors").stat().st_size
    (folder / "optimizer.safetensors").write_bytes(bytes(size))
    assert open_checkpoint(folder).model(EXPECTED)["output.bias"].tolist() == [10, 10, 10]
    with pytest.raises(DataError, match="SHA-256"):
        open_checkpoint(folder).optimizer({})


@pytest.mark.parametrize("number", [0, -1, 2**53, -(2**53), 0.5, math.inf])
def test_a_number_of_the_state_is_one_that_a_float_holds_exactly(number: float) -> None:
    assert StateValues({"x": number}, "state.json").number("x") == number


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, True, "1", None, math.nan])
def test_what_is_no_such_number_is_refused(value: object) -> None:
    with pytest.raises(DataError, match=r"state\.json: x is .* instead of a number"):
        StateValues({"x": value}, "state.json").number("x")


def test_a_message_names_the_place_of_a_wrong_value_in_its_list() -> None:
    state = StateValues({"x": [1, "a"], "y": [math.nan, 2]}, "state.json")
    with pytest.raises(DataError, match=r"state\.json: x\[1\] is 'a' instead of a whole number"):
        state.counts("x", least=1)
    with pytest.raises(DataError, match=r"state\.json: y\[0\] is nan instead of a number"):
        state.numbers("y")
    assert len(state.numbers("y", with_nan=True)) == 2


def test_the_state_is_compared_if_the_manifest_lists_one(tmp_path: Path) -> None:
    saved(tmp_path, 10)
    folder = tmp_path / "checkpoints"
    [found] = list_checkpoints(folder).whole
    state = found.folder / "state.json"
    state.write_bytes(state.read_bytes().replace(b"1", b"2", 1))
    assert "state.json" in list_checkpoints(folder).skipped[found.folder.name]
    files = tuple(file for file in found.manifest.files if file.name != "state.json")
    without_state = found.manifest.model_copy(update={"files": files})
    (found.folder / MANIFEST_NAME).write_bytes(without_state.encode())
    state.unlink()
    assert [one.step for one in list_checkpoints(folder).whole] == [10]


def test_a_file_whose_checksum_was_compared_is_not_read_twice_unless_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystem, "_SETTLED_NANOSECONDS", 0)
    saved = Checkpoints(tmp_path).save(snapshot(10))
    digested = list[str]()
    digest_of = hashlib.file_digest

    def digest(file: FileIO, name: str) -> Any:
        digested.append(os.readlink(f"/proc/self/fd/{file.fileno()}"))
        return digest_of(file, name)

    monkeypatch.setattr("hashlib.file_digest", digest)
    known = Checkpoints(tmp_path).newest_valid()
    assert known is not None
    again = Checkpoints(tmp_path).newest_valid(known)
    assert again is known
    of_model = snapshot(10).model
    again.model(of_model)
    assert digested.count(str(saved / "model.safetensors")) == 1
    # Without what is known, it is read again; and so is a file that has changed, with the same size and the same time.
    file = saved / "model.safetensors"
    before, content = file.stat(), bytearray(file.read_bytes())
    content[-1] ^= 1
    with file.open("r+b") as opened:
        opened.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DamagedError, match="its content has changed"):
        known.model(of_model)
    with pytest.raises(StorageError, match="no checkpoint is valid"):
        Checkpoints(tmp_path).newest_valid(known)


def test_a_file_that_was_written_a_moment_ago_is_always_read(tmp_path: Path) -> None:
    """Its times may be counted in seconds, so they would not show a change."""
    saved = open_checkpoint(Checkpoints(tmp_path).save(snapshot(10)))
    saved.verify()
    assert not saved._compared
