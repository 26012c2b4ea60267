from pathlib import Path

import pytest

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Retention, list_checkpoints
from transformer_cli.checkpoint.runs import prune
from transformer_cli.process.errors import StorageError, TryAgainError
from transformer_cli.storage import RunLock

from .snapshots import snapshot

# The best is step 20, the second best step 10, the newest step 50.
SCORES = {10: 2.0, 20: 1.0, 30: 5.0, 40: None, 50: 4.0}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    checkpoints = Checkpoints(tmp_path / "a", Retention(keep_last=100, metric="loss"))
    for step, score in SCORES.items():
        checkpoints.save(snapshot(step), score)
    return tmp_path / "a"


def steps(run: Path) -> list[int]:
    return sorted(found.step for found in list_checkpoints(run / "checkpoints").whole)


@pytest.mark.parametrize(
    ("keep_last", "keep_best", "kept"),
    [(1, 1, [20, 50]), (2, 1, [20, 40, 50]), (1, 2, [10, 20, 50]), (9, 1, sorted(SCORES))],
)
def test_the_last_and_the_best_stay(run: Path, keep_last: int, keep_best: int, kept: list[int]) -> None:
    before = sum(path.lstat().st_size for path in run.rglob("*") if path.is_file())
    planned = prune(run, keep_last=keep_last, keep_best=keep_best, is_dry_run=True)
    assert steps(run) == sorted(SCORES), "a dry run deletes nothing"
    done = prune(run, keep_last=keep_last, keep_best=keep_best, is_dry_run=False)
    assert planned == done
    assert steps(run) == sorted(done.kept) == kept
    assert sorted(done.deleted) == sorted(set(SCORES) - set(kept))
    after = sum(path.lstat().st_size for path in run.rglob("*") if path.is_file())
    assert abs(before - after - done.freed_bytes) < 1000, "the lock file aside"


def test_a_damaged_checkpoint_takes_the_place_of_no_good_one(run: Path) -> None:
    for step in (20, 50):
        weights = run / "checkpoints" / f"step-{step:08d}" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    done = prune(run, keep_last=1, keep_best=1, is_dry_run=False)
    assert sorted(done.kept) == [10, 40]
    assert done.deleted == [30]
    names = {path.name for path in (run / "checkpoints").glob("step-*")}
    assert {"step-00000020", "step-00000050"} <= names, "what is damaged is left alone"


def test_a_run_in_training_is_left_alone(run: Path) -> None:
    with RunLock(run), pytest.raises(TryAgainError, match="in use by") as refused:
        prune(run, keep_last=1, keep_best=1, is_dry_run=False)
    assert refused.value.hint == "wait until that process has ended, or stop it"
    assert steps(run) == sorted(SCORES)


def test_a_run_without_a_whole_checkpoint_is_refused(run: Path) -> None:
    for manifest in run.rglob("MANIFEST.json"):
        manifest.unlink()
    with pytest.raises(StorageError, match="no checkpoint is valid"):
        prune(run, keep_last=1, keep_best=1, is_dry_run=False)


def test_the_last_and_the_best_cannot_be_asked_away(run: Path) -> None:
    with pytest.raises(ValueError, match="never deleted"):
        prune(run, keep_last=0, keep_best=1, is_dry_run=False)
