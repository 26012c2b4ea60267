"""Everything that changes the disk durably goes through one folder of the package."""

import ast
import re
from pathlib import Path

import pytest

import transformer_cli

PACKAGE = Path(transformer_cli.__file__).parent
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if "storage" not in path.parts]
# Functions that rename or create files; calls of them on a `FileSystem` are allowed.
CHANGES = {
    "rename",
    "renames",
    "unlink",
    "rmdir",
    "rmtree",
    "copyfile",
    "copytree",
    "hardlink_to",
    "symlink_to",
    "symlink",
    "mkdir",
    "makedirs",
    "write_text",
    "write_bytes",
    "truncate",
    "ftruncate",
}
# Words that mean something else elsewhere.
CHANGES_OF_OS = {"replace", "remove", "removedirs", "link", "move", "copy", "copy2"}
A_CHANGE = re.compile(rf"\.\s*(?:{'|'.join(CHANGES | CHANGES_OF_OS)})\b")
# They write in a folder that `staged_folder` makes appear as a whole, into a temporary folder, a temporary file or /proc,
# curves, which may be lost, or a download that is not whole yet.
STAGED = {
    "extensions/corpora/checks.py",
    "extensions/corpora/cleaning.py",
    "extensions/corpora/downloads.py",
    "extensions/corpora/fetching.py",
    "extensions/corpora/pair_facts.py",
    "commands/validate.py",
    "data/exported.py",
    "data/preparation.py",
    "data/selection.py",
    "data/sources/hub.py",
    "decoding/glossary_files.py",
    "data/pairs.py",
    "process/device.py",
    "extensions/lessons/exercises/learner_folder.py",
    "extensions/exchange/argos.py",
    "extensions/exchange/export.py",
    "extensions/exchange/export_format.py",
    "extensions/exchange/hugging_face.py",
    "extensions/exchange/marian.py",
    "extensions/exchange/onnx.py",
    "training/callbacks.py",
}


def durable_changes(text: str) -> list[str]:
    """Calls that change the disk without using the storage layer."""
    found: list[str] = []
    if not A_CHANGE.search(text):  # to parse takes long
        return found
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner, name = ast.unparse(node.func.value), node.func.attr
        is_file_system = owner.split(".")[-1] in ("fs", "_fs")
        is_change = name in CHANGES or (owner in ("os", "shutil") and name in CHANGES_OF_OS)
        if is_change and not is_file_system:
            found.append(f"{owner}.{name}")
    return found


@pytest.mark.long
def test_nothing_but_storage_changes_the_disk() -> None:
    changes = {
        path.relative_to(PACKAGE).as_posix(): durable_changes(path.read_text(encoding="utf-8")) for path in FILES
    }
    assert {name: found for name, found in changes.items() if found and name not in STAGED} == {}


@pytest.mark.parametrize("line", ["old.rename(new)", "os.replace(a, b)", "Path(x).write_text(y)", "shutil.rmtree(z)"])
def test_the_search_finds_what_it_looks_for(line: str) -> None:
    assert durable_changes(line)
    assert not durable_changes("fs.rename(a, b)\nself._fs.rename(a, b)\ntext.replace('a', 'b')")
