"""What tests/conftest.py makes of tests: none depends on those before it, a fast one starts no process, and the tiers hold what they say."""

import ast
import logging
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
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
def conftest(pytestconfig: pytest.Config) -> Any:
    """tests/conftest.py, as pytest has imported it."""
    return next(one for one in pytestconfig.pluginmanager.get_plugins() if hasattr(one, "Process"))


@pytest.fixture
def process(conftest: Any) -> Any:
    """The process as it is now, seen by tests/conftest.py."""
    return conftest.Process()


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


def made_for_fast(conftest: Any, function: Any, cases: list[Any]) -> list[Any]:
    """The tests of which the fast tier consists, for the cases of one function."""
    config = SimpleNamespace(option=SimpleNamespace(markexpr="fast"))
    making = conftest.pytest_pycollect_makeitem(SimpleNamespace(config=config), function)
    next(making)
    with pytest.raises(StopIteration) as ended:
        making.send(cases)
    made: list[Any] = ended.value.value
    return made


def a_case(request: pytest.FixtureRequest, function: Any, number: int, marks: Any = (), **more: object) -> Any:
    spec = SimpleNamespace(params={"number": number}, id=f"number-{number}", marks=marks)
    given = {"fixturenames": ["number"], "parent": request.node.parent, "originalname": "test_it", **more}
    return SimpleNamespace(obj=function, callspec=spec, **given)


def test_in_the_fast_tier_all_cases_of_a_function_run_in_one_test_that_names_each_one_that_fails(
    request: pytest.FixtureRequest, conftest: Any
) -> None:
    seen = []

    def test_it(number: int) -> None:
        seen.append(number)
        if number == 5:
            pytest.skip("not here")
        assert number < 3
        if number == 2:
            pytest.fail("two")

    [one] = made_for_fast(conftest, test_it, [a_case(request, test_it, number) for number in range(6)])
    assert one.nodeid.endswith("::test_it")
    with pytest.raises(BaseExceptionGroup, match="3 of 6 cases failed") as failed:
        one.obj()
    assert seen == [0, 1, 2, 3, 4, 5]
    assert [error.__notes__ for error in failed.value.exceptions] == [[f"case number-{n}"] for n in (2, 3, 4)]
    [few] = made_for_fast(conftest, test_it, [a_case(request, test_it, number) for number in (0, 5)])
    few.obj()
    [skipped] = made_for_fast(conftest, test_it, [a_case(request, test_it, 5), a_case(request, test_it, 5)])
    with pytest.raises(pytest.skip.Exception, match="not here"):
        skipped.obj()


def test_a_case_with_a_fixture_or_a_marker_stays_a_test(request: pytest.FixtureRequest, conftest: Any) -> None:
    def test_it(number: int) -> None: ...

    plain = [a_case(request, test_it, number) for number in (1, 2)]
    others = [
        a_case(request, test_it, 3, marks=[pytest.mark.long]),
        a_case(request, test_it, 4, fixturenames=["number", "tmp_path"]),
        SimpleNamespace(obj=test_it, fixturenames=[]),  # without cases
    ]
    one, *rest = made_for_fast(conftest, test_it, [*others, *plain])
    assert isinstance(one, pytest.Function)
    assert rest == others
    assert made_for_fast(conftest, test_it, others) == others


def test_what_installs_from_a_registry_is_of_the_tier_network(conftest: Any) -> None:
    """So that `-m "heavy and not network"` needs no network."""
    found, without = [], []
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if '"install"' not in text or file == Path(__file__):
            continue
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef):
                continue
            words = [each.elts for each in ast.walk(function) if isinstance(each, ast.List | ast.Tuple)]
            if any(isinstance(word, ast.Constant) and word.value == "install" for each in words for word in each):
                found.append(function.name)
                marks = {ast.unparse(mark) for mark in function.decorator_list}
                if conftest.TIER_OF_FIXTURE.get(function.name) != "network" and "pytest.mark.network" not in marks:
                    without.append(f"{file.name}: {function.name}")
    assert without == []
    assert {"axe", "installed_engine"} <= {*found}
