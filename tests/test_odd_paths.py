"""Every command that takes a path gives an answer to the strangest ones, and writes nothing where nobody asked for it."""

import os
import re
import shutil
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from transformer_cli import cli

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("few_samples")]

RUN = str(Path(__file__).parents[1] / "docs" / "run")
# A fifo is not among them where it would be read: to wait for its writer is right.
ODD = [
    ".",
    "/",
    "./",
    "",
    "..",
    "../",
    "n" * 300,
    "\udcff",
    "folder",
    "folder/",
    "new/",
    "/dev/null",
    "-",
    "no/x",
    "a.en/x",
    "x\ny",
    "~",
    "~nobody/x",
    "/dev/fd/77",
    "nowhere",
    "loop",
    "zeros.csv",
    "folder/..",
]
# For lines that load a model.
FEW = [".", "", "n" * 300, "\udcff", "/dev/null", "~nobody/x", "loop"]
CONFIG = ["--config", "mine.yaml"]
TEXTS = ["--source", "a.en", "--reference", "a.it"]
# Each line is tried with the odd paths in the place of PATH.
LINES = [
    ["train", "--config", "PATH"],
    ["train", *CONFIG, "--set", "data.root=PATH/no"],
    ["train", *CONFIG, "--set", "data.corpora=[{path: 'PATH'}]"],
    ["train", *CONFIG, "--set", "name=PATH/"],
    ["info", "--run", "PATH"],
    ["info", "--config", "PATH"],
    ["init", "PATH/no.csv"],
    ["init", "PATH", "a.it"],
    ["init", "pairs.csv", "--output", "PATH"],
    ["average", "--run", "PATH"],
    ["average", "--run", RUN, "--last", "2", "--output", "PATH"],
    ["ablate", "no-positions", "--set", "training.max_steps=0", "--output", "PATH"],
    ["serve", "--run", "PATH"],
    ["serve", "--run", RUN, "--api-keys", "PATH/no"],
    ["plot", "PATH"],
    ["plot", RUN, "--output", "PATH"],
    ["import", "PATH", "--name", "new"],
    ["import", "folder", "--name", "PATH"],
    ["export", "--run", "PATH", "--to", "ctranslate2", "--output", "out"],
    ["export", "--run", RUN, "--to", "browser", "--output", "out", "--engine", "PATH"],
    ["export", "--run", RUN, "--to", "argos", "--license", "mit", "--output", "PATH"],
    ["export", "--run", RUN, "--to", "hf", "--output", "out", "--input", "PATH"],
    ["verify", "PATH"],
    ["verify", RUN, "--public-key", "PATH"],
    ["card", "--run", "PATH"],
    ["card", "--run", RUN, "--output", "PATH/no"],
    ["push", "PATH", "you/model", "--dry-run"],
    ["benchmark", "--config", "PATH"],
    ["benchmark", "--compare", "PATH", "a.en"],
    ["benchmark", "--compare", "a.en", "PATH"],
    ["draw", "masks", "training-step", "--output", "PATH.gif"],
    ["draw", "run-files", "--run", "PATH", "--output", "p.png"],
    ["exercises", "PATH"],
    ["exercises", "--check", "PATH"],
    ["data", "--config", "PATH"],
    ["data", "check", "PATH", "a.it"],
    ["data", "check", "--config", "PATH"],
    ["data", "clean", "PATH/no", "a.it", "--output", "out"],
    ["data", "clean", "pairs.csv", "--output", "PATH"],
    ["data", "import", "PATH/no", "--output", "out"],
    ["data", "import", "pairs.csv", "--output", "PATH"],
    ["data", "get", "no-such", "--catalogue", "PATH"],
    ["data", "get", "no-such", "--catalogue", "zeros.csv", "--output", "PATH"],
    ["data", "back-translate", *CONFIG, "--text", "a.it", "--run", RUN, "--folder", "PATH"],
    ["data", "diversify", *CONFIG, "--set", "data.corpora=[{path: 'no.csv'}]", "--folder", "PATH"],
    ["student", *CONFIG, "--translations", "PATH"],
    ["runs", "--folder", "PATH"],
    ["runs", "compare", "PATH", RUN],
    ["score", "PATH", "a.it"],
    ["score", "a.it", "PATH"],
    ["score", "a.it", "a.it", "--against", "PATH"],
    ["score", "a.it", "a.it", "--other-seed", "PATH"],
    ["score", "a.it", "a.it", "--source", "PATH", "--comet", "PATH"],
    ["next", "Hi", "--run", "PATH"],
    ["explain", "Hi", "--run", "PATH"],
    ["explain", "Hi", "--run", RUN, "--html", "PATH"],
    ["explain", "Hi", "--run", RUN, "--png", "PATH"],
    ["align", "--run", "PATH", "--source", "a.en", "--target", "a.it"],
    ["align", "--run", RUN, "--source", "PATH/no", "--target", "a.it"],
    ["align", "--run", RUN, "--source", "a.en", "--target", "PATH/no"],
    ["likelihood", "--run", RUN, "--source", "PATH/no", "--target", "a.it"],
    ["likelihood", "--run", RUN, "--source", "a.en", "--target", "PATH/no"],
    ["validate", "--run", "PATH"],
    ["validate", "--run", RUN, "--source", "PATH/no", "--reference", "a.it"],
    ["validate", "--run", RUN, "--source", "a.en", "--reference", "PATH/no"],
    ["validate", "--run", RUN, *TEXTS, "--report", "PATH"],
    ["validate", "--run", RUN, *TEXTS, "--write", "PATH"],
    ["validate", "--run", RUN, *TEXTS, "--comet", "PATH"],
    ["calibrate", "--run", RUN, "--source", "PATH/no", "--reference", "a.it"],
    ["calibrate", "--run", RUN, "--source", "a.en", "--reference", "PATH/no"],
    ["data", "--config", "mine.yaml", "--output", "PATH"],
    ["student", "--config", "mine.yaml", "--teacher", "no-such", "--folder", "PATH"],
    ["translate", "--run", "PATH", "Hi"],
    ["translate", "--run", RUN, "--input", "PATH"],
    ["translate", "--run", RUN, "--input", "a.html", "--output", "PATH"],
    ["translate", "--run", RUN, "--input", "a.en", "--output", "PATH", "--resume"],
    ["translate", "--run", RUN, "--prefixes", "PATH/no", "--input", "a.en"],
    ["translate", "--run", RUN, "--glossary", "PATH", "Hi"],
    ["translate", "--run", RUN, "--memory", "PATH", "Hi"],
    ["translate", "--run", RUN, "--dictionary", "PATH", "Hi"],
    ["translate", "--run", RUN, "--comet", "PATH", "Hi"],
]
LOADING = {
    "verify",
    "calibrate",
    "export",
    "explain",
    "align",
    "likelihood",
    "validate",
    "translate",
}
CONFIG_TEXT = """
name: mine
data:
  source: files
  source_language: en
  target_language: it
  corpora: [{path: pairs.csv}]
training: {max_steps: 1}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a few files; what a command writes above it would be seen."""
    folder = tmp_path / "above" / "here"
    (folder / "folder").mkdir(parents=True)
    monkeypatch.chdir(folder)
    Path("nowhere").symlink_to("missing")
    Path("loop").symlink_to("loop")
    Path("zeros.csv").write_bytes(bytes(10))
    Path("a.en").write_text("Hi\n", encoding="utf-8")
    Path("a.it").write_text("Ciao\n", encoding="utf-8")
    Path("a.html").write_text("<p>Hi</p>", encoding="utf-8")
    Path("pairs.csv").write_text("English,Italian\nThe red house,La casa rossa\n", encoding="utf-8")
    Path("mine.yaml").write_text(CONFIG_TEXT, encoding="utf-8")
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with open(os.devnull, encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield folder


def exit_code_of(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["tfm", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    code = ended.value.code or 0
    assert isinstance(code, int)
    return code


def outside(here: Path) -> set[str]:
    """The names in the folders around the current one, and in those that every system has."""
    folders = [here.parent, here.parent.parent, Path("/"), Path("/dev")]
    return {str(folder / name) for folder in folders for name in os.listdir(folder)}


@pytest.mark.heavy
@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_no_path_is_an_internal_error_and_nothing_appears_elsewhere(
    line: list[str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    before, wrong = outside(here), {}
    for odd in FEW if line[0] in LOADING else ODD:
        arguments = [argument.replace("PATH", odd) for argument in line]
        code = exit_code_of(arguments, monkeypatch)
        told = capfd.readouterr().err
        if code not in (0, 2, 65, 66, 73, 74, 75, 78) or "Traceback" in told:
            wrong[tuple(arguments)] = (code, told)
        shutil.rmtree(here / "new", ignore_errors=True)
    assert wrong == {}
    assert outside(here) == before


def path_parameters() -> Iterator[tuple[str, str]]:
    """Each command with its options (by name) and arguments (as PATH) whose values are paths."""
    groups: list[tuple[str, Any]] = [("", typer.main.get_command(cli.app))]
    while groups:
        prefix, group = groups.pop()
        for name, command in group.commands.items():
            full = f"{prefix}{name}"
            if hasattr(command, "commands"):
                groups.append((f"{full} ", command))
            hints = typing.get_type_hints(command.callback)
            for parameter in command.params:
                if "Path" in str(hints.get(parameter.name)):
                    is_option = parameter.param_type_name == "option"
                    yield full, parameter.opts[0] if is_option else "PATH"


def test_every_path_of_a_command_is_tried() -> None:
    tried = set()
    for line in LINES:
        num_words = (
            2 if line[0] in ("data", "runs") and re.fullmatch("[a-z-]+[a-z]", line[1]) and line[1][0] != "-" else 1
        )
        command = " ".join(line[:num_words])
        for index in range(num_words, len(line)):
            if "PATH" in line[index]:
                option = next((word for word in reversed(line[num_words:index]) if word[:2] == "--"), "")
                tried |= {(command, option), (command, "PATH")}
    assert set(path_parameters()) - tried == set()
