"""Fixtures for all tests: `tfm` as a process, a folder in memory, an uninterrupted run."""

import functools
import importlib
import logging
import os
import pkgutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import transformer_cli

from .experiments import essence, write_tiny
from .launcher import Launcher, Tfm

# One thread is fastest for tiny tensors. PyTorch reads this when it is imported, here and in child processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine must not fail a test: no limit of time, and the same examples each time.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

# A shell starts background jobs with SIGINT ignored; the tests need its default.
signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY = Path("/dev/shm")


@pytest.fixture(autouse=True)
def _examples_do_not_depend_on_earlier_tests(request: pytest.FixtureRequest) -> None:
    """Hypothesis also tries constants of all modules that are imported: each random test starts with the same ones."""
    if request.node.get_closest_marker("hypothesis"):
        _import_whole_package()


@functools.cache
def _import_whole_package() -> None:
    for module in pkgutil.walk_packages(transformer_cli.__path__, "transformer_cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@pytest.fixture(autouse=True)
def _the_logger_is_new() -> None:
    """A command that ran in this process left its settings in the package's logger: each test starts without them."""
    package = logging.getLogger("transformer_cli")
    package.handlers.clear()
    package.setLevel(logging.NOTSET)
    package.propagate = True


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with tempfile.TemporaryDirectory(prefix="tfm-launcher-") as folder:
        launcher = Launcher(Path(folder))
        yield launcher
        launcher.close()


@pytest.fixture(scope="module")
def memory_folder() -> Iterator[Path]:
    """A folder on a file system in memory, if the machine has one: flushing is free there."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tfm-test-", dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def tfm(launcher: Launcher, memory_folder: Path) -> Iterator[Tfm]:
    """`tfm` in an empty folder of its own."""
    yield Tfm(launcher, Path(tempfile.mkdtemp(dir=memory_folder)))
    launcher.end_all()


@pytest.fixture(scope="session")
def uninterrupted(launcher: Launcher) -> dict[str, Any]:
    """The result of the tiny experiment when nothing interrupts it."""
    with tempfile.TemporaryDirectory(prefix="tfm-test-") as name:
        folder = Path(name)
        finished = Tfm(launcher, folder)("train", "--config", write_tiny(folder))
        assert finished.exit_code == 0, finished.talk
        return essence(folder / "runs/tiny")
