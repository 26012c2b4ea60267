"""The mutants: what is changed in a function and what is not, and which ones are drawn."""

import ast
from pathlib import Path

import pytest

from .mutants import Drawn, Mutant, TestFiles, draw, ending_of, mutants_of, report

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
    assert changes(FUNCTION, "and, or") == [("not text or len(text) <= limit", "(not text and len(text) <= limit)")]  # fmt: skip
    assert changes(FUNCTION, "removed not") == [("not text", "(text)")]
    assert changes(FUNCTION, "negation") == [("not text or len(text) <= limit", "(not (not text or len(text) <= limit))")]  # fmt: skip
    assert changes(FUNCTION, "operator") == [("text.strip() * 2", "(text.strip() / 2)")]
    assert changes(FUNCTION, "swapped arguments") == [("max(text, 'b')", "max('b', text)")]
    assert changes(FUNCTION, "removed statement") == [("names.append(max(text, 'b'))", "pass")]
    assert changes(b"def f(a):\n    a += g(1)\n", "operator") == [("a += g(1)", "a -= g(1)")]
    assert changes(b"def f():\n    return True\n", "truth value") == [("True", "False")]


def test_numbers_change_by_one_but_not_in_docstrings_logs_or_annotations() -> None:
    assert changes(FUNCTION, "number") == [
        ("3", "4"), ("3", "(2)"), ("0", "1"), ("0", "(-1)"), ("2", "3"), ("2", "(1)"),
    ]  # fmt: skip
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


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "transformer_cli/__init__.py": '_PUBLIC = {"walk": "transformer_cli.legs.walking"}\n',
        "transformer_cli/arms/wave.py": FUNCTION.decode(),
        "transformer_cli/legs/__init__.py": "from transformer_cli.legs.walking import run as run\n",
        "transformer_cli/legs/walking.py": "def run(a):\n    return a + 1\n\n\ndef walk(a):\n    return a - 1\n",
        "tests/legs/test_walking.py": "",
        "tests/legs/test_other.py": "",
        "tests/legs/tools.py": "import transformer_cli.legs.walking\n",
        "tests/arms/test_race.py": "from transformer_cli.legs import run\n",
        "tests/arms/test_public.py": "from transformer_cli import walk\n",
        "tests/arms/test_tools.py": "from ..legs.tools import x\n",
        "tests/arms/test_nothing.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_likeliest_test_files_come_first(tree: Path) -> None:
    assert TestFiles(tree).tiers("legs/walking.py") == [
        ["tests/legs/test_walking.py"],
        ["tests/arms/test_public.py", "tests/arms/test_race.py"],
        ["tests/arms/test_tools.py"],
        ["tests/legs/test_other.py"],
    ]


def test_equally_many_mutants_are_drawn_per_room_and_more_of_them_only_add_to_the_first(tree: Path) -> None:  # fmt: skip
    package = tree / "transformer_cli"
    drawn = draw(package, ("arms", "legs"), 6, seed=1)
    assert [one.room for one in drawn] == ["arms", "legs"] * 3
    assert draw(package, ("arms", "legs"), 4, seed=1) == drawn[:4]
    assert draw(package, ("arms", "legs"), 6, seed=2) != drawn


def test_the_report_has_a_share_for_each_room_and_names_the_survivors() -> None:
    result = {"room": "legs", "kind": "number", "file": "legs/a.py", "line": 3, "function": "run",
              "before": "1", "after": "2", "test_files": 4, "verdict": "survived"}  # fmt: skip
    lines = report([result, result | {"verdict": "killed"}, result | {"verdict": "endless", "room": "arms"}])  # fmt: skip
    assert "legs                       2      1   50 %" in lines
    assert "arms                       1      1  100 %" in lines
    assert lines[-1] == "  legs/a.py:3 run, number: 1 -> 2 (4 test files)"


@pytest.mark.parametrize(
    ("code", "ending"),
    [(0, "passed"), (1, "failed"), (2, "failed"), (5, "nothing"), (-11, "failed"), (-24, "endless")],
)  # fmt: skip
def test_the_ending_of_a_test_run_follows_from_its_exit_code(code: int, ending: str) -> None:
    assert ending_of(code) == ending


def test_the_key_of_a_drawn_mutant_tells_apart_the_changes_of_one_place(tree: Path) -> None:
    drawn: list[Drawn] = draw(tree / "transformer_cli", ("arms",), 100, seed=1)
    assert len({one.key for one in drawn}) == len(drawn) == len(set(mutants_of(FUNCTION)))
    assert all(isinstance(one.mutant, Mutant) for one in drawn)
