"""Runs tests for `mutants.py`, in the Python of the tree under test: which tests reach which places, and what they say of a mutant.

It needs nothing of the tree, and of other packages only pytest. `mutants.py` starts it as a script, and copies it to a folder
that is first on the path, so that processes that tests start load it too (`watch_places`).
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = "transformer_cli"
IN_THIS_PROCESS = ["-n0"] if importlib.util.find_spec("xdist") else []  # pyproject.toml asks for workers
NO_PROGRESS_SECONDS = (
    300.0  # a test that waits forever uses no processor time; on a busy machine, neither does one at low priority
)

_open, _write, _close = os.open, os.write, os.close  # some tests replace those of os
_hits: set[int] = set()
_is_test_process = False


# Marks: which places are reached.


def watch_places() -> None:
    """Compile the files of MUTANT_PLACES with a mark before each place; called when Python starts."""
    places: dict[str, list[list[int]]] = json.loads(Path(os.environ["MUTANT_PLACES"]).read_text())
    original = importlib.machinery.SourceFileLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, **options: Any) -> Any:
        if isinstance(data, bytes) and str(path) in places:
            data = with_marks(ast.parse(data), places[str(path)])
        return original(self, data, path, **options)

    importlib.machinery.SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]
    setattr(builtins, MARK, _hit)
    os.register_at_fork(after_in_child=_begin_child)


MARK = "_mutant_place_is_reached"


def with_marks(tree: ast.Module, places: list[list[int]]) -> ast.Module:
    """A module with a call of MARK before each statement in which a place is: begin and end (line, column), number."""
    for *position, number in places:
        body, index = _statement(tree, tuple(position[:2]), tuple(position[2:]))
        mark = ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), [ast.Constant(number)], []))
        line = ast.copy_location(mark, body[min(index, len(body) - 1)])
        body.insert(index, ast.fix_missing_locations(line))
    return tree


def _statement(tree: ast.Module, begin: tuple[int, ...], end: tuple[int, ...]) -> tuple[list[ast.stmt], int]:
    """The list, and the place in it, of the innermost statement around a place; for a default, the function's first one."""
    found: tuple[list[ast.stmt], int] | None = None
    node: ast.AST = tree
    while True:
        for body, index in _statements_in(node):
            one = body[index]
            assert one.end_lineno is not None
            assert one.end_col_offset is not None
            if (one.lineno, one.col_offset) <= begin and end <= (
                one.end_lineno,
                one.end_col_offset,
            ):
                found, node = (body, index), one
                break
        else:
            break
    assert found is not None
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.body, int(ast.get_docstring(node) is not None)
    return found


def _statements_in(node: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    for _, value in ast.iter_fields(node):
        if isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, ast.stmt):
                    yield value, index
                elif isinstance(one, ast.ExceptHandler | ast.match_case):
                    yield from _statements_in(one)


