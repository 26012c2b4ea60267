"""The source of the package: who imports whom, what names mean nothing, what must never be executed, which files comments name, which
private parts of libraries are used, which patterns Python reads wrongly."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

import transformer_cli

PACKAGE = Path(transformer_cli.__file__).parent
ROOT = Path(__file__).parents[1]

FORBIDDEN_NAMES = {
    "utils",
    "helpers",
    "common",
    "constants",
    "base",
    "types",
    "builders",
    "registry",
}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@cache
def tree_of(path: Path) -> ast.Module:
    """A file in Python, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.process
def test_the_contracts_of_imports_hold() -> None:
    """The contracts stand in pyproject.toml: layers of the core, extensions outside of it."""
    linter = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
    ]
    finished = subprocess.run([*linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout


@pytest.mark.long
def test_only_the_server_imports_packages_of_an_extra_when_it_is_imported() -> None:
    """A command that needs no extra must run without it; tests have all extras, and would not see that one is missing."""
    needed = _with_what_they_need("transformer-cli")
    dists = packages_distributions()
    offenders = []
    for path in FILES:
        if path.is_relative_to(PACKAGE / "extensions" / "serving"):
            continue
        for node in tree_of(path).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                if top in sys.stdlib_module_names or top == "transformer_cli":
                    continue
                if not {_plain(dist) for dist in dists.get(top, ())} & needed:
                    offenders.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {name}")
    assert offenders == []


def _with_what_they_need(package: str) -> set[str]:
    """The distributions that are installed with a package, and those that they need, without extras."""
    found: set[str] = set()
    waiting = [package]
    while waiting:
        name = _plain(waiting.pop())
        if name in found:
            continue
        found.add(name)
        with suppress(PackageNotFoundError):
            waiting += [
                match.group()
                for one in requires(name) or []
                if "extra ==" not in one and (match := re.match(r"[\w.-]+", one))
            ]
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    ("files", "forbidden"),
    [
        ("sources/*.py", ("selection", "order", "encoded", "updates", "preparation")),
        ("selection.py", ("order", "encoded", "updates", "preparation")),
        ("order.py", ("sources", "selection", "encoded", "updates", "preparation")),
        ("updates.py", ("sources", "selection", "preparation")),
    ],
)
def test_the_files_of_data_import_in_one_direction(files: str, forbidden: tuple[str, ...]) -> None:
    prefixes = tuple(f"from transformer_cli.data.{name}" for name in forbidden)
    paths = sorted((PACKAGE / "data").glob(files))
    assert paths
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line.strip().startswith(prefixes)] == [], path.name


def test_no_file_has_a_name_without_a_meaning() -> None:
    names = {path: {part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts} for path in FILES}
    assert [path for path in FILES if FORBIDDEN_NAMES & names[path]] == []


NAME_OF_A_FILE = re.compile(r"(?<![\w./*{}-])(?:[\w-]+/)*[\w-]+\.(?:py|c|h)\b")


@pytest.mark.long
def test_every_file_that_a_comment_or_a_docstring_names_exists() -> None:
    sources = [*FILES, *PACKAGE.rglob("*.c"), *PACKAGE.rglob("*.h")]
    folders = PACKAGE, ROOT / "tests", ROOT / "docs", ROOT / "benchmarks"
    there = [f"/{path.as_posix()}" for folder in folders for path in folder.rglob("*.[pch]*")]
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sources
        for line, words in explanations_in(path)
        for name in NAME_OF_A_FILE.findall(words)
        if not any(one.endswith(f"/{name}") for one in there)
    ]
    assert offenders == []


