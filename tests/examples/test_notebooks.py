"""The notebooks: they are small, were executed, and give the outputs that they show."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

pytestmark = pytest.mark.pages

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
VARIES = "varies"
"""The tag of a cell whose output differs between machines: losses, pictures, translations of a short training."""


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    streams = [one for one in cell.outputs if one.output_type == "stream" and one.name == "stdout"]
    return "".join(one.text for one in streams)


def missing_imports(code: str) -> list[str]:
    """What the code imports from this package, and is not there."""
    missing = []
    for node in ast.walk(ast.parse(code)):
        modules: dict[str, list[str]] = {}
        if isinstance(node, ast.ImportFrom):
            modules = {str(node.module): [alias.name for alias in node.names]}
        elif isinstance(node, ast.Import):
            modules = {alias.name: [] for alias in node.names}
        for name, wanted in modules.items():
            if name.partition(".")[0] != "transformer_cli":
                continue
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError:
                missing.append(f"no module {name}")
                continue
            missing += [f"{name} has no {one}" for one in wanted if not is_in(module, one)]
    return missing


def is_in(module: ModuleType, name: str) -> bool:
    """Whether a module or package has a name, or a module of this name."""
    return hasattr(module, name) or importlib.util.find_spec(f"{module.__name__}.{name}") is not None


def test_the_page_of_examples_lists_each_notebook() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS if f"]({path.name})" not in page] == []
    assert len(NOTEBOOKS) == 3


@EACH
def test_a_notebook_is_valid_and_small(path: Path) -> None:
    nbformat.validate(read(path))
    assert path.stat().st_size < 300_000


@EACH
def test_a_notebook_was_executed_in_order_without_errors(path: Path) -> None:
    cells = code_cells(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [one for cell in cells for one in cell.outputs if one.output_type == "error"] == []


@EACH
def test_the_outputs_of_a_notebook_name_no_folder_of_a_machine(path: Path) -> None:
    outputs = [str(one) for cell in code_cells(read(path)) for one in cell.outputs]
    assert [one for one in outputs if re.search(r"/(home|root|work|tmp|Users)/", one)] == []


@EACH
def test_the_code_of_a_notebook_is_python_after_the_installing_cell(path: Path) -> None:
    first, *others = code_cells(read(path))
    assert "%pip install" in first.source
    for cell in others:
        ast.parse(cell.source)


@EACH
def test_every_name_that_a_notebook_imports_exists(path: Path) -> None:
    cells = code_cells(read(path))[1:]  # the first one installs
    assert [line for cell in cells for line in missing_imports(cell.source)] == []


@pytest.mark.parametrize("folder", ["benchmarks", "docs"])
def test_every_name_that_a_script_imports_exists(folder: str) -> None:
    scripts = sorted((EXAMPLES.parent / folder).rglob("*.py"))
    codes = {path: path.read_text(encoding="utf-8") for path in scripts}
    missing = {path: missing_imports(code) for path, code in codes.items()}
    assert {path: names for path, names in missing.items() if names} == {}


def test_the_search_for_missing_names_finds_a_name_that_moved() -> None:
    moved = "from transformer_cli.data.sources import read_pairs, corpus"
    assert missing_imports(moved) == ["transformer_cli.data.sources has no read_pairs"]
    assert missing_imports("import transformer_cli.nowhere") == ["no module transformer_cli.nowhere"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the packages that run notebooks
@EACH
def test_a_notebook_gives_the_outputs_that_it_shows(path: Path, tmp_path: Path) -> None:
    from nbclient import NotebookClient

    shown, notebook = read(path), read(path)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=1800, kernel_name="python3", resources=resources).execute()
    for before, now in zip(code_cells(shown), code_cells(notebook), strict=True):
        if VARIES not in before.metadata.get("tags", []):
            assert printed(now) == printed(before), before.source
