"""Whole runs in float16: the scale of the gradient is kept, is the same for all processes, and serves translating."""

import json
import shutil
from pathlib import Path

import pytest

from ..experiments import (
    TINY,
    essence,
    forge,
    metrics_of,
    newest_checkpoint,
    state_of,
    write_tiny,
)
from ..launcher import Launcher, Tfm
from ..ranks import assert_close, run_ranks

HALF = TINY.replace("float32", "float16").replace("max_steps: 13", "max_steps: 13\n  max_skipped_in_a_row: 3")
OF_MANY_PARTS = HALF.replace("max_steps: 13", "max_steps: 13\n  ema_decay: 0.9\n  r_drop: 1.0")
POISON = ("poison", 2, 6)  # five updates in a row, more than max_skipped_in_a_row
ONE_EACH = HALF.replace("accumulate: 2", "accumulate: 1")


def test_a_resumed_run_in_float16_equals_the_uninterrupted_one_and_translates(tfm: Tfm) -> None:
    config = write_tiny(tfm.folder, OF_MANY_PARTS)
    finished = tfm("train", "--config", config, faults=[POISON])
    assert finished.exit_code == 0, finished.talk
    assert "gradients x 2,048" in finished.talk
    whole = essence(tfm.folder / "runs/tiny")
    assert state_of(tfm.folder / "runs/tiny")["gradient_scale"] == {
        "scale": 2_048.0,
        "growth_tracker": 7,
    }
    (tfm.folder / "runs").rename(tfm.folder / "before")
    stop = ("at", "step", 4, "signal", "SIGTERM")
    assert tfm("train", "--config", config, faults=[POISON, stop]).exit_code == 143
    assert state_of(tfm.folder / "runs/tiny")["gradient_scale"]["scale"] == 8_192.0
    rest = ("poison", 1, 2)
    assert tfm("train", "--config", config, faults=[rest]).exit_code == 0
    assert essence(tfm.folder / "runs/tiny") == whole
    translated = tfm("translate", "1 2 3")
    assert translated.exit_code == 0, translated.talk
    assert tfm("validate", "--split", "validation").exit_code == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sharding", ["none", "full"])
def test_all_processes_agree_on_the_scale(tfm: Tfm, launcher: Launcher, memory_folder: Path, sharding: str) -> None:
    """From a scale that is much too large, two processes come to the same one as a single process, and train on."""
    alone = Tfm(launcher, memory_folder / f"alone-{sharding}")
    alone.folder.mkdir()
    for one in (alone, tfm):
        write_tiny(one.folder, ONE_EACH)
    options = ("train", "--config", "tiny.yaml", "--set", f"runtime.sharding={sharding}")
    stop = {0: [("at", "step", 1, "signal", "SIGTERM")]}
    assert [rank.exit_code for rank in run_ranks(tfm, *options, faults=stop)] == [143, 143]
    state = state_of(tfm.folder / "runs/tiny")
    state["gradient_scale"]["scale"] = 2.0**27
    checkpoint = newest_checkpoint(tfm.folder / "runs/tiny")
    forge(checkpoint, "state.json", json.dumps(state).encode())
    shutil.copytree(tfm.folder / "runs", alone.folder / "runs", symlinks=True)
    assert alone("train", "--config", "tiny.yaml").exit_code == 0
    main, other = run_ranks(tfm, *options)
    assert (main.exit_code, other.exit_code) == (0, 0), main.talk + other.talk
    runs = [one.folder / "runs/tiny" for one in (tfm, alone)]
    scales = [[line.get("gradient_scale") for line in metrics_of(run)] for run in runs]
    assert scales[0] == scales[1]
    assert 2.0**10 < scales[0][-2] < 2.0**24
    assert_close(*runs, within=2e-3)
