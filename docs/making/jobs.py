"""Runs commands of tfm and programs in a process of its own, in the same way on every machine."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from making.blocks import ROOT, MarkerError

RUNNER = Path(__file__).with_name("runner.py")
ENVIRONMENT = {
    "NO_COLOR": "1",
    "COLUMNS": "110",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8",
    "MPLBACKEND": "agg",
    "PYTHONPATH": str(ROOT),
}


def answers_of(jobs: Sequence[Mapping[str, object]]) -> list[dict[str, str]]:
    """What the runner answers to each job; runner.py says what jobs and answers are.

    Raises:
        MarkerError: the process has failed.
    """
    answered = subprocess.run(
        [sys.executable, str(RUNNER)],
        input=json.dumps(jobs),
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **ENVIRONMENT},
        cwd=ROOT,
        check=False,
    )
    if answered.returncode:
        raise MarkerError(f"{RUNNER.name}: {answered.stderr[-2000:]}")
    return json.loads(answered.stdout)
