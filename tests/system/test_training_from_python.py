"""The scripts of docs/training_from_python.md train, resume and stop as the page says."""

import os
import re
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transformer_cli.storage.filesystem import MANIFEST_NAME

PAGE = Path(__file__).parents[2] / "docs/training_from_python.md"
FIRST, SECOND, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
QUICK = [
    "training.max_steps=20",
    "training.batch_sentences=8",
    "data.num_pairs=200",
    "runtime.threads=1",
    "training.save_every=5",
]


def quick(script: str) -> str:
    """The script of the page with a shorter training: every other line stays as it is."""
    overrides = ", ".join(f'"{setting}"' for setting in QUICK)
    assert '"training.max_steps=300"' in script
    return script.replace('"training.max_steps=300"', overrides).replace("log_every=20", "log_every=2")


def start(script: str, folder: Path) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(script, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def weights(folder: Path) -> bytes:
    return (folder / "runs/copy/checkpoints/step-00000020/model.safetensors").read_bytes()


def test_the_script_has_ten_lines() -> None:
    assert len([line for line in FIRST.splitlines() if line.strip()]) <= 10


def test_the_script_trains_translates_and_resumes_bit_for_bit(tmp_path: Path) -> None:
    whole = start(quick(FIRST), tmp_path / "whole")
    out, talk = whole.communicate(timeout=240)
    assert whole.returncode == 0, talk
    *reports, translation = out.splitlines()
    assert [line.split(":")[0] for line in reports] == [f"step {n}" for n in range(2, 21, 2)]
    assert re.fullmatch(r"[\d ]*", translation)
    assert talk == "", "nobody asked for messages"
    assert "step 20/20" in (tmp_path / "whole/runs/copy/train.log").read_text()

    cut = start(quick(FIRST), tmp_path / "cut")
    assert cut.stdout is not None
    assert cut.stdout.readline().startswith("step 2: loss")
    cut.send_signal(signal.SIGINT)
    out, talk = cut.communicate(timeout=240)
    assert "InterruptedBySignal: stopped and saved at step" in talk
    saved = [path.parent.name for path in tmp_path.glob(f"cut/runs/copy/checkpoints/*/{MANIFEST_NAME}")]
    assert "step-00000020" not in saved
    rest = start(quick(FIRST), tmp_path / "cut")
    out, talk = rest.communicate(timeout=240)
    assert rest.returncode == 0, talk
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_a_callback_stops_the_training_and_the_next_call_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_cli import load_config, train

    monkeypatch.chdir(tmp_path)
    page: dict[str, Any] = {}
    exec(SECOND.replace("> 600", "> 6"), page)
    ticks = count()
    page["time"] = SimpleNamespace(perf_counter=lambda: next(ticks))  # each look at the clock is a second
    config = load_config("copy.yaml", [*QUICK, "training.max_steps=8"])
    steps = [0]
    while not (run := train(config, callbacks=[page["TimeLimit"]()])).was_finished:
        assert run.step > steps[-1], "each call goes on"
        steps.append(run.step)
    assert len(steps) >= 3, "it was stopped more than once"
    assert (run.step, run.limits_reached) == (8, ("training.max_steps=8",))
