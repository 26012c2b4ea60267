"""Converted models on disk: made once, made again for other weights, never used if damaged."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Checkpoint, Snapshot, open_checkpoint
from transformer_cli.checkpoint.trained_files import Files, converted_files

Load = Callable[[], Files]


def saved(run: Path, step: int, value: float) -> Checkpoint:
    run.mkdir(parents=True, exist_ok=True)
    weights = {"weight": torch.full((2,), value)}
    Checkpoints(run).save(Snapshot(step, weights, {}, {}, {"config.yaml": b"name: a\n"}))
    return open_checkpoint(run / "checkpoints" / f"step-{step:08}")


class Conversion:
    """Counts how often a model is converted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> dict[str, bytes]:
        self.count += 1
        return {"model.bin": b"model %d" % self.count, "config.json": b"{}"}


def test_a_model_is_converted_once_for_each_weights_and_layout(tmp_path: Path) -> None:
    run, convert = tmp_path / "run", Conversion()
    first = saved(run, 1, 1.0)
    made = converted_files(first, "lib", "1", convert)
    assert made == converted_files(first, "lib", "1", convert)
    assert convert.count == 1
    assert {path.name for path in (run / "converted-lib").iterdir()} == {
        "MANIFEST.json",
        "converted-from.json",
        "model.bin",
        "config.json",
    }
    other = saved(run, 2, 2.0)
    assert converted_files(other, "lib", "1", convert)["model.bin"] == b"model 2"
    assert converted_files(other, "lib", "2", convert)["model.bin"] == b"model 3"
    assert sorted(path.name for path in run.iterdir()) == ["checkpoints", "converted-lib"]


def test_a_damaged_model_is_made_again(tmp_path: Path) -> None:
    checkpoint, convert = saved(tmp_path / "run", 1, 1.0), Conversion()
    converted_files(checkpoint, "lib", "1", convert)
    (tmp_path / "run" / "converted-lib" / "model.bin").write_bytes(b"model X")
    assert converted_files(checkpoint, "lib", "1", convert)["model.bin"] == b"model 2"
    assert converted_files(checkpoint, "lib", "1", convert)["model.bin"] == b"model 2"


def test_a_copied_checkpoint_has_it_beside_itself(tmp_path: Path) -> None:
    elsewhere = saved(tmp_path / "run", 1, 1.0).folder.rename(tmp_path / "model")
    convert = Conversion()
    for _ in range(2):
        converted_files(open_checkpoint(elsewhere), "lib", "1", convert)
    assert convert.count == 1
    assert (tmp_path / "model.converted-lib" / "model.bin").is_file()


def test_a_place_that_cannot_be_written_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpoint, convert = saved(tmp_path / "run", 1, 1.0), Conversion()
    (tmp_path / "run" / "converted-lib").symlink_to(tmp_path / "nowhere" / "x")
    for number in (1, 2):
        files = converted_files(checkpoint, "lib", "1", convert)
        assert files["model.bin"] == b"model %d" % number
    assert "the converted model was not kept" in caplog.text
