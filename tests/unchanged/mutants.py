"""The share of small faults that the tests find: mutants of the package, drawn with a seed.

    nice -n 19 python tests/unchanged/mutants.py --results mutants.jsonl               # all 150: two hours of one core or more
    nice -n 19 python tests/unchanged/mutants.py --results mutants.jsonl --first 30    # the first 30 of the same 150
    python tests/unchanged/mutants.py --results mutants.jsonl --report                 # only the shares so far
    python tests/unchanged/mutants.py --list                                           # the mutants, untested
    python tests/unchanged/mutants.py --python /path/to/another/tree/.venv/bin/python --results FILE

A mutant is a copy of the tree in which one place is changed: a comparison, an operator, a number by one, a truth value, a
condition that is negated, a `not` that is gone, a statement that is gone, or two arguments that are swapped. Text, messages of
the log, annotations and docstrings stay as they are.

Each place of each function has a number that follows from the seed, the qualified name of the function and the place, not
from files or lines. The places with the lowest numbers are taken, equally many in each room (folder of the package). So a function that
moves to another file keeps its mutants, and shares of two layouts can be compared; if a function moves to another room, give
`--rooms` so that the same code is covered.

For each mutant, the test files that mirror the changed module run first, then those that import it, those that use it
through a module of the tests, and last the other files of the same room, until a test fails or `--seconds` of processor time are used.
A test that also fails in the unchanged copy does not count. A run that needs more processor time than its limit counts as
found (`endless`) if the unchanged copy needs less. Survivors are printed with their place: some change nothing that can be seen (a
limit of a cache, a second form for GPUs on a machine without one).

The results are JSON lines, one per mutant; a mutant that is in the file is not run again, so the script can be stopped and
started at any time.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import copy
import hashlib
import json
import os
import py_compile
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

SEED = 1
NUM_MUTANTS = 150
ROOMS = ("model", "data", "training", "checkpoint", "decoding", "text")
PACKAGE = "transformer_cli"
NOT_COPIED = (".git", ".venv", "venv", "runs", "site", "__pycache__", ".*_cache", ".hypothesis")
SECONDS_PER_FILE = 60  # of processor time
WALL_FACTOR = 40  # a test that waits forever uses no processor time; on a busy machine, neither does one at low priority

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
}  # fmt: skip
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
            found.append(Mutant(name, kind, before, after, begin, end, node.lineno, seen[kind, before]))  # fmt: skip
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
    return is_text or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.ListComp)  # fmt: skip


def _is_text(node: ast.BinOp) -> bool:
    return any(
        _is_literal(one) or (isinstance(one, ast.BinOp) and _is_text(one))
        for one in (node.left, node.right)
    )


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
    key: str

    @property
    def room(self) -> str:
        return self.file.partition("/")[0].removesuffix(".py")


def draw(package: Path, rooms: Iterable[str], num_mutants: int, seed: int) -> list[Drawn]:
    """The mutants with the lowest ranks, equally many per room, the rooms in turn."""
    rooms = list(rooms)
    each = -(-num_mutants // len(rooms))
    columns = []
    for room in rooms:
        found: list[tuple[str, str, Mutant]] = []
        for file in sorted((package / room).rglob("*.py")):
            relative = file.relative_to(package).as_posix()
            found += [(one.rank(seed), relative, one) for one in mutants_of(file.read_bytes())]
        found.sort(key=lambda item: item[:2])
        if not found:
            raise SystemExit(f"{package / room}: no functions here; name the rooms with --rooms")
        columns.append([Drawn(one, file, f"{rank[:16]}:{one.after}") for rank, file, one in found[:each]])  # fmt: skip
    turns = [one for row in zip_longest(*columns) for one in row if one is not None]
    return turns[:num_mutants]


# Which tests.


class TestFiles:
    """The test files of a tree, and what each of them imports."""

    __test__ = False

    def __init__(self, tree: Path) -> None:
        self.tree, self.tests, self.package = tree, tree / "tests", tree / PACKAGE
        files = sorted(self.tests.rglob("*.py"))
        self.imports = {file: self._modules_in(file) for file in files if file.parent.name != "unchanged"}  # fmt: skip
        self.files = [file for file in self.imports if file.name.startswith("test_")]

    def tiers(self, changed: str) -> list[list[str]]:
        """Groups of test files for a changed file of the package: the most likely ones first."""
        module, room = self.package / changed, changed.partition("/")[0].removesuffix(".py")
        stem = Path(changed).parent.name if module.name == "__init__.py" else module.stem
        helpers = {file for file, modules in self.imports.items() if module in modules and file not in self.files}  # fmt: skip
        tiers = [
            [file for file in self.files if file.stem == f"test_{stem}"],
            [file for file in self.files if module in self.imports[file]],
            [file for file in self.files if helpers & self.imports[file]],
            sorted(
                (file for file in self.files if file.is_relative_to(self.tests / room)),
                key=lambda file: file.parent != self.tests / Path(changed).parent,
            ),
        ]
        seen: set[Path] = set()
        result = []
        for tier in tiers:
            result.append([str(file.relative_to(self.tree)) for file in tier if file not in seen])
            seen.update(tier)
        return [tier for tier in result if tier]

    def _modules_in(self, file: Path) -> set[Path]:
        """The files, of the package and of the tests, that a test file imports by name."""
        found: set[Path] = set()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found |= _file_of(self.tree, alias.name.split("."))
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found |= _source_of(self.tree, _parts(file, node, self.tree), alias.name)
        return found


def _parts(file: Path, node: ast.ImportFrom, tree: Path) -> tuple[str, ...]:
    own = file.relative_to(tree).parts[: -node.level] if node.level else ()
    return (*own, *(node.module or "").split(".")) if node.module else own


def _file_of(tree: Path, parts: Iterable[str]) -> set[Path]:
    path = tree.joinpath(*parts)
    return {file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()}


@cache
def _source_of(tree: Path, parts: tuple[str, ...], name: str) -> frozenset[Path]:
    """The files in which a name that is imported from a module is defined; packages pass names on."""
    if inner := _file_of(tree, (*parts, name)):
        return frozenset(inner)
    found = _file_of(tree, parts)
    for file in tuple(found):
        if file.name != "__init__.py":
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):  # fmt: skip
                found |= _source_of(tree, _parts(file, node, tree), name)
            if isinstance(node, ast.Dict):  # names that are imported when they are used
                for key, value in zip(node.keys, node.values, strict=True):
                    if getattr(key, "value", None) == name and str(getattr(value, "value", "")).startswith(PACKAGE):  # fmt: skip
                        found |= _source_of(tree, tuple(value.value.partition(":")[0].split(".")), name)  # type: ignore[attr-defined]  # fmt: skip
    return frozenset(found)


# Running tests.


class Outcome(NamedTuple):
    """How a run of tests ended: passed, failed, endless, or nothing (no test was there)."""

    ending: str
    failed: tuple[str, ...]
    seconds: float


class Workshop:
    """A copy of the tree, in which mutants are made and tested."""

    def __init__(self, tree: Path, folder: Path, python: str, seconds_per_file: int) -> None:
        self.copy, self.python, self.seconds_per_file = folder / "tree", python, seconds_per_file
        shutil.copytree(tree, self.copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        # Python reads such a file only if the source has not changed, to the byte; without them each test run would
        # compile the whole package, and with usual ones it could take an old mutant for the new one.
        compileall.compile_dir(
            self.copy / PACKAGE, quiet=2,
            invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
        ) if sys.version_info[:2] == _version_of(python) else None  # fmt: skip
        self.tests = TestFiles(self.copy)
        self._fails_unchanged: dict[str, bool] = {}
        self._require_own_package()

    def verdict(self, drawn: Drawn, seconds: float) -> dict[str, Any]:
        """Make a mutant, run its tests, and put the tree back."""
        file = self.copy / PACKAGE / drawn.file
        source = file.read_bytes()
        changed = drawn.mutant.applied(source)
        ast.parse(changed)
        used, num_files = 0.0, 0
        result: dict[str, Any] = {"verdict": "survived", "by": []}
        try:
            for tier in self.tests.tiers(drawn.file):
                while tier and used < seconds and result["verdict"] == "survived":
                    limit = seconds - used
                    chosen, tier = self._affordable(tier, limit)
                    file.write_bytes(changed)
                    outcome = self._found(chosen, file, source, changed, limit)
                    used += outcome.seconds
                    num_files += len(chosen)
                    if outcome.ending in ("failed", "endless"):
                        result = {"verdict": "killed" if outcome.ending == "failed" else "endless", "by": list(outcome.failed)}  # fmt: skip
        finally:
            file.write_bytes(source)
        return result | {"test_files": num_files, "cpu_seconds": round(used, 1)}

    def _affordable(self, tier: list[str], seconds: float) -> tuple[list[str], list[str]]:
        """As many files as may run together within the time, at least one; and the rest."""
        count = max(1, min(8, int(seconds / self.seconds_per_file)))
        return tier[:count], tier[count:]

    def _found(self, files: list[str], file: Path, source: bytes, changed: bytes, limit: float) -> Outcome:  # fmt: skip
        """Run test files on the mutant; a failure that the unchanged tree has too is left out."""
        left_out: list[str] = []
        seconds = 0.0
        while True:
            outcome = self.run(files, left_out, limit)
            seconds += outcome.seconds
            if outcome.ending not in ("failed", "endless"):
                return outcome._replace(seconds=seconds)
            file.write_bytes(source)
            try:
                known = self._also_unchanged(outcome, files, limit)
            finally:
                file.write_bytes(changed)
            if not known:
                return outcome._replace(seconds=seconds)
            if outcome.ending == "endless":  # these files are slow in any tree
                return Outcome("passed", (), seconds)
            left_out += known

    def _also_unchanged(self, outcome: Outcome, files: list[str], limit: float) -> list[str]:
        if outcome.ending == "endless":
            return files if self.run(files, (), limit).ending == "endless" else []
        known = []
        for test in outcome.failed:
            if test not in self._fails_unchanged:
                self._fails_unchanged[test] = self.run([test], (), limit).ending in ("failed", "endless")  # fmt: skip
            if self._fails_unchanged[test]:
                known.append(test)
        return known

    def run(self, files: Iterable[str], left_out: Iterable[str], limit: float) -> Outcome:
        """Run test files in one process, until the first failure or the limit of processor time."""
        command = [self.python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "-rfE", "--tb=no", *files]  # fmt: skip
        for test in left_out:
            command += ["--deselect", test]
        environment = os.environ | {
            "OMP_NUM_THREADS": "1", "PYTHONPATH": str(self.copy), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300",
        }  # fmt: skip
        # Not less than the start of Python and PyTorch needs.
        seconds = max(20, int(min(limit, self.seconds_per_file * len(list(files)))))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(
                command, cwd=self.copy, env=environment, stdout=out, stderr=subprocess.STDOUT, text=True,
                stdin=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
            )  # fmt: skip
            try:
                code = process.wait(timeout=seconds * WALL_FACTOR)
            except subprocess.TimeoutExpired:
                code = -signal.SIGXCPU
            with_children_ended(process)
            out.seek(0)
            text = out.read()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        failed = tuple(re.findall(r"^(?:FAILED|ERROR) (\S+(?: .*?\])?)(?= - |$)", text, flags=re.MULTILINE))  # fmt: skip
        return Outcome(ending_of(code), failed or (() if code in (0, 5) else (f"exit code {code}",)), used)  # fmt: skip

    def _require_own_package(self) -> None:
        code = f"import {PACKAGE}; print({PACKAGE}.__file__)"
        found = subprocess.run([self.python, "-c", code], cwd="/", env=os.environ | {"PYTHONPATH": str(self.copy)}, capture_output=True, text=True, check=True)  # fmt: skip
        assert Path(found.stdout.strip()).is_relative_to(self.copy), found.stdout


def with_children_ended(process: subprocess.Popen[str]) -> None:
    """End what is left of a process and of those that it has started: they are a group of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ending_of(code: int) -> str:
    """What an exit code of pytest means; a signal other than that of the time limit is a crash."""
    if code in (0, 5):
        return "passed" if code == 0 else "nothing"
    return "endless" if code in (-signal.SIGXCPU, -signal.SIGKILL) else "failed"


