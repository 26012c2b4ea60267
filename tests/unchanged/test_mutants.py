"""The mutants: what is changed in a function and what is not, and which ones are drawn."""

import ast
import sys
from pathlib import Path

import pytest

from .mutant_runner import ending_of, with_marks
from .mutants import Drawn, Mutant, Reached, Workshop, draw, in_turns, mutants_of, report

FUNCTION = b'''\
def shorten(text: str, limit: int = 3) -> str:
    """At most 3 characters."""
    \xc3\xa9 = 0
    if not text or len(text) <= limit:
        logger.info("%d is short", 7)
        return text
    names.append(max(text, "b"))
    return f"{text[:limit + 1]}" + text.strip() * 2
'''


def changes(source: bytes, kind: str) -> list[tuple[str, str]]:
    return [(one.before, one.after) for one in mutants_of(source) if one.kind == kind]


def test_each_kind_of_change_is_made_where_it_can_be() -> None:
    assert changes(FUNCTION, "comparison") == [("len(text) <= limit", "(len(text) < limit)")]
    assert changes(FUNCTION, "and, or") == [("not text or len(text) <= limit", "(not text and len(text) <= limit)")]
    assert changes(FUNCTION, "removed not") == [("not text", "(text)")]
    assert changes(FUNCTION, "negation") == [
        ("not text or len(text) <= limit", "(not (not text or len(text) <= limit))")
    ]
    assert changes(FUNCTION, "operator") == [("text.strip() * 2", "(text.strip() / 2)")]
    assert changes(FUNCTION, "swapped arguments") == [("max(text, 'b')", "max('b', text)")]
    assert changes(FUNCTION, "removed statement") == [("names.append(max(text, 'b'))", "pass")]
    assert changes(b"def f(a):\n    a += g(1)\n", "operator") == [("a += g(1)", "a -= g(1)")]
    assert changes(b"def f():\n    return True\n", "truth value") == [("True", "False")]


def test_numbers_change_by_one_but_not_in_docstrings_logs_or_annotations() -> None:
    assert changes(FUNCTION, "number") == [
        ("3", "4"),
        ("3", "(2)"),
        ("0", "1"),
        ("0", "(-1)"),
        ("2", "3"),
        ("2", "(1)"),
    ]
    assert changes(b"def f():\n    a: Literal[3] = b\n", "number") == []


def test_each_mutant_changes_one_place_and_is_still_python() -> None:
    unchanged = ast.dump(ast.parse(FUNCTION))
    for one in mutants_of(FUNCTION):
        changed = one.applied(FUNCTION)
        assert ast.dump(ast.parse(changed)) != unchanged
        assert changed[: one.begin] == FUNCTION[: one.begin]
        assert changed.endswith(FUNCTION[one.end :])


def test_only_functions_are_changed_and_inner_ones_have_their_own_names() -> None:
    source = b"A = 1\nclass B:\n    c = 2\n    def d(self):\n        def e():\n            return 3\n        return 4\n"
    assert {(one.function, one.before) for one in mutants_of(source)} == {
        ("B.d.e", "3"),
        ("B.d", "4"),
    }


def ranks(source: bytes) -> list[str]:
    return sorted(one.rank(1) for one in mutants_of(source))


def test_a_function_that_moves_keeps_its_mutants() -> None:
    moved = b"import os\n\n\nOTHER = 5\n\n\n" + FUNCTION
    assert ranks(moved) == ranks(FUNCTION)
    assert ranks(FUNCTION.replace(b"shorten", b"cut")) != ranks(FUNCTION)


