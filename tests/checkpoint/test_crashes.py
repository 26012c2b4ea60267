"""Kills, power failures and failing disks while checkpoints are saved (A1, A3, A4, A5, A7, A8, A14, A19)."""

import errno
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Retention
from transformer_cli.process.errors import CannotCreateError, StorageError, TfmError, TryAgainError
from transformer_cli.storage import FileSystem

from ..crash_states import History, Tree, build
from ..disks import mounted
from ..faults import (
    FailingFileSystem,
    Operation,
    RecordingFileSystem,
    WatchedFileSystem,
    killing_file_system,
    run_in_child,
)
from .snapshots import newest_step, saved, snapshot

ONE = Retention(keep_last=1, keep_best=1)
CODES = (errno.ENOSPC, errno.EIO, errno.EACCES)


def save_twice(run: Path, fs: FileSystem) -> None:
    """Save steps 20 and 30 after the existing checkpoints; the second save deletes step 20's checkpoint."""
    checkpoints = Checkpoints(run, ONE, fs=fs)
    checkpoints.sweep()
    checkpoints.save(snapshot(20), 2.0)
    checkpoints.save(snapshot(30), 1.0)


def number_of_operations(run: Path, operation: str = "any") -> int:
    fs = WatchedFileSystem(lambda operation, number: None)
    save_twice(run, fs)
    return fs.counts[operation]


def leftovers(run: Path) -> list[str]:
    return [path.name for path in run.rglob("*") if path.name.startswith((".tmp-", ".trash-", ".replaced-"))]


@pytest.mark.heavy
@pytest.mark.process
def test_a_kill_before_any_operation_costs_no_acknowledged_checkpoint(tmp_path: Path) -> None:
    saved(tmp_path / "before", 10)
    count = number_of_operations(tmp_path / "count")
    assert count > 60
    for number in range(1, count + 1):
        run, acknowledged = tmp_path / f"run-{number}", tmp_path / f"acknowledged-{number}"
        shutil.copytree(tmp_path / "before", run, symlinks=True)

        def work(run: Path = run, log: Path = acknowledged, number: int = number) -> None:
            checkpoints = Checkpoints(run, ONE, fs=killing_file_system("any", number))
            for step in (20, 30):
                checkpoints.save(snapshot(step), 50.0 - step)
                log.write_text(str(step))

        assert run_in_child(work) == -9 or number > count - 2
        newest = newest_step(run)
        assert newest is not None
        assert newest >= (int(acknowledged.read_text()) if acknowledged.exists() else 10)
        after = Checkpoints(run, ONE)
        after.sweep()
        assert not leftovers(run)
        if number % 5 == 0:
            after.save(snapshot(40))
            assert newest_step(run) == 40
        shutil.rmtree(run)


@pytest.mark.heavy
@pytest.mark.process
def test_a_kill_while_a_checkpoint_is_replaced_keeps_one_of_the_two(tmp_path: Path) -> None:
    fs = WatchedFileSystem(lambda operation, number: None)
    saved(tmp_path / "count", 10)
    Checkpoints(tmp_path / "count", ONE, fs=fs).save(snapshot(10))
    for number in range(1, fs.counts["any"] + 1):
        run = tmp_path / f"run-{number}"
        saved(run, 10)

        def work(run: Path = run, number: int = number) -> None:
            Checkpoints(run, ONE, fs=killing_file_system("any", number)).save(snapshot(10))

        assert run_in_child(work) == -9
        assert newest_step(run) == 10
        Checkpoints(run).sweep()
        assert not leftovers(run)
        assert newest_step(run) == 10
        assert (run / "checkpoints" / "step-00000010").is_dir()


def record(root: Path) -> tuple[list[Operation], dict[int, int]]:
    """All disk operations of a run, and how many of them came before each acknowledged save."""
    fs = RecordingFileSystem(root)
    checkpoints = Checkpoints(root / "runs" / "tiny", ONE, fs=fs)
    acknowledged = {0: 0}
    for step, score in ((10, 1.0), (20, 3.0), (30, 2.0), (30, 2.0), (40, 4.0)):
        checkpoints.save(snapshot(step), score)
        acknowledged[len(fs.operations)] = step
    return fs.operations, acknowledged


