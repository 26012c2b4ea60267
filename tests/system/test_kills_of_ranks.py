"""After `kill -9` of one of two processes at any point, the same command continues and loses no acknowledged save (B14)."""

import signal
from pathlib import Path
from typing import Any

import pytest

from ..experiments import TINY, essence, write_tiny
from ..launcher import Launcher, Tfm
from ..ranks import run_ranks

pytestmark = pytest.mark.kills

ONE_EACH = TINY.replace("accumulate: 2", "accumulate: 1")
TRAIN = ("train", "--config", "tiny.yaml", "--set", "training.average_last=2")
LAST_STEP = 13
"""With its checkpoint only the average is missing, which the same command makes."""

# The rank that is killed, and where.
POINTS = [(0, "encoding", 1), (0, "save", 2), (1, "validation", 1), (0, "averaging", 1)]
MORE_POINTS = [
    (0, "data", 1),
    (0, "step", 6),
    (1, "step", 6),
    (1, "forward", 9),
    (0, "validation", 2),
    (0, "batch", 2),
    (1, "batch", 2),
    (0, "verification", 2),
    (0, "rotation", 3),
    (0, "link", 3),
    (0, "report", 3),
    (0, "average", 1),
    (0, "choice", 1),
]


@pytest.fixture(scope="module")
def uninterrupted(launcher: Launcher, memory_folder: Path) -> dict[str, Any]:
    folder = memory_folder / "uninterrupted"
    folder.mkdir()
    write_tiny(folder, ONE_EACH)
    assert [rank.exit_code for rank in run_ranks(Tfm(launcher, folder), *TRAIN)] == [0, 0]
    return essence(folder / "runs/tiny")


@pytest.mark.parametrize(
    ("victim", "point", "number"),
    [*POINTS, *(pytest.param(*point, marks=pytest.mark.slow) for point in MORE_POINTS)],
)
def test_a_kill_of_one_process_at_any_point_costs_no_acknowledged_save(
    tfm: Tfm, uninterrupted: dict[str, Any], victim: int, point: str, number: int
) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    record = tfm.folder / "acknowledged"
    faults: dict[int, list[tuple[object, ...]]] = {0: [("note_saves", str(record))], 1: []}
    faults[victim].append(("at", point, number, "signal", "SIGKILL"))
    ranks = run_ranks(tfm, *TRAIN, faults=faults)
    survivor = ranks[1 - victim]
    assert ranks[victim].exit_code == -signal.SIGKILL, ranks[victim].talk
    assert survivor.exit_code == 75, survivor.talk
    assert f"rank {victim} " in survivor.talk
    acknowledged = int(record.read_text().split()[-1]) if record.exists() else 0

    again = run_ranks(tfm, *TRAIN)
    assert [rank.exit_code for rank in again] == [0, 0], again[0].talk + again[1].talk
    if 0 < acknowledged < LAST_STEP:
        resumed_at = again[0].talk.partition("resuming runs/tiny at step ")[2].partition(";")[0]
        assert int(resumed_at) >= acknowledged
    assert essence(tfm.folder / "runs/tiny") == uninterrupted
    assert [path for path in tfm.folder.rglob(".*") if path.name != ".lock"] == []
