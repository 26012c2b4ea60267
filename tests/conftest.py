"""Fixtures for all tests: `tfm` as a process, a folder in memory, an uninterrupted run."""

import functools
import gc
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.logging import catching_logs
from _pytest.runner import runtestprotocol
from _pytest.tmpdir import tmppath_result_key
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from .experiments import essence, write_tiny
from .launcher import Launcher, Tfm, TfmHere, forget_settings_of_logger

# One thread is fastest for tiny tensors. PyTorch reads this when it is imported, here and in child processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine must not fail a test: no limit of time, and the same examples each time.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

# Hypothesis also tries constants that it finds in the source of each module imported so far, so that a random test depends on the
# tests before it; to read all sources took a quarter of the collection, and to sift the constants a part of each random test.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = functools.cache(providers.Constants)

# A shell starts background jobs with SIGINT ignored; the tests need the defaults.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # `nohup` ignores it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

MEMORY = Path("/dev/shm")

TESTS = Path(__file__).parent

# The tiers of tests. A test is in that of what it uses: of its fixtures, or of a marker of its file.
TIER_OF_FIXTURE = {
    "launcher": "process",
    "library": "imitated_gpu",
    "driver": "browser",
    "browser": "browser",
    "site": "pages",
    "argos_library": "network",
    "axe": "network",
    "installed_engine": "network",
    "node_project": "network",
}
HEAVY = {"system", "kills", "browser", "imitated_gpu", "heavy"}
NOT_OF_EVERY_DAY = {"slow", "gpu", "network"}
LEFT_OUT_OF_THE_WHOLE = {"heavy", *NOT_OF_EVERY_DAY}
NOT_FAST = {*TIER_OF_FIXTURE.values(), *HEAVY, *NOT_OF_EVERY_DAY, "compiler", "long"}
STARTS: tuple[tuple[Any, str], ...] = (
    (subprocess.Popen, "__init__"),
    *((os, name) for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")),
    (BaseProcess, "start"),
)
"""What starts a process."""


def pytest_configure(config: pytest.Config) -> None:
    """Without `-m`, all tests of the given paths run but `slow`, `gpu` and `network`; of the whole, `heavy` ones do not."""
    if _has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # where pytest makes its folders
    left_out = LEFT_OUT_OF_THE_WHOLE if _is_whole(config) else NOT_OF_EVERY_DAY
    config.option.markexpr = config.option.markexpr or _without(left_out)
    if config.option.markexpr == "fast":
        config.pluginmanager.register(_LeftOut())
    if config.option.markexpr == "heavy":  # a heavy test has one part for the CPU, and one for a GPU
        config.option.markexpr = f"heavy and {_without(NOT_OF_EVERY_DAY - {'network'})}"


def _has_room(folder: Path) -> bool:
    """Whether there is a file system in memory on which tests can write: to flush a file costs nothing there, and milliseconds on a disk."""
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 4 * 10**9


def _without(tiers: Collection[str]) -> str:
    return " and ".join(f"not {name}" for name in sorted(tiers))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Folders are shared out to all cores. One file is not: a worker imports PyTorch, which takes longer."""
    if not all(path.is_dir() for path in _given(config)):
        return 0
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return len(cores) if len(cores) > 1 else 0


def _given(config: pytest.Config) -> list[Path]:
    return [Path(config.invocation_params.dir, name.partition("::")[0]) for name in config.args]


def _is_whole(config: pytest.Config) -> bool:
    return any(TESTS.is_relative_to(path.resolve()) for path in _given(config))


# What is collected lives until the end, so the garbage collector looks at none of it: that would take a tenth of the time.


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # instead of 700: it looked too often at what a test needs until its end
    gc.enable()
    comparison: Any = sys.modules.get("torch.testing._comparison")
    if hasattr(
        comparison, "_HAS_DTENSOR"
    ):  # else the first comparison imports tensors of several machines: 0.7 s in each worker
        comparison._HAS_DTENSOR = False


_TIERS_OF_FILE = re.compile(r"^pytestmark = .*?pytest\.mark\.(\w+)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file or folder whose tests are all of a tier that is left out is not imported: for `-m fast`, and for the tests of every day."""
    if config.option.markexpr == "fast":
        left_out = NOT_FAST
    elif config.option.markexpr == _without(LEFT_OUT_OF_THE_WHOLE):
        left_out = HEAVY | NOT_OF_EVERY_DAY
    else:
        return None
    if collection_path.suffix != ".py":
        return collection_path == TESTS / "system" or None
    tier = _TIERS_OF_FILE.search(collection_path.read_text(encoding="utf-8"))
    return (tier is not None and tier[1] in left_out) or None


class _LeftOut:
    """For `-m fast`, cases of a function with a marker of another tier are not even made."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, obj: object) -> list[pytest.Item] | None:
        marks = getattr(obj, "pytestmark", None)
        return [] if isinstance(marks, list) and any(mark.name in NOT_FAST for mark in marks) else None


def _cases_in_one(items: list[pytest.Function]) -> pytest.Function:
    """One test that runs all cases of a function, and names each one that fails."""
    first = items[0]

    @functools.wraps(first.obj)
    def all_cases() -> None:
        failed: list[BaseException] = []
        skipped: list[BaseException] = []
        for item in items:
            try:
                first.obj(**item.callspec.params)
            except pytest.skip.Exception as reason:
                skipped.append(reason)
            except (Exception, pytest.fail.Exception) as error:
                error.add_note(f"case {item.callspec.id}")
                failed.append(error)
        if failed:
            raise BaseExceptionGroup(f"{len(failed)} of {len(items)} cases failed", failed)
        if len(skipped) == len(items):
            raise skipped[0]

    del all_cases.__wrapped__  # its arguments are those of one case
    return pytest.Function.from_parent(first.parent, name=first.originalname, callobj=all_cases)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> Iterator[None]:
    """For `-m fast`, a function is one test if its cases differ in values alone: a test costs 3 ms beside its work.

    Without `-m fast`, each case is a test.
    """
    found = yield
    if collector.config.option.markexpr != "fast" or not isinstance(found, list) or hasattr(obj, "hypothesis"):
        return found
    alike, others = [], []
    for item in found:
        spec = getattr(item, "callspec", None)
        is_alike = spec is not None and not spec.marks and {*item.fixturenames} == spec.params.keys()
        (alike if is_alike else others).append(item)
    return [_cases_in_one(alike), *others] if len(alike) > 1 else found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker sends one message for a test that has passed, not six: these took as long as the rest of a small test."""
    option = item.config.option
    if not hasattr(item.config, "workerinput") or option.durations is not None or option.xmlpath:
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test the markers of its tier; `fast` are those that use nothing heavy."""
    for item in items:
        for fixture in TIER_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(TIER_OF_FIXTURE[fixture])
        if item.path.is_relative_to(TESTS / "system"):
            item.add_marker("process")
            item.add_marker("system")
        names = {marker.name for marker in item.iter_markers()}
        if not names & NOT_FAST:
            item.add_marker("fast")
        if names & HEAVY and not names & NOT_OF_EVERY_DAY:
            item.add_marker("heavy")
    if hasattr(config, "workerinput"):  # what takes long begins first, so that no core is left with it at the end
        not_fast = {item.path for item in items if not item.get_closest_marker("fast")}
        items.sort(key=lambda item: item.path not in not_fast)


def _catch_at_the_root(catching: Any) -> logging.Handler:
    """Catch what reaches the root of all loggers.

    Pytest 9 also looks for loggers that pass nothing on, six times in each test. PyTorch has forty of them, and no test reads
    what they say: the search took more time than the rest of a small test.
    """
    root = logging.getLogger()
    if catching.level is not None:
        catching.handler.setLevel(catching.level)
        catching.orig_level = root.level
        root.setLevel(min(root.level, catching.level))
    root.addHandler(catching.handler)
    catching.attached_loggers.append(root)
    handler: logging.Handler = catching.handler
    return handler


if "attached_loggers" in getattr(catching_logs, "__slots__", ()):
    catching_logs.__enter__ = _catch_at_the_root  # type: ignore[method-assign]


class _Now:
    """What runs now."""

    is_fast = False
    """Whether it is a test of the fast tier."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What an autouse fixture would do for each test, at a tenth of its price."""
    _Now.is_fast = item.get_closest_marker("fast") is not None
    process()
    forget_settings_of_logger()


# A test that changes what the whole process has decides what a later test of the same worker sees.


def _flags_of_torch() -> tuple[object, ...]:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "compile"):  # not imported, or not completely
        return ()
    return (
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_grad_enabled(),
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
        # With a GPU, `prepare_machine` chooses the kernels of attention for the whole process.
        torch.cuda.is_available() or (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.cudnn_sdp_enabled()),
    )


