"""The imitated GPU, compiled once."""

import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from .device import compiled


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The device as a library; processes that share out the tests share it too."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if folder.name.startswith("popen-") else folder  # of one of the processes
    library = folder / "imitation.so"
    with FileLock(f"{library}.lock"):
        return library if library.exists() else compiled(library)
