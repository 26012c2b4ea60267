"""benchmarks/gpu_peers.py: the parts of it that need neither a GPU nor other programs."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from .small_benchmarks import script

peers = script("gpu_peers")
OPTIONS = {"tiny": True, "updates": 2, "seconds": 0.0}


def task_in(folder: Path) -> object:
    return peers.Task({**OPTIONS, "root": str(folder), "folder": str(folder)})


def test_a_row_names_the_program_its_speed_and_what_failed() -> None:
    rates = {"together": 1000.4, "median": 1001.0, "p10": 900.0, "p90": 1100.0, "updates": 60, "tokens": 24_000.0}
    row = {"name": "JoeyNMT", "size": 25_000, "memory_gb": 9.96, "ratio": 0.25, **rates}
    shown = " ".join(peers.line_of(row).split())
    assert shown == (
        "JoeyNMT 25,000 1,000 tokens/s; median 1,001 (900-1,100) 0.25 x tfm; 60 updates of 24,000, 10.0 GB"
    )
    assert " x tfm" not in peers.line_of(row | {"ratio": None})
    assert peers.line_of({"name": "JoeyNMT", "error": "no module"}).split() == ["JoeyNMT", "failed:", "no", "module"]


def test_the_warm_up_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, object]] = []
    monkeypatch.setattr(peers, "tell", found.append)
    monkeypatch.setattr(peers, "WARM_UP", 3)
    laps = peers.Laps(task_in(tmp_path))
    assert [laps.end(tokens) for tokens in (9, 9, 9, 4, 6)] == [False, False, False, False, True]
    laps.tell(25)
    [row] = found
    assert (row["size"], row["updates"], row["tokens"]) == (25, 2, 5.0)


@pytest.mark.heavy
def test_no_target_of_the_plain_model_depends_on_later_words_or_on_padding(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = peers.PlainTransformer(task_in(tmp_path), {"pad": 0, "num_words": 20}).eval()
    source, inputs = torch.tensor([[4, 5, 6]]), torch.tensor([[2, 7, 8, 9]])
    whole = model((source, inputs, inputs))
    cut = model((torch.tensor([[4, 5, 6, 0]]), inputs[:, :2], inputs))
    assert whole.shape == (1, 4, 20)
    torch.testing.assert_close(whole[:, :2], cut, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_a_program_that_fails_has_a_row_that_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no such program')"]
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: start(failing, **options))
    monkeypatch.setattr(peers, "store_batches", lambda _: None)
    rows = [*peers.compare(task_in(tmp_path), ["tfm", "JoeyNMT"], 30.0)]
    assert [(row["name"], row["error"]) for row in rows if "error" in row] == [
        ("tfm", "no such program"),
        ("JoeyNMT", "no such program"),
    ]