def _is_same(before: ModuleType, now: ModuleType | None) -> bool:
    """Whether it is the same module; transformers replaces itself by one that imports its parts when they are asked for."""
    if now is before or now is None:
        return now is before
    files = [getattr(one, "__file__", None) for one in (before, now)]
    return files[0] == files[1] is not None


class Process:
    """What all tests of a process share, as it was when the last of them had ended."""

    def __init__(self) -> None:
        self.modules = sys.modules.copy()
        self.variables, self.others = self._variables(), self._others()

    def _variables(self) -> dict[Any, Any]:
        # `os.environ` decodes each name and each value when it is asked, which would take a second for all tests.
        variables: dict[Any, Any] = getattr(os.environ, "_data", os.environ).copy()
        for name in ("PYTEST_CURRENT_TEST", b"PYTEST_CURRENT_TEST"):
            variables.pop(name, None)
        return variables

    def _others(self) -> dict[str, object]:
        handlers = [one for one in logging.root.handlers if type(one).__module__ != "_pytest.logging"]
        return {
            "the working directory": os.getcwd(),
            # setuptools adds a folder of its own, inside this environment.
            "sys.path": [path for path in sys.path if not path.startswith(sys.prefix)],
            "the root logger": (handlers, logging.root.level),
            "flags of PyTorch": _flags_of_torch(),
        }

    def changes(self, *, of_modules: bool = True) -> list[str]:
        """Put variables of the environment back, and name what else is not as it was at the last call.

        To compare all modules takes longer than the rest.
        """
        others, self.others = self.others, self._others()
        changed = [
            f"{name}: {others[name]} before, {now} after"
            for name, now in self.others.items()
            if now != others[name] != ()
        ]
        # Libraries set variables that they read at their first use: no test sees those of another.
        for name in {name for name, _ in self.variables.items() ^ self._variables().items()}:
            if name in self.variables:
                os.environ[os.fsdecode(name)] = os.fsdecode(self.variables[name])
            else:
                os.environ.pop(os.fsdecode(name), None)
        if of_modules and self.modules != sys.modules:
            changed += [
                f"sys.modules[{name!r}]"
                for name, module in self.modules.items()
                if not _is_same(module, sys.modules.get(name))
            ]
            self.modules = sys.modules.copy()
        return changed


