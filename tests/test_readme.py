"""The README: its commands parse, its test command is the one that CI runs, its tree is complete."""

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import transformer_cli
from transformer_cli.cli import app
from transformer_cli.config import load_config, shipped_configs

PACKAGE = Path(transformer_cli.__file__).parent
ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
OPERATORS = {"&&", "||", "|", ";", ">", ">>", "<", "&", "2>"}
TREE_LINE = re.compile(r"(?P<indent>(?:│   |    )*)(?:├── |└── )(?P<name>\S+)(?: +(?P<phrase>.+))?")
# Not part of the package: folders of tools, and the folder of configs in an installed package.
FOREIGN_FOLDERS = {"__pycache__", ".mypy_cache", ".ruff_cache", "configs"}
# Files that the documents tell the reader to write.
WRITTEN_BY_THE_READER = {"mine.yaml", "hotel.yaml", "FILE.yaml"}


def command_lines(document: Path) -> list[str]:
    """Lines of shell in a document: those of its code blocks, and code within sentences."""
    text = document.read_text(encoding="utf-8")
    lines = [
        line.strip()
        for _, language, block in FENCED.findall(text)
        if language in ("bash", "sh", "console")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    spans = SPAN.findall(FENCED.sub("", text))
    return lines + [span for span in spans if re.search(r"\btfm\b", span)]


def tfm_commands(line: str) -> Iterator[list[str]]:
    """The arguments of each call of tfm in a line of shell."""
    if not re.search(r"(^|[\s/|])tfm( |$)", line):
        return
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    command: list[str] = []
    for word in [*words, "&&"]:
        if word not in OPERATORS:
            command.append(word)
            continue
        if command and Path(command[0]).name == "tfm":
            yield command[1:]
        command = []


COMMANDS = [
    pytest.param(arguments, id=f"{document.name}: tfm {' '.join(arguments)}"[:100])
    for document in DOCUMENTS
    for line in command_lines(document)
    for arguments in tfm_commands(line)
    if arguments
]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_every_command_has_a_subcommand_and_options_that_exist(arguments: list[str]) -> None:
    group: Any = typer.main.get_command(app)
    name, *rest = arguments
    if name.startswith("-"):
        assert name in {option for option in (*group.params[0].opts, "--help", "-h")}
        return
    assert name in group.commands
    if rest and not {"--help", "-h"} & set(rest):
        # Parses and checks the arguments as a call does, and runs nothing.
        group.commands[name].make_context(name, list(rest))


@pytest.mark.parametrize("arguments", COMMANDS)
def test_every_command_names_a_config_that_takes_its_overrides(arguments: list[str]) -> None:
    options = list(itertools.pairwise(arguments))
    overrides = [value for option, value in options if option == "--set"]
    for config in [value for option, value in options if option in ("--config", "-c")]:
        assert config in {*shipped_configs(), *WRITTEN_BY_THE_READER}
        if config in shipped_configs():
            load_config(config, overrides)


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 20


def test_the_test_command_is_the_one_that_ci_runs() -> None:
    commands = [line for line in command_lines(ROOT / "README.md") if "-m pytest" in line]
    assert len(commands) == 1
    assert commands[0] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def tree() -> dict[str, str]:
    """Path -> description, for every line of the README's tree; folders end with a slash."""
    blocks = [text for _, _, text in FENCED.findall(README) if text.startswith("transformer_cli/")]
    assert len(blocks) == 1
    told: dict[str, str] = {}
    folders: list[str] = []
    for line in blocks[0].splitlines()[1:]:
        entry = TREE_LINE.fullmatch(line)
        assert entry is not None, line
        folders = folders[: len(entry["indent"]) // 4]
        told["".join(folders) + entry["name"]] = entry["phrase"] or ""
        if entry["name"].endswith("/"):
            folders.append(entry["name"])
    return told


def files_of_the_package() -> set[str]:
    """Modules and tables; the line of a folder in the tree describes its __init__.py."""
    files = set()
    for path in PACKAGE.rglob("*"):
        relative = path.relative_to(PACKAGE)
        is_own = not FOREIGN_FOLDERS & set(relative.parts) and path.suffix in (".py", ".tsv")
        if is_own and (path.name != "__init__.py" or path.parent == PACKAGE):
            files.add(relative.as_posix())
    return files


def test_the_tree_has_every_file_of_the_package_and_no_other() -> None:
    told = {path for path in tree() if not path.endswith("/")}
    assert files_of_the_package() - told == set()
    assert told - files_of_the_package() == set()


def test_the_tree_has_every_folder() -> None:
    folders = {f"{Path(path).parent.as_posix()}/" for path in files_of_the_package() if "/" in path}
    assert {path for path in tree() if path.endswith("/")} == folders


def test_every_line_of_the_tree_says_something() -> None:
    assert [path for path, phrase in tree().items() if not phrase] == []