def explanations_in(path: Path) -> Iterator[tuple[int, str]]:
    """(line, words) of each comment and docstring of a file in Python, and of all lines of one in C but its `#include <...>`."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        lines = enumerate(source.splitlines(), start=1)
        yield from ((number, line) for number, line in lines if not line.startswith("#include <"))
        return
    if any(NAME_OF_A_FILE.search(words) for words in re.findall("#.*", source)):  # to find comments exactly takes long
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)


# Functions that run code or trust bytes from other sources.
DANGEROUS_CALLS = {"eval", "exec", "compile", "__import__"}
DANGEROUS_ATTRIBUTES = {("yaml", "load"), ("torch", "load"), ("torch", "save"), ("os", "system")}
# The one place that reads files of `torch.save`: with weights_only=True, in a child process with a limit of its memory.
READER_OF_PICKLED_WEIGHTS = "extensions/exchange/pickled_weights.py"
# The one place that runs files of a user: a learner's own code, when the learner asks for a check (decision 0012).
RUNNER_OF_LEARNERS_CODE = "extensions/lessons/exercises/learner_code.py"
# The places that start a program: Node, with the engine that the user has installed, on files that tfm has just written; and
# tfm itself, to measure how long it takes to start.
STARTERS = {"extensions/exchange/browser.py", "commands/student_report.py"}
RUNNING_A_FILE = {"exec_module", "load_module", "run_path", "run_module", "runcode"}
UNPACKING = {"extractall", "unpack_archive"}
DANGEROUS_ARGUMENTS = {
    ("shell", True),
    ("weights_only", False),
    ("allow_pickle", True),
    ("trust_remote_code", True),
}
DANGEROUS_MODULES = {"pickle", "dill", "joblib", "shelve", "marshal", "subprocess", "runpy", "code"}


@pytest.mark.long
def test_the_public_name_of_a_class_or_function_stands_for_one() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        # A solution has the name that its exercise gives it.
        if "solutions" in path.parts:
            continue
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    public = {name: found for name, found in places.items() if not name.startswith("_") and name != "main"}
    assert {name: found for name, found in public.items() if len(found) > 1} == {}


def packed_arguments_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Calls that unpack a tuple of three or more by position, where the same function has packed it: a reader would have to count its fields."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nodes = list(ast.walk(function))
        packed = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 2
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in nodes:
            if isinstance(node, ast.Call):
                unpacked = [one.value for one in node.args if isinstance(one, ast.Starred)]
                if any(isinstance(one, ast.Name) and one.id in packed for one in unpacked):
                    yield node.lineno, ast.unparse(node)


@pytest.mark.long
def test_no_call_unpacks_a_tuple_that_its_function_has_packed() -> None:
    """Name the arguments, or hand them over as they are. Two, such as both sides of a pair, can be counted."""
    found = [f"{path.relative_to(PACKAGE)}:{place}" for path in FILES for place in packed_arguments_in(tree_of(path))]
    assert not found, found


def test_the_search_for_packed_arguments_finds_them_alone() -> None:
    source = """
def packed(x, y, z):
    all_three = x, y, z
    search(*all_three, beam=4)

def not_packed(rows, x, y, *others):
    sides = x, y
    search(*sides)
    pairs = [(row, 1) for row in rows]
    zip(*rows)
    search(*others)
    search(*pairs)
"""
    assert list(packed_arguments_in(ast.parse(source))) == [(4, "search(*all_three, beam=4)")]


@pytest.mark.long
def test_nothing_executes_what_it_reads() -> None:
    offenders = [
        f"{path.relative_to(PACKAGE)}:{line}: {what}"
        for path in FILES
        for line, what in dangers_in(path, path.relative_to(PACKAGE).as_posix())
    ]
    assert offenders == []


def dangers_in(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """(line, what stands there) for each import and call that could run code which the file has read."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            yield from (
                (node.lineno, f"import {module}")
                for module in modules
                if module.split(".")[0] in DANGEROUS_MODULES and not (module == "subprocess" and name in STARTERS)
            )
        elif isinstance(node, ast.Call) and is_dangerous(node, name):
            yield node.lineno, ast.unparse(node)


def is_dangerous(call: ast.Call, name: str) -> bool:
    """Whether the call in the file `name` runs code, or trusts bytes from other sources."""
    values = {(one.arg, one.value.value) for one in call.keywords if isinstance(one.value, ast.Constant)}
    if values & DANGEROUS_ARGUMENTS:
        return True
    if isinstance(call.func, ast.Name):
        return call.func.id in DANGEROUS_CALLS
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in RUNNING_A_FILE:
        return name != RUNNER_OF_LEARNERS_CODE
    called = ast.unparse(call.func.value), call.func.attr
    if called == ("torch", "load") and name == READER_OF_PICKLED_WEIGHTS:
        return not any(one.arg == "weights_only" for one in call.keywords)
    return call.func.attr in UNPACKING or called in DANGEROUS_ATTRIBUTES


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from subprocess import run",
        "eval(text)",
        "torch.load(path)",
        "yaml.load(file)",
        "archive.extractall()",
        "spec.loader.exec_module(module)",
        "f(weights_only=False)",
    ],
)
def test_the_search_for_dangers_finds_them(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(line, encoding="utf-8")
    assert list(dangers_in(path, "a.py"))


ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
# Nothing stands in a pattern for an empty group, but "()*+" does in lists of signs.
# In a file, also where a string goes on in the next line; only what has it is parsed.
MAYBE_POSSESSIVE_GROUP = re.compile(r"[)}][rf\"'\s]*(?:[*+?]|\{+\d*,?\d*\}+)\+")
POSSESSIVE_GROUP = re.compile(r"(?<!\()\)(?:[*+?]|\{\d*,?\d*\})\+")


def possessive_groups_in(source: str) -> Iterator[int]:
    """The line of each string that has a possessive quantifier over a group; a name in braces, `{name}`, counts as a group."""
    tree = ast.parse(source)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in joined for part in node.values}
    texts = [
        (node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "(x)" for part in node.values))
        for node in joined
    ]
    texts += [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    ]
    yield from (line for line, text in texts if POSSESSIVE_GROUP.search(ESCAPE_OR_CLASS.sub("x", text)))