process = functools.cache(Process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A test leaves the process as it was; what is patched in `sys.modules` is seen after the last test of a file, and variables are put back."""
    _Now.is_fast = False
    yield
    is_last = nextitem is None or nextitem.path != item.path
    if changed := process().changes(of_modules=is_last):
        pytest.fail(f"this test changed, for all later ones: {'; '.join(changed)}", pytrace=False)


def _refused_in_fast_tests(start: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which no test of the fast tier may call."""

    @functools.wraps(start)
    def checked(*given: Any, **named: Any) -> Any:
        # matplotlib asks fc-list once which fonts there are.
        if _Now.is_fast and "fc-list" not in str(given[1:2]):
            raise AssertionError(f"{start.__qualname__}: a test that starts a process needs the marker process")
        return start(*given, **named)

    return checked


# A hook for Python's audit events sees all of them, but Python calls it for each file and each import: 2 % of the time.
for owner, name in STARTS:
    if hasattr(owner, name):
        setattr(owner, name, _refused_in_fast_tests(getattr(owner, name)))


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with tempfile.TemporaryDirectory(prefix="tfm-launcher-") as folder:
        launcher = Launcher(Path(folder))
        yield launcher
        launcher.close()


@pytest.fixture(scope="module")
def memory_folder() -> Iterator[Path]:
    """A folder on a file system in memory, if the machine has one: flushing is free there."""
    place = MEMORY if _has_room(MEMORY) else None
    with tempfile.TemporaryDirectory(prefix="tfm-test-", dir=place) as folder:
        yield Path(folder)


_folders_of_name: Counter[str] = Counter()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder, which is removed if the test passes.

    That of pytest reads the names of all folders that are there to find a free number, and leaves a link for each test, so
    that each test takes longer than the one before it.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{_folders_of_name[name]}"
    _folders_of_name[name] += 1
    path.mkdir(mode=0o700)
    yield path
    if request.node.stash[tmppath_result_key].get("call", True):
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def tfm(launcher: Launcher, memory_folder: Path) -> Iterator[Tfm]:
    """`tfm` in an empty folder of its own."""
    yield Tfm(launcher, Path(tempfile.mkdtemp(dir=memory_folder)))
    launcher.end_all()


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that read scores and no intervals: 40 samples of the bootstrap instead of 1,000, which take longer than all else."""
    # It takes the number when it is imported: first here, it would keep 40 for the tests behind this one.
    import_module("transformer_cli.evaluation.system_comparison")
    monkeypatch.setattr("transformer_cli.evaluation.metrics.NUM_SAMPLES", 40)


@pytest.fixture
def tfm_here(tmp_path: Path) -> TfmHere:
    """`tfm` in an empty folder, in this process."""
    return TfmHere(tmp_path)


@pytest.fixture(scope="session")
def finished_tiny(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the config of the tiny experiment and its run, runs/tiny, which nothing has interrupted. Tests leave it as it is."""
    folder = tmp_path_factory.mktemp("finished-tiny")
    finished = Tfm(launcher, folder)("train", "--config", write_tiny(folder))
    assert finished.exit_code == 0, finished.talk
    return folder


@pytest.fixture
def tfm_with_run(tfm: Tfm, finished_tiny: Path) -> Tfm:
    """`tfm` in a folder of its own, with a copy of the finished tiny experiment."""
    shutil.copytree(finished_tiny, tfm.folder, symlinks=True, dirs_exist_ok=True)
    return tfm


@pytest.fixture(scope="session")
def uninterrupted(finished_tiny: Path) -> dict[str, Any]:
    """The result of the tiny experiment when nothing interrupts it."""
    return essence(finished_tiny / "runs/tiny")
