"""Files and folders appear as a whole or not at all (A4, A7, A8, A18, A19)."""

import errno
import logging
import os
import re
from pathlib import Path

import pytest

from transformer_cli.process.errors import CannotCreateError, StorageError, TfmError, TryAgainError
from transformer_cli.storage import (
    Content,
    FileSystem,
    make_folders,
    point_link,
    remove,
    replace_file,
    require_space,
    staged_file,
    staged_folder,
    sweep,
    write_folder,
)
from transformer_cli.storage.filesystem import (
    REAL,
    Manifest,
    as_named,
    errors_explained,
    open_sealed,
)

from ..faults import FailingFileSystem, RecordingFileSystem

MANIFEST = Manifest(
    format_version=1,
    run_id="0" * 16,
    step=1,
    data_fingerprint="",
    metric="loss",
    score=None,
    saved_at=1,
    files=(),
)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    replace_file(path, b"first")
    replace_file(path, b"second")
    assert path.read_bytes() == b"second"
    assert names(tmp_path) == ["config.yaml"]


@pytest.mark.parametrize(
    ("operation", "code", "error"),
    [
        ("write", errno.ENOSPC, TryAgainError),
        ("write", errno.EDQUOT, TryAgainError),
        ("write", errno.EFBIG, TryAgainError),
        ("write", errno.EIO, StorageError),
        ("create_file", errno.EACCES, CannotCreateError),
        ("create_file", errno.EROFS, CannotCreateError),
        ("create_file", errno.ENOTDIR, CannotCreateError),
        ("create_file", errno.EIO, StorageError),
        ("flush", errno.EIO, StorageError),
        ("flush", errno.ENOSPC, TryAgainError),
        ("rename", errno.EACCES, StorageError),
        ("rename", errno.EIO, StorageError),
    ],
)
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, operation: str, code: int, error: type[TfmError]
) -> None:
    path = tmp_path / "config.yaml"
    replace_file(path, b"first")
    with pytest.raises(error, match=r"config\.yaml"):
        replace_file(path, b"second", fs=FailingFileSystem(operation, 1, code))
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["config.yaml"]


def test_a_failing_flush_of_the_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Input/output error"):
        replace_file(tmp_path / "a", b"", fs=FailingFileSystem("flush_path", 1, errno.EIO))


def test_bytes_are_flushed_before_the_name_and_the_name_before_the_return(tmp_path: Path) -> None:
    fs = RecordingFileSystem(tmp_path)
    replace_file(tmp_path / "a", b"content", fs=fs)
    assert [(operation.kind, operation.other) for operation in fs.operations] == [
        ("create_file", ""),
        ("write", ""),
        ("flush", ""),
        ("rename", "a"),
        ("flush", ""),
    ]
    assert fs.operations[-1].path == "."


def test_short_writes_are_continued(tmp_path: Path) -> None:
    class Short(FileSystem):
        def write(self, file: int, data: memoryview) -> int:
            return os.write(file, data[:3])

    replace_file(tmp_path / "a", bytes(range(256)), fs=Short())
    assert (tmp_path / "a").read_bytes() == bytes(range(256))


def test_a_library_writes_to_a_staged_file(tmp_path: Path) -> None:
    with staged_file(tmp_path / "data.arrow") as partial:
        partial.write_bytes(b"arrow")
        assert not (tmp_path / "data.arrow").exists()
    assert (tmp_path / "data.arrow").read_bytes() == b"arrow"
    assert names(tmp_path) == ["data.arrow"]


def test_a_staged_file_disappears_with_an_exception(tmp_path: Path) -> None:
    def work() -> None:
        with staged_file(tmp_path / "a") as partial:
            partial.write_text("new")
            raise KeyboardInterrupt

    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        work()
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_full_disk_below_a_library_is_told(tmp_path: Path) -> None:
    with pytest.raises(TryAgainError, match="No space left"), staged_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_another_failure_of_the_library_is_not_called_ours(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), staged_file(tmp_path / "a"):
        (tmp_path / "corpus").read_text()


@pytest.mark.parametrize("stage", [staged_file, staged_folder])
def test_a_place_that_cannot_be_written_to_is_told_before_the_work(tmp_path: Path, stage: object) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CannotCreateError, match="cannot be created"),
        stage(tmp_path / "file" / "a"),
    ):  # type: ignore[operator]
        pytest.fail("the work has begun")


def test_a_staged_folder_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with staged_folder(tmp_path / "data") as partial:
            (partial / "inner").mkdir()
            (partial / "inner" / text).write_text(text)
    assert names(tmp_path) == ["data", "data/inner", "data/inner/new"]


def test_a_staged_folder_is_flushed_with_all_in_it(tmp_path: Path) -> None:
    fs = RecordingFileSystem(tmp_path)
    with staged_folder(tmp_path / "data", fs=fs) as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "a").write_text("a")
    flushed = [operation.path for operation in fs.operations if operation.kind == "flush"]
    assert [Path(path).name.split("-")[0] for path in flushed] == ["a", "inner", ".tmp", ""]


