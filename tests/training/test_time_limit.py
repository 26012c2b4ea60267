import time
from pathlib import Path

import pytest
import torch

from transformer_cli import load_config, train
from transformer_cli.training.advice import TimeLimit
from transformer_cli.training.callbacks import StepReport


def step_report() -> StepReport:
    numbers = (torch.tensor(1.0) for _ in range(3))
    return StepReport(*numbers, torch.tensor(True), num_source_tokens=5, num_target_tokens=7)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_it_stops_after_its_minutes_and_not_before(clock: list[float]) -> None:
    limit = TimeLimit(2.5)
    limit.on_step(1, step_report())
    clock[0] += 149
    assert not limit.should_stop()
    clock[0] += 1
    assert limit.should_stop()
    assert not limit.should_stop_now(), "a validation is never cut short"


def test_every_process_makes_an_update_however_short_the_limit_is(clock: list[float]) -> None:
    limit = TimeLimit(0.001)
    clock[0] += 3600
    assert not limit.should_stop()
    limit.on_step(1, step_report())
    assert limit.should_stop()


@pytest.mark.long
def test_a_run_that_is_stopped_by_its_minutes_says_so_and_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = ["data.num_pairs=50", "training.max_steps=3", "model.d_model=16", "runtime.threads=1"]
    quick += ["model.encoder_layers=1", "model.decoder_layers=1"]
    quick += ["validation.sequence_lengths=[5]", "validation.num_samples=0"]
    stopped = train(load_config("copy.yaml", [*quick, "training.max_minutes=0.0001"]))
    assert (stopped.step, stopped.limits_reached) == (1, ("training.max_minutes=0.0001",))
    log = (stopped.folder / "train.log").read_text()
    assert "stopped by training.max_minutes=0.0001 after 1 step" in log
    again = train(load_config("copy.yaml", [*quick, "training.max_minutes=0.0001"]))
    assert again.step == 2, "new minutes for each process"
    finished = train(load_config("copy.yaml", quick))
    assert (finished.step, finished.limits_reached) == (3, ("training.max_steps=3",))
