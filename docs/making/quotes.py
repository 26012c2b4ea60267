"""Quotations of the code: the real lines of a function, a method, a class or a variable."""

import ast
import shlex
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from making.blocks import ROOT, Block, MarkerError, cut

Definition = ast.FunctionDef | ast.ClassDef
OPTIONS = ("from", "to", "before")


def quoted(block: Block) -> str:
    """The content of a block whose marker is `code: FILE NAME ...`.

    Raises:
        MarkerError: there is no such file or name, or an option is wrong.
    """
    words = shlex.split(block.text)
    if len(words) < 2:
        raise MarkerError(f"{block.place}: a marker of code needs a file and a name")
    path, name, *rest = words
    options, has_docstring = _options(rest, block.place)
    file = ROOT / path
    if not file.is_file():
        raise MarkerError(f"{block.place}: {path} is not a file of the repository")
    lines = file.read_text(encoding="utf-8").splitlines()
    node = _defined(name.split("."), _tree(file).body)
    if node is None:
        raise MarkerError(f"{block.place}: {path} defines no {name}")
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
    numbers = range(first - 1, node.end_lineno or node.lineno)
    if not has_docstring:
        hidden = _lines_of_docstring(node)
        numbers = [number for number in numbers if number not in hidden]
    shown = textwrap.dedent("\n".join(lines[number] for number in numbers)).splitlines()
    shown = textwrap.dedent("\n".join(cut(shown, options, block.place, "# ..."))).splitlines()
    return "\n".join([f"# {path}: {name}", *shown]) + "\n"


def _options(words: Sequence[str], place: str) -> tuple[dict[str, str], bool]:
    options: dict[str, str] = {}
    has_docstring = True
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "without" and rest[:1] == ["docstring"]:
            has_docstring = False
            rest.pop(0)
        elif word in OPTIONS and rest:
            options[word] = rest.pop(0)
        else:
            raise MarkerError(
                f'{place}: {word!r} is no option; there are: without docstring, from "...", to "...", before "..."'
            )
    return options, has_docstring


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _defined(parts: Sequence[str], body: Sequence[ast.stmt]) -> ast.stmt | None:
    """The statement that defines a dotted name."""
    for node in body:
        if isinstance(node, Definition) and node.name == parts[0]:
            return node if len(parts) == 1 else _defined(parts[1:], node.body)
        if len(parts) == 1 and parts[0] in _assigned(node):
            return node
    return None


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _lines_of_docstring(node: ast.stmt) -> range:
    """The numbers, from 0, of the lines of a docstring and of the blank lines after it."""
    body = getattr(node, "body", [])
    if not body or not isinstance(body[0], ast.Expr) or not isinstance(body[0].value, ast.Constant):
        return range(0)
    end = body[0].end_lineno or body[0].lineno
    return range(body[0].lineno - 1, body[1].lineno - 1 if len(body) > 1 else end)