def test_no_pattern_has_a_possessive_quantifier_over_a_group() -> None:
    """Write `(?>(?:ab)*)` in place of `(?:ab)*+`, and `(?>.*?(?=end|\\Z))`, which keeps nothing for each character, in place of
    `(?:(?!end).)*+` with a dot that is any character.

    Before Python 3.11.5 `(?:ab+)*+` matches the beginning of an `ab` that does not come (python/cpython#106052): on Debian 12,
    which has Python 3.11.2, texts were read wrongly, without a message. Python 3.11.7 still finds nothing with
    `(?:a+){2}+`, and raises SystemError for some patterns that capture something inside (python/cpython#101955). Atomic groups are
    right in both, and so is a possessive quantifier over one character or class, as in `\\w++`.
    """
    offenders = []
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        if MAYBE_POSSESSIVE_GROUP.search(source):
            offenders += [f"{path.relative_to(PACKAGE)}:{line}" for line in possessive_groups_in(source)]
    assert offenders == []


@pytest.mark.parametrize(
    "line",
    [
        'r"(?:ab)*+"',
        'r"(x|y)++"',
        'r"(?:a[)]b)?+"',
        'r"(?P<name>a){2}+"',
        'rf"(?:a){{2,3}}+{end}"',
        'rf"{group}*+"',
        'r"a(?:b"\nr"c)*+"',
    ],
)
def test_the_search_for_possessive_groups_finds_them(line: str) -> None:
    source = f"f({line})"
    assert MAYBE_POSSESSIVE_GROUP.search(source)
    assert list(possessive_groups_in(source)) == [1]


@pytest.mark.parametrize(
    "line",
    [
        r'r"\)*+"',
        'r"[)]*+"',
        'r"[^])]++"',
        r'r"\w++"',
        'r"(?>(?:ab)*)c++"',
        'r"(?:ab)*"',
        'rf"[{group}]*+"',
        '"()*+,;="',
    ],
)
def test_the_search_for_possessive_groups_finds_nothing_else(line: str) -> None:
    assert list(possessive_groups_in(f"f({line})")) == []


RECORD = ROOT / "docs/decisions/0020-private-parts-of-libraries.md"
DOCUMENTED = {"_replace", "_asdict", "_exit", "_current_frames"}  # of named tuples, os and sys


def is_private(name: str) -> bool:
    """Whether a name begins with an underscore and is no name of Python, such as __init__."""
    return name.startswith("_") and not name.endswith("__")


def own_private_names() -> set[str]:
    """The private names that the package itself defines."""
    own: set[str] = set()
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                own.add(node.id if isinstance(node, ast.Name) else node.attr)
            elif isinstance(node, ast.arg):
                own.add(node.arg)
    return own


def private_names_used(tree: ast.Module) -> set[str]:
    """The private names of attributes and imports, and those that stand as strings in `getattr` and `hasattr`."""
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr") and isinstance(node.args[1], ast.Constant):
                used.add(node.args[1].value)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            used |= {*(node.module or "").split("."), *(name.name for name in node.names)}
        elif isinstance(node, ast.Import):
            used |= {part for name in node.names for part in name.name.split(".")}
    return {name for name in used if is_private(name)}


def private_parts_used() -> set[tuple[str, str]]:
    """The file and the name of each private part of a library that the package uses."""
    own = own_private_names()
    return {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in FILES
        for name in private_names_used(tree_of(path)) - own - DOCUMENTED
    }


@pytest.mark.long
def test_the_record_names_each_private_part_that_the_package_uses_and_no_other() -> None:
    rows = re.findall(r"^\| (`[^|]*) \| (`[^|]*) \|", RECORD.read_text(encoding="utf-8"), re.M)
    used = private_parts_used()
    recorded: set[str] = set()
    for parts, places in rows:
        names = {part.rpartition(".")[2] for part in re.findall(r"`([^`]+)`", parts)}
        assert {file for file, name in used if name in names} == set(re.findall(r"`([^`]+)`", places)), parts
        recorded |= names
    assert recorded == {name for _, name in used}
