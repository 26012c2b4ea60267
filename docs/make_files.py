"""Prints docs/files.md, from the first line of each module's docstring.

python docs/make_files.py > docs/files.md
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import transformer_cli

PACKAGE = Path(transformer_cli.__file__).parent

HEAD = """\
# Files

<!-- Made by `python docs/make_files.py > docs/files.md`; edit the docstrings, not this file. -->

Every file of the package with the first sentence that it says about itself. The folders are in alphabetical order;
the [README](../README.md#the-code) lists them from top to bottom, and says in one line what each is for.
"""


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n".join(lines()))


def lines() -> Iterator[str]:
    """The lines of the page, the last one empty."""
    yield HEAD
    for folder in folders():
        yield f"## {folder.relative_to(PACKAGE.parent).as_posix()}/\n"
        yield f"{first_sentence(folder / '__init__.py')}\n"
        yield "| file | what is in it |"
        yield "|---|---|"
        for file in files_in(folder):
            sentence = first_sentence(file).replace("|", "\\|")
            yield f"| `{file.name}` | {sentence} |"
        yield ""


def folders() -> list[Path]:
    """The package and its folders; not what tools leave, nor where an installed package has its configs."""
    return sorted(path.parent for path in PACKAGE.rglob("__init__.py"))


def files_in(folder: Path) -> list[Path]:
    """Modules and tables; a folder's own __init__.py is what the folder's line is about."""
    files = (path for path in folder.iterdir() if path.suffix in (".py", ".tsv"))
    return sorted(path for path in files if path.name != "__init__.py")


def first_sentence(file: Path) -> str:
    """Of a module, the first line of its docstring; of a table, the first sentence of its head."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".tsv":
        sentence = re.split(r"(?<=\.)\s", text.removeprefix("#"), maxsplit=1)[0].strip()
    else:
        sentence = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    assert sentence.endswith("."), f"{file}: the first line is not one sentence: {sentence!r}"
    return sentence


if __name__ == "__main__":
    main()
