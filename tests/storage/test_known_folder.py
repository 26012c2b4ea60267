"""A folder is recognised after it was renamed, removed or replaced."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_cli.storage import KnownFolder, RunLock


def test_a_folder_is_in_place_until_it_is_renamed_and_is_found_nearby(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    known = KnownFolder(run)
    assert known.is_in_place()
    run.rename(tmp_path / "other")
    assert not known.is_in_place()
    assert known.find_nearby() == tmp_path / "other"
    (tmp_path / "other").rename(run)
    assert known.is_in_place()


def test_a_new_folder_of_the_same_name_is_not_the_old_one(tmp_path: Path) -> None:
    """Without the open descriptor, the system would give the new folder the inode of the old one."""
    run = tmp_path / "run"
    for _ in range(20):
        run.mkdir()
        known = KnownFolder(run)
        run.rmdir()
        assert not known.is_in_place()
        run.mkdir()
        assert not known.is_in_place()
        assert known.find_nearby() is None
        run.rmdir()


def test_a_folder_whose_inode_changed_is_recognised_by_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems, after their cache was emptied."""
    with RunLock(tmp_path):
        known = KnownFolder(tmp_path)
        monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_dev=0, st_ino=0))
        assert known.is_in_place()
    assert not known.is_in_place()


def test_the_parent_folder_may_be_gone(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "run"
    run.mkdir(parents=True)
    known = KnownFolder(run)
    run.rmdir()
    run.parent.rmdir()
    assert not known.is_in_place()
    assert known.find_nearby() is None
