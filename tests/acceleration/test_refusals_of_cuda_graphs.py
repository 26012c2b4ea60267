"""CUDA graphs are refused where they cannot work, before a corpus is read; a resumed run keeps what it began with."""

from pathlib import Path

import pytest

from transformer_cli.cli import main
from transformer_cli.config.loading import load_config
from transformer_cli.process.errors import ConfigError
from transformer_cli.training import train

from ..experiments import TINY, write_tiny

RECORDED = "runtime.cuda_graphs=true"


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write_tiny(tmp_path, TINY)


@pytest.mark.parametrize("command", ["train", "benchmark"])
def test_a_cpu_has_none(
    command: str,
    config_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["tfm", command, "--config", config_file, "--set", RECORDED])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 78
    messages = capsys.readouterr().err
    assert "runtime.cuda_graphs: true needs an NVIDIA GPU, but the device is: CPU" in messages
    assert "--set runtime.cuda_graphs=false" in messages
    assert [one.name for one in tmp_path.iterdir()] == [config_file]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("model.layer_dropout=0.1", "model.layer_dropout skips layers within a pass"),
        ("runtime.sharding=full", "runtime.sharding: full exchanges weights within a pass"),
    ],
)
def test_passes_must_consist_of_the_same_operations(config_file: str, setting: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as refused:
        load_config(config_file, [RECORDED, setting])
    assert "or set runtime.cuda_graphs: false" in str(refused.value.hint)


def test_batches_that_fill_the_memory_leave_no_room_for_recordings(config_file: str) -> None:
    auto = "training.batch_sentences=null", "training.batch_tokens=auto", "training.accumulate=1"
    with pytest.raises(ConfigError, match="auto finds batches that fill the memory"):
        load_config(config_file, [RECORDED, *auto, "training.update_tokens=900"])


@pytest.mark.long
def test_a_run_of_an_earlier_version_goes_on_without_recordings_and_without_a_word(
    config_file: str, caplog: pytest.LogCaptureFixture
) -> None:
    train(load_config(config_file, ["runtime.cuda_graphs=false", "training.max_steps=2"]))
    caplog.set_level("INFO")
    run = train(load_config(config_file, ["training.max_steps=3"]))
    assert load_config(run.folder / "config.yaml").runtime.cuda_graphs is False
    assert "cuda_graphs" not in caplog.text
