"""The README is short, its commands parse, its test command is the one that CI runs; the tree of CONTRIBUTING.md is complete."""

import itertools
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import transformer_cli
from transformer_cli.cli import app
from transformer_cli.config import load_config, shipped_configs
from transformer_cli.process.errors import TfmError

pytestmark = pytest.mark.pages

PACKAGE = Path(transformer_cli.__file__).parent
ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
OF_RUN = re.compile(r"runs/[\w.-]+/config\.yaml")
OPERATORS = {"&&", "||", "|", ";", ">", ">>", "<", "&", "2>"}
TREE_LINE = re.compile(r"(?:├── |└── )(?P<name>\S+)(?: +(?P<phrase>.+))?")
# What an earlier command of the page writes: a folder, named after a config.
OF_FOLDER = re.compile(r"[\w-]+-(?:back-translated|diversified|distilled)/config\.yaml")
# What readers are told to write for themselves.
WRITTEN_BY_THE_READER = {"mine.yaml", "hotel.yaml", "FILE.yaml", "phrases.yaml", "corrected.yaml"}
# A line that is no heading, with a time in its text and not only in the address of a link.
TIME_OF_A_TRAINING = re.compile(r"[^#].*?(?: minutes\b|分钟)")


def command_lines(document: Path) -> list[str]:
    """Lines of shell in a document: those of its code blocks, and code within sentences."""
    text = document.read_text(encoding="utf-8")
    lines = [
        line.strip()
        for _, language, block in FENCED.findall(text)
        if language in ("bash", "sh")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    # In a dialogue, a line that begins with a dollar sign is typed, and the others are printed.
    lines += re.findall(r"^\$ (tfm .+)$", text, re.MULTILINE)
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


COMMANDS = {
    f"{document.name}: tfm {' '.join(arguments)}": arguments
    for document in DOCUMENTS
    for line in command_lines(document)
    for arguments in tfm_commands(line)
    if arguments
}


def refusal_of_arguments(arguments: list[str]) -> str:
    """Why `tfm` does not take these arguments; it parses and checks them as a call does, and runs nothing."""
    group: Any = typer.main.get_command(app)
    name, *rest = arguments
    if name.startswith("-"):
        known = {"--help", "-h", *(option for one in group.params for option in one.opts)}
        return "" if name in known else f"no option {name}"
    if name not in group.commands:
        return f"no command {name}"
    if rest and not {"--help", "-h"} & set(rest):
        try:
            group.commands[name].make_context(name, list(rest))
        except Exception as error:
            return str(error)
    return ""


def refusal_of_config(arguments: list[str]) -> str:
    """Why a config that the arguments name does not exist, or does not take their overrides."""
    options = list(itertools.pairwise(arguments))
    overrides = [value for option, value in options if option == "--set"]
    for config in [value for option, value in options if option in ("--config", "-c")]:
        if config in shipped_configs():
            try:
                load_config(config, overrides)
            except TfmError as error:
                return str(error)
        elif config not in WRITTEN_BY_THE_READER and not (OF_RUN.fullmatch(config) or OF_FOLDER.fullmatch(config)):
            return f"no config {config}"
    return ""


@pytest.mark.parametrize("refusal", [refusal_of_arguments, refusal_of_config])
def test_every_command_of_a_page_works(refusal: Callable[[list[str]], str]) -> None:
    refused = {command: refusal(arguments) for command, arguments in COMMANDS.items()}
    assert {command: why for command, why in refused.items() if why} == {}


def test_every_picture_and_every_ablation_of_a_page_exists() -> None:
    from transformer_cli.extensions.lessons.ablations import ABLATIONS
    from transformer_cli.extensions.lessons.commands.draw import ALL, PICTURES

    names = {"draw": {ALL, *PICTURES}, "ablate": {"NAME", *(one.name for one in ABLATIONS)}}
    unknown = {
        command
        for command, (name, *rest) in COMMANDS.items()
        if name in names and rest and not rest[0].startswith("-") and rest[0] not in names[name]
    }
    assert unknown == set()


def test_a_command_that_does_not_exist_is_found() -> None:
    assert refusal_of_arguments(["trian"])
    assert refusal_of_arguments(["train", "--configuration", "x.yaml"])
    assert refusal_of_config(["train", "--config", "no-such.yaml"])
    assert refusal_of_config(["train", "--config", "en-it.yaml", "--set", "training.stepz=1"])


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 20


def test_the_test_command_is_the_one_that_ci_runs() -> None:
    commands = [line for line in command_lines(ROOT / "README.md") if "-m pytest" in line]
    assert len(commands) == 1
    assert commands[0] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_readme_is_a_door_and_no_manual() -> None:
    assert len(README.encode()) <= 12_000


@pytest.mark.parametrize("page", ["README.md", "docs/zh/README.md"])
def test_a_time_of_a_training_names_the_processor(page: str) -> None:
    """Processors with AVX2 alone need 1.5 to 2.5 times as long, so a bare figure misleads their owners."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    times = [line for line in lines if TIME_OF_A_TRAINING.match(line)]
    assert times
    assert [line for line in times if "Zen 4" not in line] == []


def test_the_commands_that_install_stand_in_the_chinese_readme_too() -> None:
    """One installs only; the others install, and then train and translate, or test."""
    ours = [line for line in command_lines(ROOT / "README.md") if line.startswith("python3 -m venv")]
    theirs = command_lines(ROOT / "docs" / "zh" / "README.md")
    assert len(ours) == 3
    assert [line for line in ours if line not in theirs] == []


def tree() -> dict[str, str]:
    """The entries of the tree in CONTRIBUTING.md, folders with a slash at the end, and what is said of each."""
    blocks = [text for _, _, text in FENCED.findall(CONTRIBUTING) if text.startswith("transformer_cli/")]
    assert len(blocks) == 1
    told: dict[str, str] = {}
    for line in blocks[0].splitlines()[1:]:
        entry = TREE_LINE.fullmatch(line)
        assert entry is not None, line
        told[entry["name"]] = entry["phrase"] or ""
    return told


def test_the_tree_has_every_folder_and_file_at_the_top_of_the_package_and_no_other() -> None:
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    files = {path.name for path in PACKAGE.glob("*.py")}
    assert tree().keys() == folders | files


def test_every_line_of_the_tree_says_something() -> None:
    assert [name for name, phrase in tree().items() if not phrase] == []


def test_the_tree_goes_from_top_to_bottom() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = settings["importlinter"]["contracts"][0]["layers"]
    in_order = [part for layer in layers for part in layer.split(" | ")]
    parts = [name.removesuffix("/").removesuffix(".py") for name in tree()]
    assert [part for part in parts if part in in_order] == in_order