def states_after_power_failures(
    operations: list[Operation], acknowledged: dict[int, int]
) -> Iterator[tuple[Tree, int]]:
    """Each possible state of the disk once, with the highest step that was acknowledged before it."""
    history = History.of(operations)
    steps: dict[Tree, int] = {}
    for time in range(len(operations) + 1):
        step = max(step for at, step in acknowledged.items() if at <= time)
        for tree in history.states(time):
            steps[tree] = max(steps.get(tree, 0), step)
    yield from steps.items()


def step_found(tree: Tree, folder: Path) -> int | None:
    folder.mkdir()
    build(tree, folder)
    try:
        return newest_step(folder / "runs" / "tiny")
    finally:
        shutil.rmtree(folder)


@pytest.mark.heavy
def test_after_any_power_failure_a_checkpoint_as_new_as_the_last_acknowledged_is_found(
    tmp_path: Path,
) -> None:
    (tmp_path / "root").mkdir()
    operations, acknowledged = record(tmp_path / "root")
    count = 0
    for tree, step in states_after_power_failures(operations, acknowledged):
        count += 1
        found = step_found(tree, tmp_path / str(count))
        assert (found or 0) >= step, [path for path, *_ in tree]
    assert count > 300


@pytest.mark.heavy
@pytest.mark.parametrize("forgotten", ["files", "folders"])
def test_without_a_flush_some_power_failure_loses_a_checkpoint(tmp_path: Path, forgotten: str) -> None:
    """The negative control: without flushes, the enumeration finds states that lose a checkpoint."""
    (tmp_path / "root").mkdir()
    operations, acknowledged = record(tmp_path / "root")
    folders = {operation.path for operation in operations if operation.kind == "make_folder"} | {"."}
    finals = {operation.other for operation in operations if operation.kind == "rename"}

    def is_forgotten(operation: Operation) -> bool:
        is_folder = operation.path in folders | finals
        return operation.kind == "flush" and is_folder == (forgotten == "folders")

    kept = [index for index, operation in enumerate(operations) if not is_forgotten(operation)]
    renumbered = {sum(index < at for index in kept): step for at, step in acknowledged.items()}
    lost = 0
    for count, (tree, step) in enumerate(
        states_after_power_failures([operations[index] for index in kept], renumbered)
    ):
        try:
            lost += (step_found(tree, tmp_path / str(count)) or 0) < step
        except StorageError:
            lost += 1
        if lost:
            return
    pytest.fail("no state lost anything")


@pytest.mark.heavy
@pytest.mark.parametrize("lasting", [False, True])
def test_a_failing_operation_is_reported_and_older_checkpoints_stay(tmp_path: Path, lasting: bool) -> None:
    """Each operation fails once; operations of the same kind fail with the codes by turns."""
    saved(tmp_path / "before", 10)
    kinds: list[str] = []
    fs = WatchedFileSystem(lambda operation, number: kinds.append(operation))
    save_twice(shutil.copytree(tmp_path / "before", tmp_path / "count", symlinks=True), fs)
    for number, kind in enumerate(kinds, start=1):
        run = tmp_path / f"run-{number}"
        shutil.copytree(tmp_path / "before", run, symlinks=True)
        code = CODES[(kinds[:number].count(kind) + lasting) % len(CODES)]
        fs = FailingFileSystem("any", number, code, lasting=lasting)
        acknowledged = 10
        error: TfmError | None = None
        checkpoints = Checkpoints(run, ONE, fs=fs)
        for step in (20, 30):
            try:
                checkpoints.save(snapshot(step), 50.0 - step)
            except TfmError as raised:
                error = raised
                break
            acknowledged = step
        newest = newest_step(run)
        assert newest is not None
        assert newest >= acknowledged
        # A failure to make a link is only logged, because links are hints.
        if fs.has_failed and error is None:
            assert fs.counts.get("link", 0) > 0
        if error is not None:
            expected = {errno.ENOSPC: (75,), errno.EIO: (74,), errno.EACCES: (73, 74)}[code]
            assert error.exit_code in expected
            assert str(run) in error.message
            assert error.hint
        if not lasting or code == errno.ENOSPC:
            assert not [name for name in leftovers(run) if name.startswith(".tmp-")] or error is None