def _version_of(python: str) -> tuple[int, int]:
    code = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    return int(major), int(minor)


# Reporting.


def report(results: list[dict[str, Any]]) -> list[str]:
    """Shares per room and per kind, and the survivors."""
    lines = []
    for what in ("room", "kind"):
        groups: dict[str, list[bool]] = defaultdict(list)
        for one in results:
            groups[one[what]].append(one["verdict"] != "survived")
        lines += [f"{what:20} mutants  found", *(_share(name, found) for name, found in sorted(groups.items())), ""]  # fmt: skip
    lines.append(_share("all", [one["verdict"] != "survived" for one in results]))
    survivors = [one for one in results if one["verdict"] == "survived"]
    lines += ["", f"survived: {len(survivors)}"]
    lines += [
        f"  {one['file']}:{one['line']} {one['function']}, {one['kind']}: {_short(one['before'])} -> {_short(one['after'])} ({one['test_files']} test files)"
        for one in survivors
    ]
    return lines


def _share(name: str, found: list[bool]) -> str:
    return f"{name:20} {len(found):7} {sum(found):6}" + (f" {100 * sum(found) / len(found):4.0f} %" if found else "")  # fmt: skip


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 70 else text[:67] + "..."


def read_results(file: Path | None) -> list[dict[str, Any]]:
    if file is None or not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def tree_of(python: str) -> Path:
    """The tree whose package this Python imports."""
    code = (
        f"import importlib.util as u; print(u.find_spec('{PACKAGE}').submodule_search_locations[0])"
    )
    found = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    return Path(found.stdout.strip()).resolve().parent


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="of the tree that is tested")
    parser.add_argument("--results", type=Path, help="a file of JSON lines, outside of the repository")  # fmt: skip
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="folders of the package")
    parser.add_argument("--leave-out", nargs="*", default=(), metavar="TEXT", help="files whose path contains this")  # fmt: skip
    parser.add_argument("--mutants", type=int, default=NUM_MUTANTS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, help="stop after this many")
    parser.add_argument("--seconds", type=float, default=120, help="processor time for one mutant")
    parser.add_argument("--seconds-per-file", type=int, default=SECONDS_PER_FILE, help="processor time for one test file")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the mutants, test nothing")
    parser.add_argument("--report", action="store_true", help="print the shares so far")
    options = parser.parse_args()
    tree = tree_of(options.python)
    drawn = draw(tree / PACKAGE, options.rooms, options.mutants, options.seed)[: options.first]
    drawn = [one for one in drawn if not any(text in one.file for text in options.leave_out)]
    if options.list:
        for one in drawn:
            say(f"{one.file}:{one.mutant.line} {one.mutant.function}, {one.mutant.kind}: {_short(one.mutant.before)} -> {_short(one.mutant.after)}")  # fmt: skip
        return
    if options.results is None:
        parser.error("--results is missing")
    keys = {one.key for one in drawn}
    if not options.report:
        _test(drawn, tree, options)
    results = [one for one in read_results(options.results) if one["key"] in keys]
    say("\n".join(report(results)))


def _test(drawn: list[Drawn], tree: Path, options: argparse.Namespace) -> None:
    done = {one["key"] for one in read_results(options.results)}
    waiting = [one for one in drawn if one.key not in done]
    if not waiting:
        return
    with tempfile.TemporaryDirectory(prefix="tfm-mutants-") as name:
        workshop = Workshop(tree, Path(name), options.python, options.seconds_per_file)
        for one in waiting:
            started_at = time.monotonic()
            result = {
                "key": one.key, "room": one.room, "file": one.file, "line": one.mutant.line,
                "function": one.mutant.function, "kind": one.mutant.kind, "before": one.mutant.before, "after": one.mutant.after,
                **workshop.verdict(one, options.seconds),
                "seconds": round(time.monotonic() - started_at, 1),
            }  # fmt: skip
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, ensure_ascii=False) + "\n")
            say(f"{result['verdict']:9} {one.file}:{one.mutant.line} {one.mutant.kind} {', '.join(result['by'][:1])} ({result['cpu_seconds']} s)")  # fmt: skip


if __name__ == "__main__":
    main()
