"""`tfm` as a process, for whoever asks for it."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .launcher import Launcher, Tfm

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with tempfile.TemporaryDirectory(prefix="tfm-launcher-") as folder:
        launcher = Launcher(Path(folder))
        yield launcher
        launcher.close()


@pytest.fixture(scope="module")
def memory_folder() -> Iterator[Path]:
    """A folder in memory where there is such a thing: flushing costs nothing there."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tfm-test-", dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def tfm(launcher: Launcher, memory_folder: Path, request: pytest.FixtureRequest) -> Iterator[Tfm]:
    """`tfm` in an empty folder of its own."""
    folder = memory_folder / f"{abs(hash(request.node.name))}"
    folder.mkdir()
    yield Tfm(launcher, folder)
    launcher.end_all()
