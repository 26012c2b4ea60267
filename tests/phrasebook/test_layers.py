"""The heights of the folders of the phrasebook: a module imports from its own or a lower one."""

import ast
from pathlib import Path

import pytest

import transformer_cli.phrasebook

PACKAGE = Path(transformer_cli.phrasebook.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
HEIGHTS = (
    "words",
    "grammar",
    "patterns.pattern",
    "patterns.simple_sentences",
    "patterns.complex_sentences",
    "patterns.situations",
    "patterns.all_patterns",
    "generation",
    "lookup",
)


def height(module: str) -> int:
    return next(index for index, part in enumerate(HEIGHTS) if f"{module}.".startswith(f"{part}."))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_of_the_phrasebook_imports_from_no_higher_folder(path: Path) -> None:
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("transformer_cli"):
            package = str(node.module).removeprefix("transformer_cli.phrasebook.")
            for alias in node.names:
                assert height(f"{package}.{alias.name}") <= height(module), f"{module}: {package}"
