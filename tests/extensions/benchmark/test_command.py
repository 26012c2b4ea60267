"""`tfm benchmark`: its output, its errors, and nothing left behind."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from transformer_cli.cli import app
from transformer_cli.config import load_config
from transformer_cli.extensions.benchmark import measuring
from transformer_cli.extensions.benchmark.measuring import Pacing
from transformer_cli.process.errors import ConfigError, MissingInputError, TfmError, UsageError
from transformer_cli.training.run import train

from .small_benchmarks import AT_ONCE, TINY

SETTINGS = [option for setting in TINY for option in ("--set", setting)]


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Measure for a moment; the temporary folders are inside the test's own."""
    monkeypatch.setattr(measuring, "SIDES", {"cpu": (16, 32)})
    monkeypatch.setattr(measuring, "Pacing", _pacing)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "here")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def _pacing(num_updates: int | None = None) -> Pacing:
    return replace(AT_ONCE, num_updates=num_updates or 3)


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["benchmark", *arguments])
    if isinstance(result.exception, TfmError):
        raise result.exception
    return result


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_the_report_is_on_standard_output_and_the_progress_on_standard_error(
    tmp_path: Path,
) -> None:
    result = run("--config", "copy.yaml", *SETTINGS, "--updates", "4")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].endswith("CPU, 1 thread, float32; 4 updates")
    assert lines[-1].startswith(("Forward", "Backward", "Loss", "Optimizer", "Other", "Waiting"))
    assert "measuring the phases" in result.stderr
    assert "measuring" not in result.stdout
    assert files(tmp_path) == {}, "nothing is left"
    assert list((tmp_path / "temporary").glob("tfm-*")) == []


def test_parts_of_a_stream_that_cannot_be_shared_out_are_refused_before_the_corpus_is_read() -> None:
    stream = ["data.root=nowhere", "data.streaming=true", "data.stream_parts=3"]
    options = [option for setting in stream for option in ("--set", setting)]
    with pytest.raises(ConfigError, match="3 parts cannot give equally many"):
        run("--config", "multi30k-en-de.yaml", *options)


@pytest.mark.long
def test_json_is_one_object_and_two_of_them_are_compared_with_a_warning_of_other_conditions() -> None:
    result = run("--config", "copy.yaml", *SETTINGS, "--json")
    found = json.loads(result.stdout)
    assert found["figures"]["num_updates"] == 3
    other = result.stdout.replace('"d_ff": 16', '"d_ff": 32')
    assert other != result.stdout
    for name, text in (("before.json", result.stdout), ("after.json", result.stdout), ("other.json", other)):
        Path(name).write_text(text)
    same = run("--compare", "before.json", "after.json")
    table = same.stdout.splitlines()
    assert table[0].split() == ["before", "after", "after/before"]
    assert table[1].startswith("target tokens per second ")
    assert "the conditions differ" not in same.stderr
    compared = json.loads(run("--compare", "before.json", "after.json", "--json").stdout)
    assert compared["differences"] == []
    assert {row["name"] for row in compared["figures"]} >= {"backward, ms", "padding"}
    warned = run("--compare", "before.json", "other.json")
    assert "the conditions differ: model.d_ff: 16 before, 32 after" in warned.stderr
    assert "the conditions differ" not in warned.stdout


@pytest.mark.long
def test_decoding_by_random_weights(tmp_path: Path) -> None:
    result = run("--decode", "--config", "copy.yaml", *SETTINGS, "--json")
    found = json.loads(result.stdout)
    assert found["kind"] == "decoding"
    assert found["is_forced"]
    assert found["greedy"]["beam_size"] == 1
    assert found["beam"]["beam_size"] == 4
    assert files(tmp_path) == {}


@pytest.mark.heavy
def test_a_finished_run_lends_its_data_and_its_weights_and_does_not_change(tmp_path: Path) -> None:
    config = load_config("copy.yaml", [*TINY, "training.max_steps=2"])
    train(config)
    before = files(tmp_path / "here")
    training = run("--config", "copy.yaml", *SETTINGS, "--set", "training.max_steps=2")
    assert "runs/copy/data: these prepared data are used" in training.stderr.replace("\\", "/")
    assert "preparing" not in training.stderr
    decoding = run("--decode", "--run", "copy")
    assert "(trained)" in decoding.stdout
    assert files(tmp_path / "here") == before
    with pytest.raises(ConfigError, match="cannot be changed") as refused:
        run("--decode", "--run", "copy", "--set", "model.d_ff=3")
    assert "tfm benchmark --decode takes decoding.*, runtime.device" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of --config, --run and --compare"),
        (["--config", "a", "--run", "b"], "give one of"),
        (["--run", "b"], "--run goes with --decode"),
        (["--decode", "--run", "b", "--updates", "5"], "--updates is for"),
        (["--compare", "a", "b", "--set", "seed=1"], "takes neither --decode nor --set"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(*arguments)


def test_what_does_not_exist_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"none\.yaml"):
        run("--config", "none.yaml")
    with pytest.raises(MissingInputError, match="none"):
        run("--decode", "--run", "none")
    with pytest.raises(MissingInputError, match=r"none\.json"):
        run("--compare", "none.json", "none.json")
    with pytest.raises(TfmError, match="nowhere"):
        run("--config", "multi30k-en-de.yaml", "--set", "data.root=nowhere")
    assert files(tmp_path) == {}
    assert list((tmp_path / "temporary").glob("tfm-*")) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused_before_the_corpus_is_read() -> None:
    with pytest.raises(ConfigError, match="finds no such device"):
        run("--config", "multi30k-en-de.yaml", "--set", "data.root=nowhere", "--set", "runtime.device=cuda")