@pytest.mark.long
def test_a_full_disk_at_any_write_names_path_and_bytes_and_removes_what_was_begun(
    tmp_path: Path,
) -> None:
    count = number_of_operations(tmp_path / "count", "write") // 2
    assert count >= 8
    for number in range(1, count + 1):
        run = tmp_path / f"run-{number}"
        saved(run, 10)
        checkpoints = Checkpoints(run, fs=FailingFileSystem("write", number, errno.ENOSPC, lasting=True))
        with pytest.raises(
            TryAgainError,
            match=r"step-00000020: No space left .*: [\d,]+ bytes needed, [\d,]+ bytes free",
        ):
            checkpoints.save(snapshot(20))
        assert not leftovers(run)
        assert newest_step(run) == 10


@pytest.mark.process
def test_a_limit_on_file_sizes_is_a_full_disk(tmp_path: Path) -> None:
    saved(tmp_path / "run", 10)

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        try:
            Checkpoints(tmp_path / "run").save(snapshot(20))
        except TryAgainError as error:
            return 0 if "bytes needed" in error.message else 3
        return 4

    assert run_in_child(work) == 0
    assert not leftovers(tmp_path / "run")
    assert newest_step(tmp_path / "run") == 10


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KB, where mounting one is allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place, "size=256k") as is_mounted:
        if not is_mounted:
            pytest.skip("mounting a file system needs root")
        yield place


@pytest.mark.process
def test_on_a_disk_that_is_really_full_the_old_checkpoint_stays(small_disk: Path) -> None:
    saved(small_disk / "run", 10)
    (small_disk / "filler").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096 - 4096))
    with pytest.raises(TryAgainError, match=r"not enough space: [\d,]+ bytes needed, [\d,]+ bytes free"):
        Checkpoints(small_disk / "run").save(snapshot(20))
    assert newest_step(small_disk / "run") == 10
    (small_disk / "filler").unlink()
    Checkpoints(small_disk / "run").save(snapshot(20))
    assert newest_step(small_disk / "run") == 20


class AlmostFull(FileSystem):
    def free_bytes(self, path: Path) -> int:
        return 1_000_000


def test_too_little_space_is_told_before_anything_is_written(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "run", ONE, fs=AlmostFull())
    checkpoints.require_space(300_000)
    with pytest.raises(TryAgainError, match="not enough space: 1,200,000 bytes needed, 1,000,000 bytes free"):
        checkpoints.require_space(400_000)
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_that_will_not_fit_is_not_begun(tmp_path: Path) -> None:
    class Full(FileSystem):
        def free_bytes(self, path: Path) -> int:
            return 1000

        def create_file(self, path: Path) -> int:
            pytest.fail("begun")

    saved(tmp_path, 10)
    with pytest.raises(TryAgainError, match="not enough space"):
        Checkpoints(tmp_path, fs=Full()).save(snapshot(20))
    assert newest_step(tmp_path) == 10


def test_checkpoints_that_exist_need_no_more_space(tmp_path: Path) -> None:
    saved(tmp_path / "run", 10, 20, 30)
    Checkpoints(tmp_path / "run", ONE, fs=AlmostFull()).require_space(900_000)


def test_a_run_below_a_plain_file_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(
        CannotCreateError,
        match=r"runs/tiny/checkpoints: cannot be created: .*/runs is not a folder",
    ):
        Checkpoints(tmp_path / "runs" / "tiny").save(snapshot(10))


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_modes_follow_the_umask(tmp_path: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        (folder,) = saved(tmp_path / "run", 10)
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o777 & ~mask
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o666 & ~mask}


