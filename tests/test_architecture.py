"""The layers of the package: a module imports only from lower layers."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import transformer_cli

PACKAGE = Path(transformer_cli.__file__).parent

HEIGHTS = {
    "errors": 0,
    "escaping": 0,
    "extras": 1,
    "kernels": 1,
    "phrasebook": 0,
    "signals": 0,
    "config": 1,
    "memory": 1,
    "torchrun": 1,
    "exits": 2,
    "messages": 2,
    "runtime": 2,
    "storage": 2,
    "text": 3,
    "model": 3,
    "data": 4,
    "checkpoint": 5,
    "corpora": 5,
    "interchange": 5,
    "decoding": 6,
    "inference": 7,
    "documents": 7,
    "evaluation": 7,
    "explaining": 7,
    "training": 8,
    "porting": 9,
    "ablations": 9,
    "serving": 9,
    "benchmark": 9,
    "drawing": 9,
    "exercises": 9,
    "console": 9,
    "commands": 10,
    "cli": 11,
    "__main__": 12,
}
# Parts of the same layer do not import each other.
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


MAX_FILES_IN_A_FOLDER = 16
MAX_FUNCTION_LINES = 60
MAX_FUNCTION_LINES_P95 = 30


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        parts |= {name.split(".")[1] for name in names if name.startswith("transformer_cli.")}
    return parts - {"__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_from_lower_layers_only(path: Path) -> None:
    part = part_of(path)
    for imported in imported_parts(path) - {part}:
        assert HEIGHTS[imported] < HEIGHTS[part], f"{part} imports {imported}"


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [("sources", ("selection", "batches")), ("selection", ("batches",)), ("batches", ("sources",))],
)
def test_the_rooms_of_data_import_in_one_direction(room: str, forbidden: tuple[str, ...]) -> None:
    prefixes = tuple(f"from transformer_cli.data.{name}" for name in forbidden)
    for path in (PACKAGE / "data" / room).glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line.strip().startswith(prefixes)] == [], path.name


def test_every_part_has_a_height() -> None:
    assert {part_of(path) for path in FILES} == set(HEIGHTS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_has_a_name_without_a_meaning(path: Path) -> None:
    assert not FORBIDDEN_NAMES & {part.removesuffix(".py") for part in path.parts}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_has_at_most_300_lines(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= 300


def functions_in(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def num_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_function_has_at_most_60_lines(path: Path) -> None:
    for function in functions_in(path):
        assert num_lines(function) <= MAX_FUNCTION_LINES, function.name


def test_95_of_100_functions_have_at_most_30_lines() -> None:
    lengths = sorted(num_lines(function) for path in FILES for function in functions_in(path))
    assert lengths[int(0.95 * len(lengths))] <= MAX_FUNCTION_LINES_P95


def test_no_two_files_have_the_same_name() -> None:
    names = Counter(
        path.name for path in FILES if path.name != "__init__.py" and part_of(path) != "commands"
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_folder_has_at_most_16_files_side_by_side() -> None:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.tsv")]
    folders = Counter(path.parent for path in files if path.name != "__init__.py")
    assert {folder.name for folder, count in folders.items() if count > MAX_FILES_IN_A_FOLDER} == set()  # fmt: skip


# Functions that run code or trust bytes from other sources.
DANGEROUS_CALLS = {"eval", "exec", "compile", "__import__"}
DANGEROUS_ATTRIBUTES = {("yaml", "load"), ("torch", "load"), ("torch", "save"), ("os", "system")}
# The one place that reads files of `torch.save`: with weights_only=True, in a child process with a limit of its memory.
READER_OF_PICKLED_WEIGHTS = "porting/importing/pickled_weights.py"
# The one place that runs files of a user: a learner's own code, when the learner asks for a check (decision 0012).
RUNNER_OF_LEARNERS_CODE = "exercises/learner_code.py"
RUNNING_A_FILE = {"exec_module", "load_module", "run_path", "run_module", "runcode"}
DANGEROUS_MODULES = {"pickle", "dill", "joblib", "shelve", "marshal", "subprocess", "runpy", "code"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_executes_what_it_reads(path: Path) -> None:
    is_reader = path.relative_to(PACKAGE).as_posix() == READER_OF_PICKLED_WEIGHTS
    is_runner = path.relative_to(PACKAGE).as_posix() == RUNNER_OF_LEARNERS_CODE
    allowed = {("torch", "load")} if is_reader else set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = (
                {alias.name for alias in node.names}
                if isinstance(node, ast.Import)
                else {node.module}
            )
            assert not {str(module).split(".")[0] for module in modules} & DANGEROUS_MODULES
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            assert node.func.id not in DANGEROUS_CALLS
        if isinstance(node.func, ast.Attribute):
            assert node.func.attr not in ("extractall", "unpack_archive")
            assert node.func.attr not in RUNNING_A_FILE or is_runner
            if isinstance(node.func.value, ast.Name):
                called = node.func.value.id, node.func.attr
                assert called not in DANGEROUS_ATTRIBUTES - allowed
                if called == ("torch", "load"):
                    assert any(one.arg == "weights_only" for one in node.keywords)
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            assert (keyword.arg, value) not in {
                ("shell", True), ("weights_only", False), ("allow_pickle", True), ("trust_remote_code", True)
            }  # fmt: skip
