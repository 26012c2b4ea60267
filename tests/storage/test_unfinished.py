"""Unfinished folders and files of killed processes: the next command deletes them, and nothing else."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from transformer_cli.storage import filesystem, staged_file, staged_folder
from transformer_cli.storage.writing import MARK, TEMPORARY, sweep_unfinished


def fill_for_ever(final: Path, is_filling: "multiprocessing.synchronize.Event") -> None:
    with staged_folder(final) as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "weights").write_bytes(bytes(100))
        is_filling.set()
        signal.pause()


@pytest.fixture
def filling(tmp_path: Path) -> Callable[[], multiprocessing.Process]:
    """Starts a process that fills the folder `final`; it ends by a kill only."""

    def start() -> multiprocessing.Process:
        context = multiprocessing.get_context("fork")
        is_filling = context.Event()
        process = context.Process(target=fill_for_ever, args=(tmp_path / "final", is_filling))
        process.start()
        assert is_filling.wait(60)
        return process

    return start


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


@pytest.mark.process
def test_what_a_killed_process_left_is_deleted_by_the_next_one(
    tmp_path: Path, filling: Callable[[], multiprocessing.Process]
) -> None:
    process = filling()
    process.kill()
    process.join()
    assert len(hidden(tmp_path)) == 2
    with staged_folder(tmp_path / "other") as partial:
        assert hidden(tmp_path) == sorted([partial.name, partial.name.replace(TEMPORARY, MARK)])
    assert os.listdir(tmp_path) == ["other"]


def write_for_ever(final: Path, is_filling: "multiprocessing.synchronize.Event") -> None:
    with staged_file(final, is_swept=True) as partial:
        partial.write_bytes(bytes(100))
        is_filling.set()
        signal.pause()


@pytest.mark.process
def test_an_output_that_a_killed_process_left_is_deleted_by_the_next_one_and_no_other_file(
    tmp_path: Path,
) -> None:
    context = multiprocessing.get_context("fork")
    is_filling = context.Event()
    process = context.Process(target=write_for_ever, args=(tmp_path / "out.txt", is_filling))
    process.start()
    assert is_filling.wait(60)
    (tmp_path / ".tmp-mine-1-0").write_text("of a person")
    with staged_file(tmp_path / "early.txt", is_swept=True):
        pass
    assert len(hidden(tmp_path)) == 3  # the process lives
    process.kill()
    process.join()
    with staged_file(tmp_path / "out.txt", is_swept=True) as partial:
        names = [".tmp-mine-1-0", partial.name, partial.name.replace(TEMPORARY, MARK)]
        assert hidden(tmp_path) == sorted(names)
    assert sorted(os.listdir(tmp_path)) == [".tmp-mine-1-0", "early.txt", "out.txt"]


@pytest.mark.process
def test_the_folder_of_a_living_process_stays(tmp_path: Path, filling: Callable[[], multiprocessing.Process]) -> None:
    process = filling()
    before = hidden(tmp_path)
    with staged_folder(tmp_path / "other"):
        pass
    assert hidden(tmp_path) == before
    process.kill()
    process.join()


@pytest.mark.parametrize("text", [b"", b"mine", b'{"kind": "an unfinished folder of tfm", "host": "elsewhere"}'])
def test_a_folder_without_the_mark_of_this_machine_stays(tmp_path: Path, text: bytes) -> None:
    """A person's own folder has no mark; where a network disk locks nothing, only the machine of a mark may judge it."""
    (tmp_path / ".tmp-final-1-0").mkdir()
    (tmp_path / ".tmp-other-1-0").mkdir()
    (tmp_path / ".unfinished-final-1-0").write_bytes(text)
    before = sorted(os.listdir(tmp_path))
    with staged_folder(tmp_path / "new"):
        pass
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "new"])


@pytest.mark.process
def test_without_locks_nothing_is_marked_and_nothing_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filling: Callable[[], multiprocessing.Process]
) -> None:
    process = filling()
    process.kill()
    process.join()
    before = hidden(tmp_path)
    monkeypatch.setattr("transformer_cli.storage.writing.try_lock", lambda file: None)
    with staged_folder(tmp_path / "new") as partial:
        assert hidden(tmp_path) == sorted([*before, partial.name])
    assert hidden(tmp_path) == before


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), staged_folder(tmp_path / "new"):
        _ = 1 / 0
    assert os.listdir(tmp_path) == []


@pytest.mark.process
def test_a_link_in_the_place_of_the_folder_is_not_followed(
    tmp_path: Path, filling: Callable[[], multiprocessing.Process]
) -> None:
    process = filling()
    process.kill()
    process.join()
    [partial] = tmp_path.glob(".tmp-*")
    partial.rename(tmp_path / "precious")
    partial.symlink_to("precious")
    assert sweep_unfinished(tmp_path, lambda path: pytest.fail(f"{path} would be deleted")) == []
    assert (tmp_path / "precious" / "inner" / "weights").is_file()


def test_a_lock_that_another_process_holds_cannot_be_taken(tmp_path: Path) -> None:
    first = filesystem.open_file(tmp_path / "lock", filesystem.OWN)
    second = filesystem.open_file(tmp_path / "lock", filesystem.OWN)
    assert filesystem.try_lock(first)
    assert filesystem.try_lock(second) is False
    os.close(first)
    assert filesystem.try_lock(second)
    os.close(second)