def test_a_checkpoint_that_reads_back_otherwise_is_not_called_saved(tmp_path: Path) -> None:
    class Rotting(FileSystem):
        def rename(self, old: Path, new: Path) -> None:
            super().rename(old, new)
            if new.name.startswith("step-"):
                (new / "state.json").write_bytes(b'{\n "step": 21\n}\n')

    saved(tmp_path / "run", 10)
    with pytest.raises(StorageError, match="reading back what was just written failed"):
        Checkpoints(tmp_path / "run", ONE, fs=Rotting()).save(snapshot(20))
    assert newest_step(tmp_path / "run") == 10


RECORDS = ("config.yaml", "metrics.jsonl", "tensorboard", "data")


def with_records(run: Path) -> Path:
    saved(run, 10)
    for name in RECORDS[:2]:
        (run / name).write_text("{}\n")
    for name in RECORDS[2:]:
        (run / name).mkdir()
        (run / name / "file").write_text("old")
    return run


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize("is_asked_again", [False, True], ids=["resumed", "from scratch again"])
def test_a_kill_while_a_run_is_moved_away_separates_no_record_from_its_checkpoints(
    tmp_path: Path, is_asked_again: bool
) -> None:
    fs = WatchedFileSystem(lambda operation, number: None)
    Checkpoints(with_records(tmp_path / "count"), fs=fs).move_away(along=RECORDS)
    count = fs.counts["any"]
    assert count >= 14
    for number in range(1, count + 1):
        run = with_records(tmp_path / f"run-{number}")

        def work(run: Path = run, number: int = number) -> None:
            Checkpoints(run, fs=killing_file_system("any", number)).move_away(along=RECORDS)

        assert run_in_child(work) == -9
        after = Checkpoints(run)
        after.sweep()
        assert_is_in_place(run)
        if is_asked_again:
            place = run / "checkpoints-old-1"
            assert after.move_away(along=RECORDS) == place
            assert all((place / name).exists() for name in RECORDS)
            assert [path.name for path in run.iterdir()] == [place.name]


def assert_is_in_place(run: Path) -> None:
    """The run is as `with_records` made it."""
    assert {path.name for path in run.iterdir()} == {"checkpoints", *RECORDS}
    assert (run / "data" / "file").read_text() == "old"
    steps = [path.name for path in (run / "checkpoints").iterdir()]
    assert sorted(steps) == ["last", "step-00000010"]


@pytest.mark.long
@pytest.mark.process
def test_a_kill_while_an_earlier_run_is_put_back_loses_nothing_of_it(tmp_path: Path) -> None:
    def set_aside(run: Path) -> Path:
        Checkpoints(with_records(run)).move_away(along=RECORDS)
        (run / "data").mkdir()  # a new run has begun to prepare its data
        (run / "data" / "file").write_text("new")
        return run

    fs = WatchedFileSystem(lambda operation, number: None)
    Checkpoints(set_aside(tmp_path / "count"), fs=fs).sweep()
    assert_is_in_place(tmp_path / "count")
    count = fs.counts["any"]
    assert count >= 14
    for number in range(1, count + 1):
        run = set_aside(tmp_path / f"run-{number}")

        def work(run: Path = run, number: int = number) -> None:
            Checkpoints(run, fs=killing_file_system("any", number)).sweep()

        assert run_in_child(work) == -9
        Checkpoints(run).sweep()
        assert_is_in_place(run)


def test_a_record_that_a_kill_left_among_the_checkpoints_is_not_overwritten(tmp_path: Path) -> None:
    run = with_records(tmp_path / "run")
    (run / "checkpoints" / "metrics.jsonl").write_text("earlier")
    checkpoints = Checkpoints(run)
    checkpoints.sweep()
    place = checkpoints.move_away(along=RECORDS)
    assert place is not None
    assert {path.read_text() for path in place.glob("metrics.jsonl*")} == {"earlier", "{}\n"}
