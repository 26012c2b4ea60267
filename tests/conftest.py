"""Fixtures for all tests: `tfm` as a process, a folder in memory, an uninterrupted run."""

import functools
import importlib
import logging
import os
import pkgutil
import signal
import sys
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

# A shell starts background jobs with SIGINT ignored; the tests need the defaults.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # `nohup` ignores it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

MEMORY = Path("/dev/shm")

# The tiers of tests. A test is in that of what it uses: of its fixtures, or of a marker of its file.
TIER_OF_FIXTURE = {
    "launcher": "process",
    "library": "compiler",
    "driver": "browser",
    "browser": "browser",
    "site": "pages",
}
NOT_FAST = {*TIER_OF_FIXTURE.values(), "kills", "long", "slow", "gpu", "network"}
# What starts a process, by its name in Python's audit events.
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test the markers of its tier; `fast` are those that use nothing heavy."""
    for item in items:
        for fixture in TIER_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(TIER_OF_FIXTURE[fixture])
        if not any(item.get_closest_marker(name) for name in NOT_FAST):
            item.add_marker("fast")


class _Now:
    """What runs now."""

    is_fast_tier = False
    """Whether only the fast tests run, and one of them does."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    _Now.is_fast_tier = item.config.option.markexpr == "fast"


def pytest_runtest_teardown() -> None:
    _Now.is_fast_tier = False


def _refuse_processes(event: str, _: object) -> None:
    if _Now.is_fast_tier and event in STARTS:
        raise AssertionError(f"{event}: a test that starts a process needs the marker process")


sys.addaudithook(_refuse_processes)


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
