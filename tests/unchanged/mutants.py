"""The share of small faults that the tests find: mutants of the package, drawn with a seed.

    nice -n 19 python tests/unchanged/mutants.py --results mutants.jsonl               # all 150: less than an hour of one core
    nice -n 19 python tests/unchanged/mutants.py --results mutants.jsonl --first 60    # the first 60 of the same 150
    python tests/unchanged/mutants.py --results fast.jsonl --reach mutants.reach.json --likely mutants.jsonl --markers fast   # only the fast tests
    python tests/unchanged/mutants.py --results mutants.jsonl --report                 # only the shares so far
    python tests/unchanged/mutants.py --list                                           # the mutants, untested
    python tests/unchanged/mutants.py --python /path/to/another/tree/.venv/bin/python --results FILE

A mutant is a copy of the tree in which one place is changed: a comparison, an operator, a number by one, a truth value, a
condition that is negated, a `not` that is gone, a statement that is gone, or two arguments that are swapped. Text, messages of
the log, annotations and docstrings stay as they are.

Each place of each function has a number that follows from the seed, the qualified name of the function and the place, not
from files or lines. The places with the lowest numbers are taken, equally many in each room (folder of the package). So a function that
moves to another file keeps its mutants, and shares of two layouts can be compared. `model+acceleration+kernels` are several folders that count as
one room, those of them that the tree has: so the same code is covered if functions move between them.

First the tests of the rooms run once in an unchanged copy, with a mark before the statement of each mutant: so it is known
which tests reach it, through fixtures and other processes too, and what each one costs. Then, for each mutant, only these tests run,
the cheapest first (further cases of one test function count as dearer), until one fails or `--seconds` of processor time are used. A place that is
reached when a module is imported is tested with all tests.
A test that also fails in the unchanged copy does not count. A test that needs ten times its processor time, and 20 seconds,
counts as found (`endless`). Survivors are printed with their place: some change nothing that can be seen (a
limit of a cache, a second form for GPUs on a machine without one).

The results are JSON lines, one per mutant; a mutant that is in the file is not run again, so the script can be stopped and
started at any time. What the tests reach is kept beside them, in `FILE.reach.json`: begin with new names after a change of the tree.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

SEED = 1
NUM_MUTANTS = 150
ROOMS = ("model+acceleration+kernels", "data", "training", "checkpoint", "decoding", "text")
PACKAGE = "transformer_cli"
NOT_COPIED = (".git", ".venv", "venv", "runs", "site", "__pycache__", ".*_cache", ".hypothesis")
RUNNER = Path(__file__).with_name("mutant_runner.py")
# Imported once, before the forks. No module of the package or of its tests may be among them.
PRELOADED = (
    "torch",
    "torch._dynamo",
    "numpy",
    "pytest",
    "_pytest.assertion.rewrite",
    "hypothesis",
    "hypothesis.strategies",
    "pydantic",
    "typer.testing",
    "datasets",
    "tokenizers",
    "safetensors.torch",
    "yaml",
    "tqdm",
    "sacrebleu.metrics",
    "babel",
)
BATCHES = (
    20,
    150,
)  # so many tests in the first runs on a mutant, which most mutants do not survive; the last has the rest

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Mutant(NamedTuple):
    """One changed place."""

    function: str  # qualified name in its module
    kind: str
    before: str
    after: str
    begin: int  # bytes of the file from here
    end: int  # to here
    line: int
    number: int  # how many equal places of the function come before this one

    def rank(self, seed: int) -> str:
        """What decides which mutants are drawn; it does not depend on the file."""
        text = f"{seed}|{self.function}|{self.kind}|{self.before}|{self.number}"
        return hashlib.sha256(text.encode()).hexdigest()

    def applied(self, source: bytes) -> bytes:
        return source[: self.begin] + self.after.encode() + source[self.end :]


# Places of a file.


def mutants_of(source: bytes) -> list[Mutant]:
    """All mutants of all functions of a module."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    for name, function in functions_in(ast.parse(source)):
        seen: Counter[tuple[str, str]] = Counter()
        for kind, node, after in _changes(function):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            before = ast.unparse(node)
            found.append(Mutant(name, kind, before, after, begin, end, node.lineno, seen[kind, before]))
            seen[kind, before] += 1
    return found


def functions_in(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Qualified names and nodes of all functions, inner ones too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}{node.name}"
            if isinstance(node, FUNCTIONS):
                yield name, node
            yield from functions_in(node, f"{name}.")
        else:
            yield from functions_in(node, prefix)


