"""The result of a test does not depend on the tests before it: what a test leaves behind is put back or fails it. And a fast one starts no process."""

import logging
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

LEFT = {
    "the working directory: ": lambda undo: undo.chdir("/"),
    "sys.path: ": lambda undo: undo.setattr(sys, "path", [*sys.path, "left"]),
    "the root logger: ": lambda undo: undo.setattr(logging.root, "level", 7),
    "flags of PyTorch: ": lambda undo: undo.setattr(torch.backends.cudnn, "benchmark", True),
    "sys.modules['json']": lambda undo: undo.setitem(sys.modules, "json", ModuleType("json")),
}


@pytest.fixture
def process(pytestconfig: pytest.Config) -> Any:
    """The process as it is now, seen by tests/conftest.py."""
    plugins = pytestconfig.pluginmanager.get_plugins()
    return next(one.Process for one in plugins if hasattr(one, "Process"))()


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_is_named_once(name: str, process: Any) -> None:
    assert process.changes() == []
    with pytest.MonkeyPatch.context() as undo:
        LEFT[name](undo)
        [change] = process.changes()
        assert change.startswith(name)
        assert process.changes() == [], "the next test is not blamed"


def test_variables_are_put_back(process: Any) -> None:
    before = dict(os.environ)
    os.environ["TFM_LEFT"] = "1"
    os.environ["PATH"] = ""
    del os.environ["OMP_NUM_THREADS"]
    assert process.changes() == []
    assert {**os.environ} == before


def test_a_module_that_is_imported_is_no_change(tmp_path: Path, process: Any) -> None:
    (tmp_path / "new_here.py").write_text("")
    with pytest.MonkeyPatch.context() as undo:
        undo.syspath_prepend(tmp_path)
        assert [one.partition(":")[0] for one in process.changes()] == ["sys.path"]
        import new_here  # type: ignore[import-not-found]  # noqa: F401

        assert process.changes() == []
        del sys.modules["new_here"]


FOLDERS: list[Path] = []


@pytest.mark.parametrize("number", [1, 2])
def test_a_folder_is_empty_and_is_removed_when_its_test_has_passed(number: int, tmp_path: Path) -> None:
    assert [*tmp_path.iterdir()] == []
    assert not [folder for folder in FOLDERS if folder.exists()]
    (tmp_path / "file").touch()
    FOLDERS.append(tmp_path)


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        lambda: os.system("true"),
        lambda: os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}),
        lambda: os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", ""]),
        lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
    ],
    ids=["subprocess", "system", "posix_spawn", "spawnv", "multiprocessing"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has not all of these")
def test_a_fast_test_starts_no_process(start: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match="needs the marker process"):
        start()