def _hit(number: int) -> None:
    if number in _hits:
        return
    _hits.add(number)
    if _is_test_process:
        return
    with contextlib.suppress(OSError):
        file = _open(os.environ["MUTANT_HITS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        _write(file, b"%d\n" % number)
        _close(file)


def _begin_child() -> None:
    global _is_test_process
    _is_test_process = False
    _hits.clear()


def _wraps(hook: Any) -> Any:
    """What `pytest.hookimpl(hookwrapper=True)` does; processes that only leave marks do not import pytest."""
    hook.pytest_impl = {"hookwrapper": True}
    return hook


class Reach:
    """A plugin of pytest that notes for each test what it costs and which places it reaches, in other processes too."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.at_import: dict[str, set[int]] = {}
        self._fixtures: dict[int, tuple[set[int], float]] = {}
        self._fixtures_of: dict[str, list[int]] = {}
        self._kept: list[Any] = []  # an id is only one object's while that lives
        self._read_to = 0
        self._cached: list[Any] = []
        self._modules: set[str] = set()

    @_wraps
    def pytest_make_collect_report(self, collector: Any) -> Iterator[None]:
        """What the import of a test file reaches; of a module of the package, the first file that imports it."""
        self._taken()
        yield
        if hits := self._taken():
            self.at_import.setdefault(collector.nodeid.partition("::")[0], set()).update(hits)

    @_wraps
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self._clear_caches()
        self._taken()
        started_at = _cpu_seconds()
        self.tests[item.nodeid] = test = {"outcome": "passed", "is_fast": item.get_closest_marker("fast") is not None}
        yield
        test["cost"] = _cpu_seconds() - started_at
        test["hits"] = self._taken()
        definitions = [one for several in item._fixtureinfo.name2fixturedefs.values() for one in several]
        self._fixtures_of[item.nodeid] = [id(one) for one in definitions]

    @_wraps
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """What a fixture of several tests reaches belongs to all of them."""
        if fixturedef.scope == "function":
            yield
            return
        before, started_at = self._taken(), _cpu_seconds()
        yield
        hits, cost = self._taken(), _cpu_seconds() - started_at
        known, _ = self._fixtures.get(id(fixturedef), (set(), 0.0))
        self._fixtures[id(fixturedef)] = known | hits, cost
        self._kept.append(fixturedef)
        _hits.update(before | hits)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome != "passed":
            self.tests[report.nodeid]["outcome"] = report.outcome

    def results(self) -> dict[str, Any]:
        for name, test in self.tests.items():
            for fixture in self._fixtures_of.get(name, ()):
                hits, cost = self._fixtures.get(fixture, (set(), 0.0))
                test["hits"] |= hits
                test["cost"] = max(test["cost"], cost)
            test["hits"] = sorted(test["hits"])
            test["cost"] = round(test["cost"], 4)
        return {
            "tests": self.tests,
            "at_import": {file: sorted(hits) for file, hits in self.at_import.items()},
        }

    def _taken(self) -> set[int]:
        """The places since the last call, and forget them."""
        hits = set(_hits)
        _hits.clear()
        with contextlib.suppress(FileNotFoundError), open(os.environ["MUTANT_HITS"], "rb") as file:
            file.seek(self._read_to)
            data = file.read()
            self._read_to += len(data)
            hits.update(int(line) for line in data.split())
        return hits

    def _clear_caches(self) -> None:
        """What an earlier test left in a cache would hide that this one uses it."""
        for name in set(sys.modules) - self._modules:
            if name.partition(".")[0] == PACKAGE:
                for value in list(vars(sys.modules[name]).values()):
                    self._cached += [
                        one
                        for one in (value, *(vars(value).values() if isinstance(value, type) else ()))
                        if isinstance(one, functools._lru_cache_wrapper)
                    ]
            self._modules.add(name)
        for one in self._cached:
            one.cache_clear()


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


# The server: a process in which the heavy packages are imported, and a fork of it for each run.


class Choice:
    """A plugin of pytest that runs the given tests in this order, as long as there is processor time."""

    def __init__(self, tests: dict[str, float], seconds: float, progress: Path) -> None:
        self.costs, self.seconds, self.progress = tests, seconds, progress
        self.order = {name: number for number, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        chosen = [one for one in items if one.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda one: self.order[one.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._say("start", nodeid)
        limit = max(20.0, 10 * self.costs[nodeid])
        signal.setitimer(signal.ITIMER_PROF, limit)  # its signal ends this process

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self._say("failed", report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    @_wraps
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        yield
        if _cpu_seconds() > self.seconds:
            item.session.shouldstop = "no time is left"

    def _say(self, what: str, name: str) -> None:
        file = _open(self.progress, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        _write(file, json.dumps([what, name]).encode() + b"\n")
        _close(file)


def arguments(files: list[str], markers: str | None, folder: Path) -> list[str]:
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "-rfE",
        "--tb=line",
        f"--basetemp={folder}/tests",
        "-W",
        "ignore:Module already imported",
        *IN_THIS_PROCESS,
    ]
    # In brackets, because tests/conftest.py makes one test of all cases of a function for `-m fast`.
    return [*options, *(["-m", f"({markers})"] if markers else []), *files]


def serve(preloaded: list[str]) -> None:
    """Import modules. Then read requests, one per line (`files`, `tests` with costs, `seconds`, `markers`, `folder`), and answer each."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for name in preloaded:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    loaded = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    assert not loaded, loaded
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what a dead child leaves becomes ours
    gc.collect()
    gc.freeze()
    for line in requests:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            requests.close()
            answers.close()
            _run(request)
        answers.write(json.dumps(_watched(process, Path(request["folder"]))) + "\n")
        answers.flush()


def _run(request: dict[str, Any]) -> None:
    """Run tests in this fork; it ends here."""
    import pytest

    code = 3
    try:
        os.setsid()
        folder = Path(request["folder"])
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # For each process that a test starts, too.
        limit = int(request["seconds"]) + 300
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        choice = Choice(request["tests"], request["seconds"], folder / "progress")
        code = int(pytest.main(arguments(request["files"], request["markers"], folder), plugins=[choice]))
        sys.stdout.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _watched(process: int, folder: Path) -> dict[str, Any]:
    """Wait for a fork; how it ended, which tests failed, and what it cost."""
    progress = folder / "progress"
    size, changed_at, is_stuck = -1, time.monotonic(), False
    while True:
        pid, status, usage = os.wait4(process, os.WNOHANG)
        if pid:
            break
        time.sleep(0.02)
        now_size = progress.stat().st_size if progress.exists() else 0
        if now_size != size:
            size, changed_at = now_size, time.monotonic()
        elif time.monotonic() - changed_at > NO_PROGRESS_SECONDS:
            is_stuck = True
            os.kill(process, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    _end_orphans()
    lines = [json.loads(line) for line in progress.read_text().splitlines()] if progress.exists() else []
    started = [name for what, name in lines if what == "start"]
    code = os.waitstatus_to_exitcode(status)
    return {
        "ending": "endless" if is_stuck else ending_of(code, has_begun=bool(started)),
        "failed": [name for what, name in lines if what == "failed"][:1]
        or ([] if code in (0, 2, 5) and started else started[-1:]),
        "num_tests": len(started),
        "seconds": usage.ru_utime + usage.ru_stime,
        "output": (folder / "output").read_text(errors="replace")[-2000:] if (folder / "output").exists() else "",
    }


def ending_of(code: int, has_begun: bool) -> str:
    """What an exit code of pytest means; a signal other than those of the limits of time is a crash."""
    if code == 2 and has_begun:  # it was stopped; without a test, a file could not be imported
        return "passed"
    if code in (0, 5):
        return "passed" if code == 0 else "nothing"
    return "endless" if code in (-signal.SIGPROF, -signal.SIGXCPU, -signal.SIGKILL) else "failed"


def _end_orphans() -> None:
    """Kill what a fork has left running."""
    for _ in range(100):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0)[0]:
                pass


def find_reach(files: list[str], result: Path, folder: Path) -> None:
    """Run test files once, unchanged but for the marks; write what each test reaches."""
    import pytest

    # The module that watches is the one that Python has loaded at its start, not this script.
    watching = sys.modules["mutant_runner"]
    watching._is_test_process = True
    reach = watching.Reach()
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "--tb=line",
        f"--basetemp={folder}/tests",
        *IN_THIS_PROCESS,
    ]
    pytest.main([*options, *files], plugins=[reach])
    result.write_text(json.dumps(reach.results()))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2:])
    else:
        find_reach(sys.argv[4:], Path(sys.argv[2]), Path(sys.argv[3]))
