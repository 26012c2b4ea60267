"""The imitated GPU, compiled once."""

import shutil
from pathlib import Path

import pytest

from .device import compiled


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    return compiled(tmp_path_factory.mktemp("device") / "imitation.so")
