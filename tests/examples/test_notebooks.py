"""The notebooks: they are small, were executed, and give the outputs that they show."""

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

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