FILES = {
    "transformer_cli/__init__.py": "",
    "transformer_cli/arms/wave.py": FUNCTION.decode(),
    "transformer_cli/legs/walking.py": "def run(a):\n    return a + 1\n\n\ndef walk(a):\n    if a < 0:\n        return -a\n    return a - 1\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(tmp_path / "tree", FILES)
    return tmp_path / "tree"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_the_cheapest_tests_come_first_and_many_cases_of_one_function_later() -> None:
    costs = {"a[1]": 2.0, "a[2]": 1.0, "b": 3.0, "c[1]": 0.5, "c[2]": 0.6, "c[3]": 0.1, "d": 9.0}
    tests = [one for one in costs if one != "d"]
    assert in_turns(tests, costs) == ["c[3]", "a[2]", "c[1]", "c[2]", "b", "a[1]"]


def reached(**outcomes: str) -> Reached:
    tests = {
        "x.py::direct": ["key"],
        "y.py::other": ["else"],
        "z.py::imports": [],
        "z.py::direct_and_slow": ["key"],
    }
    return Reached(
        {
            name: {
                "outcome": outcomes.get(name.partition("::")[2], "passed"),
                "is_fast": "slow" not in name,
                "cost": 5 if "slow" in name else 1,
                "hits": hits,
            }
            for name, hits in tests.items()
        },
        {"z.py": ["imported"]},
    )


def test_tests_that_reach_a_place_run_and_no_others() -> None:
    assert list(reached().tests_for("key", only_fast=False)) == ["x.py::direct", "z.py::direct_and_slow"]
    assert list(reached().tests_for("key", only_fast=True)) == ["x.py::direct"]
    assert reached().tests_for("nothing", only_fast=False) == {}


def test_tests_that_fail_or_are_skipped_in_the_unchanged_tree_are_not_used() -> None:
    assert list(reached(direct="skipped").tests_for("key", only_fast=False)) == ["z.py::direct_and_slow"]
    assert list(reached(direct="failed").tests_for("key", only_fast=False)) == ["z.py::direct_and_slow"]


def test_what_is_reached_at_import_is_tested_by_all_first_by_the_file_that_imports() -> None:
    assert list(reached().tests_for("imported", only_fast=False)) == [
        "z.py::imports",
        "z.py::direct_and_slow",
        "x.py::direct",
        "y.py::other",
    ]


def test_marks_stand_before_the_innermost_statement_and_change_nothing_else() -> None:
    source = (
        b"def f(a, b=1):\n    '''Doc.'''\n    if a:\n        return a\n    elif a is None or not b:\n"
        b"        pass\n    try:\n        a()\n    except E:\n        b += 2\n"
    )

    def marked(text: bytes) -> str:
        begin = source.index(text)
        line, column = source.count(b"\n", 0, begin) + 1, begin - source.rfind(b"\n", 0, begin) - 1
        return ast.unparse(with_marks(ast.parse(source), [[line, column, line, column + len(text), 7]]))

    mark = "_mutant_place_is_reached(7)"
    assert f"'''Doc.'''\n    {mark}\n".replace("'''", '"""') in marked(b"1)"[:1])
    assert f"if a:\n        {mark}\n        return a" in marked(b"return a")
    assert f"else:\n        {mark}\n        if a is None or not b:" in marked(b"not b")
    assert f"{mark}\n        b += 2" in marked(b"b += 2")
    assert f"{mark}\n    try:" in marked(b"E:"[:1])
    assert ast.unparse(ast.parse(source)) == marked(b"a()").replace(f"        {mark}\n", "")


TESTS = """
import subprocess, sys
import pytest
from transformer_cli.legs.walking import run, walk

@pytest.fixture(scope="module")
def ran():
    return run(1)

def test_nothing_is_checked(ran):
    pass

def test_of_a_fixture(ran):
    assert ran == 2

def test_of_a_process():
    assert subprocess.run([sys.executable, "-c", "from transformer_cli.legs.walking import walk; print(walk(3))"], capture_output=True).stdout == b"2\\n"

def test_that_fails():
    assert run(1) == 3
"""


@pytest.mark.process
@pytest.mark.heavy
def test_mutants_are_found_by_the_tests_that_reach_them(tmp_path: Path, tree: Path) -> None:
    write(
        tree,
        {
            "tests/legs/test_walking.py": TESTS,
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-n 2'\n",
        },
    )
    drawn = draw(tree / "transformer_cli", ("legs",), 100, seed=1)
    by_change = {one.mutant.after: one for one in drawn}
    workshop = Workshop(tree, tmp_path / "shop", sys.executable, ["tests/legs"], preloaded=["pytest"])
    found = workshop.reached(drawn)
    known = Reached(found["tests"], found["at_import"])

    def verdict(change: str) -> tuple[str, list[str], int]:
        one = by_change[change]
        result = workshop.verdict(one, known.tests_for(one.key, only_fast=False), 30, None)
        return (
            result["verdict"],
            [test.partition("::")[2] for test in result["by"]],
            result["reaching"],
        )

    assert verdict("(a - 1)") == ("killed", ["test_of_a_fixture"], 2)
    assert verdict("(a + 1)") == ("killed", ["test_of_a_process"], 1)
    assert verdict("(a <= 0)") == ("survived", [], 1)
    assert walking_is_unchanged(workshop.copy)
    workshop.close()


def walking_is_unchanged(tree: Path) -> bool:
    name = "transformer_cli/legs/walking.py"
    return (tree / name).read_text() == FILES[name]


def test_folders_that_count_as_one_room_are_drawn_together_where_the_tree_has_them(tree: Path) -> None:
    package = tree / "transformer_cli"
    drawn = draw(package, ("arms+legs+wings",), 1000, seed=1)
    assert {one.room for one in drawn} == {"arms"}
    assert {one.file for one in drawn} == {"arms/wave.py", "legs/walking.py"}
    assert {one.key for one in drawn} == {one.key for one in draw(package, ("arms", "legs"), 1000, seed=1)}


def test_equally_many_mutants_are_drawn_per_room_and_more_of_them_only_add_to_the_first(tree: Path) -> None:
    package = tree / "transformer_cli"
    drawn = draw(package, ("arms", "legs"), 6, seed=1)
    assert [one.room for one in drawn] == ["arms", "legs"] * 3
    assert draw(package, ("arms", "legs"), 4, seed=1) == drawn[:4]
    assert draw(package, ("arms", "legs"), 6, seed=2) != drawn


def test_the_report_has_a_share_for_each_room_and_names_the_survivors() -> None:
    result = {
        "room": "legs",
        "kind": "number",
        "file": "legs/a.py",
        "line": 3,
        "function": "run",
        "before": "1",
        "after": "2",
        "tests": 4,
        "reaching": 9,
        "verdict": "survived",
    }
    lines = report([result, result | {"verdict": "killed"}, result | {"verdict": "endless", "room": "arms"}])
    assert "legs                       2      1   50 %" in lines
    assert "arms                       1      1  100 %" in lines
    assert lines[-1] == "  legs/a.py:3 run, number: 1 -> 2 (4 of 9 tests that reach it)"


@pytest.mark.parametrize(
    ("code", "ending"),
    [(0, "passed"), (1, "failed"), (2, "passed"), (5, "nothing"), (-11, "failed"), (-24, "endless"), (-27, "endless")],
)
def test_the_ending_of_a_test_run_follows_from_its_exit_code(code: int, ending: str) -> None:
    assert ending_of(code, has_begun=True) == ending


def test_a_file_that_cannot_be_imported_is_a_failure() -> None:
    assert ending_of(2, has_begun=False) == "failed"


def test_the_key_of_a_drawn_mutant_tells_apart_the_changes_of_one_place(tree: Path) -> None:
    drawn: list[Drawn] = draw(tree / "transformer_cli", ("arms",), 100, seed=1)
    assert len({one.key for one in drawn}) == len(drawn) == len(set(mutants_of(FUNCTION)))
    assert all(isinstance(one.mutant, Mutant) for one in drawn)
