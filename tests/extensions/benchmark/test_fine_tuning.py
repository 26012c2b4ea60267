"""`tfm benchmark` of a config that fine-tunes: its data are encoded by the tokenizers of the other run."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.cli import app
from transformer_cli.config import load_config
from transformer_cli.extensions.benchmark import measuring
from transformer_cli.process.errors import MissingInputError
from transformer_cli.training.run import train

from .small_benchmarks import AT_ONCE, TINY

# Sequences of fewer symbols: a vocabulary that is learned from them is smaller.
TUNED = "name=tuned", "data.num_symbols=4", "training.init_from=copy"


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SIDES", {"cpu": (16, 32)})
    monkeypatch.setattr(measuring, "Pacing", lambda num_updates: AT_ONCE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def benchmark(*overrides: str) -> dict[str, Any]:
    options = [option for setting in (*TINY, *TUNED, *overrides) for option in ("--set", setting)]
    threads = torch.get_num_threads()
    result = CliRunner().invoke(app, ["benchmark", "--config", "copy.yaml", *options, "--json"])
    torch.set_num_threads(threads)
    if result.exception is not None:
        raise result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.heavy
def test_the_vocabulary_is_that_of_the_other_run_and_frozen_parts_need_fewer_products() -> None:
    settings = [*TINY, "training.max_steps=2"]
    trained = train(load_config("copy.yaml", settings))
    found = benchmark()
    tuned = train(load_config("copy.yaml", [*settings, *TUNED]))
    of_both = [
        sum(parameter.numel() for parameter in load_trained(run.folder, which="last").model.parameters())
        for run in (trained, tuned)
    ]
    assert of_both == 2 * [found["num_parameters"]]
    frozen = benchmark("training.frozen=[encoder, embeddings]", "name=frozen")
    least = frozen["figures"]["flop_per_target_token"]
    assert least < 0.8 * found["figures"]["flop_per_target_token"]


def test_another_run_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(MissingInputError, match=r"training\.init_from"):
        benchmark()