def _changes(function: Any) -> Iterator[tuple[str, Any, str]]:
    """Kind, node and new text of each change in one function, without those of inner functions."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    defaults = [one for one in (*function.args.defaults, *function.args.kw_defaults) if one]
    for statement in (*defaults, *body):
        yield from _changes_in(statement)


def _changes_in(node: Any) -> Iterator[tuple[str, Any, str]]:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.JoinedStr)) or _is_log(node):
        return  # places in an f-string have no position of their own
    yield from _changes_at(node)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes_in(child)


def _is_log(node: Any) -> bool:
    """Whether a statement only writes to the log."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and isinstance(node.value.func.value, ast.Name)
        and node.value.func.value.id in ("logger", "logging", "warnings")
    )


def _changes_at(node: Any) -> Iterator[tuple[str, Any, str]]:
    yield from _operators(node)
    if isinstance(node, ast.Constant):
        yield from _constant(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_not(node.test):
        yield "negation", node.test, f"(not ({ast.unparse(node.test)}))"
    if isinstance(node, ast.Call) and _can_be_swapped(node):
        first, second, *others = node.args
        yield "swapped arguments", node, _with(node, args=[second, first, *others])
    if _can_be_deleted(node):
        yield "removed statement", node, "pass"


def _operators(node: Any) -> Iterator[tuple[str, Any, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield "comparison", node, _with(node, ops=[COMPARISONS[type(node.ops[0])]()])
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _is_text(node):
        yield "operator", node, _with(node, op=OPERATORS[type(node.op)]())
    is_added = isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS
    if is_added and not _is_literal(node.value):
        yield "operator", node, _with(node, op=OPERATORS[type(node.op)]())[1:-1]
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", node, _with(node, op=other)
    if _is_not(node):
        yield "removed not", node, f"({ast.unparse(node.operand)})"


def _can_be_swapped(node: ast.Call) -> bool:
    """Whether the first two arguments differ, and mean different things."""
    first_two = node.args[:2]
    return (
        len(first_two) == 2
        and not any(isinstance(one, ast.Starred) for one in first_two)
        and ast.dump(first_two[0]) != ast.dump(first_two[1])
        and ast.unparse(node.func) not in ("isinstance", "issubclass", "getattr", "cast")
    )


def _with(node: Any, **fields: Any) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    text = ast.unparse(changed)
    return text if isinstance(node, ast.Call) else f"({text})"


def _constant(node: ast.Constant) -> Iterator[tuple[str, Any, str]]:
    if isinstance(node.value, bool):
        yield "truth value", node, str(not node.value)
    elif isinstance(node.value, int | float) and node.value == node.value:
        yield "number", node, repr(node.value + 1)
        yield "number", node, f"({node.value - 1!r})"


def _is_not(node: Any) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_literal(node: Any) -> bool:
    """Whether this is certainly text or a list, whose sum has no difference."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.ListComp)


def _is_text(node: ast.BinOp) -> bool:
    return any(_is_literal(one) or (isinstance(one, ast.BinOp) and _is_text(one)) for one in (node.left, node.right))


def _can_be_deleted(node: Any) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return all(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete)


# Drawing.


class Drawn(NamedTuple):
    """A mutant and the file of the package that it changes."""

    mutant: Mutant
    file: str  # relative to the package
    room: str
    key: str


def draw(package: Path, rooms: Iterable[str], num_mutants: int, seed: int) -> list[Drawn]:
    """The mutants with the lowest ranks, equally many per room, the rooms in turn."""
    rooms = list(rooms)
    each = -(-num_mutants // len(rooms))
    columns = []
    for room in rooms:
        found: list[tuple[str, str, Mutant]] = []
        for file in sorted(file for folder in room.split("+") for file in (package / folder).rglob("*.py")):
            relative = file.relative_to(package).as_posix()
            found += [(one.rank(seed), relative, one) for one in mutants_of(file.read_bytes())]
        found.sort(key=lambda item: item[:2])
        if not found:
            raise SystemExit(f"{package / room}: no functions here; name the rooms with --rooms")
        name = room.partition("+")[0]
        columns.append([Drawn(one, file, name, f"{rank[:16]}:{one.after}") for rank, file, one in found[:each]])
    turns = [one for row in zip_longest(*columns) for one in row if one is not None]
    return turns[:num_mutants]


# Which tests.


def tests_of(tree: Path, rooms: Iterable[str], more: Iterable[str]) -> list[str]:
    """The folders of tests that mirror the rooms, and more."""
    names = [f"tests/{name}" for room in rooms for name in room.split("+")]
    return [name for name in (*names, *more) if (tree / name).exists()]


class Reached(NamedTuple):
    """What the unchanged tree's tests reach: keys of the mutants' places, of each test and of each file's import."""

    tests: dict[str, dict[str, Any]]
    at_import: dict[str, list[str]]

    def tests_for(self, key: str, only_fast: bool) -> dict[str, float]:
        """The tests that reach a place, in the order in which they run, with their costs."""
        chosen = {
            name: test
            for name, test in self.tests.items()
            if test["outcome"] == "passed" and (test["is_fast"] or not only_fast)
        }
        files = {file for file, keys in self.at_import.items() if key in keys}
        groups = [
            [name for name, test in chosen.items() if key in test["hits"]],
            [name for name in chosen if name.partition("::")[0] in files],
            list(chosen) if files else [],  # other files import the same modules
        ]
        costs = {name: test["cost"] for name, test in chosen.items()}
        return {name: costs[name] for group in groups for name in in_turns(group, costs)}


def in_turns(tests: Iterable[str], costs: dict[str, float]) -> list[str]:
    """The cheapest first; but the second case of a test function counts twice, the third three times."""
    cases: Counter[str] = Counter()
    weighted = []
    for test in sorted(tests, key=lambda name: (costs[name], name)):
        function = test.partition("[")[0]
        cases[function] += 1
        weighted.append((cases[function] * costs[test], test))
    return [test for _, test in sorted(weighted)]


# Running tests.


class Workshop:
    """A copy of the tree, in which mutants are made and tested."""

    def __init__(
        self, tree: Path, folder: Path, python: str, tests: list[str], preloaded: Iterable[str] = PRELOADED
    ) -> None:
        self.tests, self.preloaded = tests, preloaded
        self.folder, self.copy, self.python = folder, folder / "tree", python
        shutil.copytree(tree, self.copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        self._require_own_package()
        self._server: subprocess.Popen[str] | None = None
        self._fails_unchanged: dict[str, bool] = {}
        self._numbers = 0

    def reached(self, drawn: list[Drawn], markers: str | None = None) -> dict[str, Any]:
        """Run tests once, unchanged, and find which places each of them reaches."""
        hooks = self.folder / "hooks"
        hooks.mkdir()
        shutil.copy(RUNNER, hooks)
        hook = "import mutant_runner\nmutant_runner.watch_places()\n"
        (hooks / "sitecustomize.py").write_text(hook)
        places: dict[str, list[list[int]]] = defaultdict(list)
        for number, one in enumerate(drawn):
            path = self.copy / PACKAGE / one.file
            places[str(path)].append([*_position(path.read_bytes(), one.mutant), number])
        (self.folder / "places.json").write_text(json.dumps(places))
        environment = self._environment() | {
            "PYTHONPATH": f"{hooks}{os.pathsep}{self.copy}",
            "MUTANT_PLACES": str(self.folder / "places.json"),
            "MUTANT_HITS": str(self.folder / "hits"),
        }
        result = self.folder / "reach.json"
        command = [self.python, str(RUNNER), "reach", str(result), str(self._new_folder()), *self.tests]
        command += ["-m", f"({markers})"] if markers else []
        subprocess.run(command, cwd=self.copy, env=environment, check=True, stdin=subprocess.DEVNULL)
        found = json.loads(result.read_text())
        for test in found["tests"].values():
            test["hits"] = [drawn[number].key for number in test["hits"]]
        for file, hits in found["at_import"].items():
            found["at_import"][file] = [drawn[number].key for number in hits]
        return found

    def verdict(
        self, drawn: Drawn, tests: dict[str, float], seconds: float, markers: str | None, likely: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Make a mutant, run its tests, the likely ones first, and put the tree back."""
        file = self.copy / PACKAGE / drawn.file
        source = file.read_bytes()
        changed = drawn.mutant.applied(source)
        ast.parse(changed)
        used, num_tests = 0.0, 0
        result: dict[str, Any] = {"verdict": "survived", "by": []}
        first = [test for test in likely if test in tests]
        waiting = {test: tests[test] for test in (*first, *tests)}
        batches = (len(first), *BATCHES)
        while waiting and used < seconds and result["verdict"] == "survived":
            num_batch = next((size for size in batches if num_tests < size), len(waiting))
            batch = dict(list(waiting.items())[:num_batch])
            file.write_bytes(changed)
            try:
                answer = self.run(batch, seconds - used, markers)
            finally:
                file.write_bytes(source)
            used += answer["seconds"]
            num_tests += answer["num_tests"]
            if answer["ending"] in ("failed", "endless"):
                if any(self._also_unchanged(test, tests[test], markers) for test in answer["failed"]):
                    waiting.pop(answer["failed"][0])
                    continue
                if not answer["failed"]:  # a file could not be imported, or pytest itself failed
                    unchanged = self.run(batch, 0, markers)
                    assert unchanged["num_tests"], unchanged["output"]
                result = {
                    "verdict": "killed" if answer["ending"] == "failed" else "endless",
                    "by": answer["failed"] or [answer["output"][-300:]],
                }
            waiting = {test: cost for test, cost in waiting.items() if test not in batch}
        return result | {"tests": num_tests, "reaching": len(tests), "cpu_seconds": round(used, 1)}

    def _also_unchanged(self, test: str, cost: float, markers: str | None) -> bool:
        if test not in self._fails_unchanged:
            answer = self.run({test: cost}, 60, markers)
            self._fails_unchanged[test] = answer["ending"] != "passed"
        return self._fails_unchanged[test]

    def run(self, tests: dict[str, float], seconds: float, markers: str | None) -> dict[str, Any]:
        """Run tests in a fork, until the first failure or the limit of processor time."""
        server = self._started()
        assert server.stdin is not None
        assert server.stdout is not None
        folder = self._new_folder()
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        request = {"files": files, "tests": tests, "seconds": seconds, "markers": markers, "folder": str(folder)}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer: dict[str, Any] = json.loads(server.stdout.readline())
        shutil.rmtree(folder, ignore_errors=True)
        return answer

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()

    def _started(self) -> subprocess.Popen[str]:
        """The server. Before it starts, the package and the tests are compiled: no run writes such files."""
        if self._server is None:
            # Python reads such a file only if the source has not changed, to the byte.
            compileall.compile_dir(
                self.copy / PACKAGE,
                quiet=2,
                invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
            ) if sys.version_info[:2] == _version_of(self.python) else None
            environment = self._environment() | {"PYTHONPATH": str(self.copy)}
            collect = [self.python, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", *self.tests]
            subprocess.run(
                collect, cwd=self.copy, env=environment | {"PYTHONDONTWRITEBYTECODE": ""}, stdout=subprocess.DEVNULL
            )
            self._server = subprocess.Popen(
                [self.python, str(RUNNER), "serve", *self.preloaded],
                cwd=self.copy,
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._server

    def _environment(self) -> dict[str, str]:
        return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300"}

    def _new_folder(self) -> Path:
        self._numbers += 1
        folder = self.folder / f"run-{self._numbers}"
        folder.mkdir()
        return folder

    def _require_own_package(self) -> None:
        code = f"import {PACKAGE}; print({PACKAGE}.__file__)"
        found = subprocess.run(
            [self.python, "-c", code],
            cwd="/",
            env=os.environ | {"PYTHONPATH": str(self.copy)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert Path(found.stdout.strip()).is_relative_to(self.copy), found.stdout


def _position(source: bytes, mutant: Mutant) -> tuple[int, int, int, int]:
    """Line and column (in bytes) of the begin and the end of a place, as in a syntax tree."""

    def line_and_column(place: int) -> tuple[int, int]:
        before = source[:place]
        return before.count(b"\n") + 1, place - (before.rfind(b"\n") + 1)

    return *line_and_column(mutant.begin), *line_and_column(mutant.end)


def _version_of(python: str) -> tuple[int, int]:
    code = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return int(major), int(minor)


# Reporting.


def report(results: list[dict[str, Any]]) -> list[str]:
    """Shares per room and per kind, and the survivors."""
    lines = []
    for what in ("room", "kind"):
        groups: dict[str, list[bool]] = defaultdict(list)
        for one in results:
            groups[one[what]].append(one["verdict"] != "survived")
        lines += [f"{what:20} mutants  found", *(_share(name, found) for name, found in sorted(groups.items())), ""]
    lines.append(_share("all", [one["verdict"] != "survived" for one in results]))
    survivors = [one for one in results if one["verdict"] == "survived"]
    lines += ["", f"survived: {len(survivors)}"]
    lines += [
        f"  {one['file']}:{one['line']} {one['function']}, {one['kind']}: {_short(one['before'])} -> {_short(one['after'])} ({one['tests']} of {one['reaching']} tests that reach it)"
        for one in survivors
    ]
    return lines


def _share(name: str, found: list[bool]) -> str:
    return f"{name:20} {len(found):7} {sum(found):6}" + (f" {100 * sum(found) / len(found):4.0f} %" if found else "")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 70 else text[:67] + "..."


def read_results(file: Path | None) -> list[dict[str, Any]]:
    if file is None or not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def tree_of(python: str) -> Path:
    """The tree whose package this Python imports."""
    code = f"import importlib.util as u; print(u.find_spec('{PACKAGE}').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return Path(found.stdout.strip()).resolve().parent


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="of the tree that is tested")
    parser.add_argument("--results", type=Path, help="a file of JSON lines, outside of the repository")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="folders of the package")
    parser.add_argument("--leave-out", nargs="*", default=(), metavar="TEXT", help="files whose path contains this")
    parser.add_argument("--mutants", type=int, default=NUM_MUTANTS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, help="stop after this many")
    parser.add_argument("--seconds", type=float, default=15, help="processor time for one mutant")
    parser.add_argument(
        "--tests",
        nargs="+",
        default=(),
        metavar="FOLDER",
        help="more tests than those of the rooms",
    )
    parser.add_argument(
        "--reach",
        type=Path,
        help="file that has, or gets, what the tests reach; RESULTS.reach.json if absent",
    )
    parser.add_argument(
        "--likely", type=Path, metavar="RESULTS", help="of an earlier run: what found a mutant there runs first"
    )
    parser.add_argument("--markers", choices=["fast"], help="run only tests with this marker")
    parser.add_argument("--list", action="store_true", help="print the mutants, test nothing")
    parser.add_argument("--report", action="store_true", help="print the shares so far")
    options = parser.parse_args()
    tree = tree_of(options.python)
    drawn = draw(tree / PACKAGE, options.rooms, options.mutants, options.seed)
    drawn = [one for one in drawn if not any(text in one.file for text in options.leave_out)]
    chosen = drawn[: options.first]
    if options.list:
        for one in chosen:
            say(
                f"{one.file}:{one.mutant.line} {one.mutant.function}, {one.mutant.kind}: {_short(one.mutant.before)} -> {_short(one.mutant.after)}"
            )
        return
    if options.results is None:
        parser.error("--results is missing")
    keys = {one.key for one in chosen}
    if not options.report:
        _test(drawn, tree, options)
    results = [one for one in read_results(options.results) if one["key"] in keys]
    say("\n".join(report(results)))


def _test(drawn: list[Drawn], tree: Path, options: argparse.Namespace) -> None:
    done = {one["key"] for one in read_results(options.results)}
    waiting = [one for one in drawn[: options.first] if one.key not in done]
    if not waiting:
        return
    with tempfile.TemporaryDirectory(prefix="tfm-mutants-") as name:
        workshop = Workshop(tree, Path(name), options.python, tests_of(tree, options.rooms, options.tests))
        reached = _reached(workshop, drawn, options)
        likely = {one["key"]: one["by"] for one in read_results(options.likely)}
        for one in waiting:
            started_at = time.monotonic()
            tests = reached.tests_for(one.key, only_fast=options.markers == "fast")
            result = {
                "key": one.key,
                "room": one.room,
                "file": one.file,
                "line": one.mutant.line,
                "function": one.mutant.function,
                "kind": one.mutant.kind,
                "before": one.mutant.before,
                "after": one.mutant.after,
                **workshop.verdict(one, tests, options.seconds, options.markers, likely.get(one.key, ())),
                "seconds": round(time.monotonic() - started_at, 1),
            }
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, ensure_ascii=False) + "\n")
            say(
                f"{result['verdict']:9} {one.file}:{one.mutant.line} {one.mutant.kind} {', '.join(result['by'][:1])} ({result['cpu_seconds']} s)"
            )
        workshop.close()


def _reached(workshop: Workshop, drawn: list[Drawn], options: argparse.Namespace) -> Reached:
    """What the tests reach, from the file of an earlier run if there is one."""
    file = options.reach or options.results.with_name(options.results.stem + ".reach.json")
    if not file.is_file():
        file.write_text(json.dumps({"keys": [one.key for one in drawn], **workshop.reached(drawn, options.markers)}))
    known = json.loads(file.read_text())
    if not {one.key for one in drawn} <= set(known["keys"]):
        raise SystemExit(f"{file} is of other mutants; remove it, or name another with --reach")
    return Reached(known["tests"], known["at_import"])


if __name__ == "__main__":
    main()