def test_a_staged_folder_disappears_with_an_exception(tmp_path: Path) -> None:
    def work() -> None:
        with staged_folder(tmp_path / "data") as partial:
            (partial / "a").write_text("a")
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        work()
    assert names(tmp_path) == []


def test_a_name_that_is_taken_stays_if_the_new_folder_cannot_be_put_there(tmp_path: Path) -> None:
    (tmp_path / "final").mkdir()
    (tmp_path / "final" / "old").write_text("")
    with pytest.raises(StorageError):
        write_folder(
            tmp_path / "final",
            {"a": b"a"},
            MANIFEST,
            aside=tmp_path / "aside",
            fs=FailingFileSystem("rename", 2, errno.EIO),
        )
    assert names(tmp_path) == ["final", "final/old"]


def test_sizes_and_digests_are_those_of_the_bytes_written(tmp_path: Path) -> None:
    write_folder(
        tmp_path / "final",
        {"a": Content(4, (b"ab", memoryview(b"cd"))), "b": b""},
        MANIFEST,
    )
    with open_sealed(tmp_path / "final") as sealed:
        written = sealed.manifest.files
    assert [(file.name, file.size, file.sha256[:8]) for file in written] == [
        ("a", 4, "88d4266f"),
        ("b", 0, "e3b0c442"),
    ]


def test_making_folders_flushes_each_into_its_parent(tmp_path: Path) -> None:
    fs = RecordingFileSystem(tmp_path)
    make_folders(tmp_path / "runs" / "a" / "checkpoints", fs=fs)
    make_folders(tmp_path / "runs" / "a" / "checkpoints", fs=fs)
    assert [(operation.kind, operation.path) for operation in fs.operations] == [
        ("make_folder", "runs"),
        ("flush", "."),
        ("make_folder", "runs/a"),
        ("flush", "runs"),
        ("make_folder", "runs/a/checkpoints"),
        ("flush", "runs/a"),
    ]


def test_a_runs_folder_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "large")
    make_folders(tmp_path / "runs" / "a")
    replace_file(tmp_path / "runs" / "a" / "f", b"1")
    assert names(tmp_path / "large") == ["a", "a/f"]


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(CannotCreateError, match="runs is not a folder"):
        make_folders(tmp_path / "runs" / "a")


def test_what_is_removed_is_renamed_first_and_never_half_there(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
    fs = RecordingFileSystem(tmp_path)
    remove([tmp_path / "a", tmp_path / "b"], fs=fs)
    assert [operation.kind for operation in fs.operations] == [
        *("rename", "rename", "flush", "remove", "remove", "remove", "remove")
    ]
    assert all(operation.path.startswith(".trash-") for operation in fs.operations[3:])
    assert names(tmp_path) == []


def test_sweeping_takes_leftovers_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("")
    folder = tmp_path / "run"
    (folder / ".tmp-step-1" / "inner").mkdir(parents=True)
    (folder / ".tmp-step-1" / "link").symlink_to(tmp_path / "outside")
    (folder / ".trash-step-2").symlink_to(tmp_path / "outside")
    (folder / ".tmp-config.yaml-1-1").write_text("")
    (folder / "config.yaml").write_text("")
    with caplog.at_level(logging.INFO):
        assert len(sweep(folder)) == 3
    assert ".tmp-step-1" in caplog.text
    assert names(tmp_path) == ["outside", "outside/precious", "run", "run/config.yaml"]
    assert sweep(tmp_path / "missing") == []


def test_a_link_that_cannot_be_made_is_only_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step in (1, 2):
        failing = FailingFileSystem("link", 1, errno.EPERM)
        point_link(tmp_path / "last", f"step-{step}", fs=failing)
    assert caplog.text.count(f"{tmp_path}: a symbolic link could not be made: Operation not permitted") == 1
    point_link(tmp_path / "last", "step-1")
    point_link(tmp_path / "last", "step-2")
    assert os.readlink(tmp_path / "last") == "step-2"
    assert names(tmp_path) == ["last"]


def test_space_is_asked_for_where_the_folder_will_be(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path)
    with pytest.raises(TryAgainError, match="not enough space"):
        require_space(tmp_path / "a" / "b", free.f_blocks * free.f_frsize + 1)
    require_space(tmp_path / "a" / "b", 1)


def test_a_full_disk_names_the_folder_that_was_asked_for(tmp_path: Path) -> None:
    partial = tmp_path / ".tmp-run-123-0" / "checkpoints"
    free = os.statvfs(tmp_path)
    with pytest.raises(TryAgainError, match=f"^{re.escape(str(tmp_path))}/run: not enough space"):
        require_space(partial, free.f_blocks * free.f_frsize + 1)
    with (
        pytest.raises(TryAgainError, match=f"^{re.escape(str(tmp_path))}/run: No space"),
        errors_explained(partial, fs=REAL),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert as_named(Path("runs/.tmp")) == Path("runs/.tmp")
