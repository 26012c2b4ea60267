"""The exit codes and messages of `main` for every way in which a command can end."""

import errno
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

import pytest
import typer
import yaml
from typer.core import TyperArgument, TyperOption

import transformer_cli
from transformer_cli import cli
from transformer_cli.commands import completion, info, init, translate
from transformer_cli.config import load_config, to_yaml
from transformer_cli.process import errors
from transformer_cli.process.errors import (
    InterruptedBySignal,
    MissingInputError,
    StorageError,
    TfmError,
)

from .experiments import write_tiny
from .launcher import TfmHere

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, TfmError) and kind is not InterruptedBySignal
]


@pytest.fixture
def tfm(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command line in this process and returns its exit code."""

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["tfm", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return code

    return run


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `tfm info` end with this error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("transformer_cli.commands.info.find_run", fail)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_error_has_its_code_one_message_and_a_hint(
    tfm: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: type[TfmError],
) -> None:
    failing(monkeypatch, kind("a.tsv: no", hint="say yes"))
    assert tfm("info") == kind.exit_code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "tfm: a.tsv: no\n  hint: say yes\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(5, "Input/output error", "/mnt/a"), 74),
        (MemoryError(), 75),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 75),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory"), 75),
        (ValueError("no"), 70),
        (AssertionError("no"), 70),
        (KeyError("no"), 70),
    ],
)
def test_an_unexpected_error_has_a_code_and_a_hint_too(
    tfm: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
) -> None:
    failing(monkeypatch, error)
    assert tfm("info") == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tfm: ")
    assert captured.err.count("\n  hint: ") == 1
    assert "Traceback" not in captured.err


def _caused(error: TfmError, cause: OSError) -> TfmError:
    error.__cause__ = cause
    return error


_NO_PERMISSION = PermissionError(errno.EACCES, "Permission denied", "a")


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (RuntimeError("can't start new thread"), "allow more threads with ulimit -u"),
        (RuntimeError("ThreadPoolBuildError: no"), "allow more threads with ulimit -u"),
        (_caused(StorageError("a"), OSError(errno.EMFILE, "Too many open files")), "allow more with ulimit -n"),
        (_NO_PERMISSION, "ask for the permission"),
        (_caused(MissingInputError("a", hint="--input takes a text file"), _NO_PERMISSION), "ask for the permission"),
        (_caused(StorageError("a: cannot be read"), _NO_PERMISSION), "ask for the permission"),
        (_caused(StorageError("a", hint="all earlier files are intact"), _NO_PERMISSION), "earlier files are intact"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "a"), "give a shorter name"),
        (OSError(errno.EROFS, "Read-only file system", "a"), "nothing can be written on this disk"),
    ],
)
def test_the_hint_is_about_what_the_system_refuses_or_has_no_more_of(
    tfm: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    hint: str,
) -> None:
    failing(monkeypatch, error)
    busy = 75 if isinstance(error, RuntimeError) else 74  # "try again later", or an error of the system
    assert tfm("info") == getattr(error, "exit_code", busy)
    assert hint in capsys.readouterr().err


def test_debug_shows_where_it_happened(
    tfm: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, ValueError("two and two"))
    assert tfm("info", "--debug") == 70
    talk = capsys.readouterr().err
    assert "Traceback (most recent call last)" in talk
    assert "in fail" in talk
    assert talk.index("Traceback") < talk.index("tfm: internal error")


def test_the_version_is_that_of_the_package(tfm: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert tfm("--version") == 0
    assert capsys.readouterr().out == f"tfm {transformer_cli.__version__}\n"


def test_no_command_shows_the_help(tfm: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert tfm() == 2
    assert capsys.readouterr().err.startswith("Usage: tfm [OPTIONS] COMMAND")


def test_beam_size_is_short_for_a_setting(tfm: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    from transformer_cli.commands import translate_lines

    taken: list[object] = []
    monkeypatch.setattr(translate_lines, "translate_lines", lambda *given: taken.append(given[-1].overrides))
    assert tfm("translate", "a", "--set", "runtime.threads=1", "-b", "3") == 0
    assert tfm("translate", "a") == 0
    assert taken == [["runtime.threads=1", "decoding.beam_size=3"], []]


def test_output_is_utf_8_whatever_the_locale(
    tfm: Callable[..., int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def write(*_: object) -> NoReturn:
        sys.stdout.write("perché\n")
        raise typer.Exit

    monkeypatch.setattr("transformer_cli.commands.info.find_run", write)
    with (tmp_path / "out").open("w", encoding="ascii") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert tfm("info") == 0
    assert (tmp_path / "out").read_bytes() == "perché\n".encode()


# A command line for each command with --set; the override is the example of its own --help.
WITH_SETTINGS = {
    "train": (),
    "translate": ("1 2 3",),
    "validate": (),
    "next": ("1 2 3",),
    "likelihood": ("--source", "tiny.yaml", "--target", "tiny.yaml"),
    "info": ("--config", "tiny.yaml"),
    "data": ("--config", "tiny.yaml"),
    "draw": ("schedule", "--output", "schedule.png"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("command", WITH_SETTINGS)
def test_the_example_in_the_help_of_a_command_works_there(tfm_in: TfmHere, command: str) -> None:
    shown = " ".join(tfm_in(command, "--help").text.split())
    (example,) = re.findall(r"Override a setting, such as (\S+); may be repeated", shown)
    arguments = WITH_SETTINGS[command]
    if command == "train":  # its example is a limit, which a tiny training does not reach in a test
        arguments = ("--config", "tiny.yaml", "--set", "training.max_epochs=1", "--set", "name=x")
    finished = tfm_in(command, *arguments, "--set", example)
    assert finished.exit_code == 0, finished.talk


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("translate", completion.settings_of_translating),
        ("validate", completion.settings_of_validating),
        ("next", completion.settings_of_the_machine),
        ("likelihood", completion.settings_of_likelihoods),
    ],
)
def test_a_command_takes_the_settings_that_a_shell_offers_for_it(
    tfm_in: TfmHere, command: str, offered: Callable[[str], list[completion.Offer]]
) -> None:
    settings: Any = yaml.safe_load(to_yaml(load_config(tfm_in.folder / "tiny.yaml")))
    arguments = list(WITH_SETTINGS[command])
    for name in (offer.removesuffix("=") for offer, _ in offered("")):
        section, _, field = name.partition(".")
        value = settings[section].get(field)
        # The tiny run has no files. Sections of decoding that are absent by default exclude each other.
        if name != "data.root" and "." not in field:
            arguments += ["--set", f"{name}={json.dumps(value)}"]
    assert arguments.count("--set") >= 3
    finished = tfm_in(command, *arguments)
    assert finished.exit_code == 0, finished.talk


@pytest.mark.long
def test_the_help_of_next_speaks_of_tokens(tfm_in: TfmHere) -> None:
    shown = tfm_in("next", "--help").text
    assert "How many tokens to show." in shown
    assert "symbol" not in shown


@pytest.mark.long
def test_a_shell_can_be_set_up_to_complete(tfm_in: TfmHere) -> None:
    shown = tfm_in("--help").text
    assert "--install-completion" in shown
    assert "--show-completion" in shown


@pytest.fixture(scope="module")
def tfm_in(memory_folder: Path) -> TfmHere:
    """`tfm` in a folder with a trained run."""
    folder = memory_folder / "of-help"
    folder.mkdir()
    tfm = TfmHere(folder)
    assert tfm("train", "--config", write_tiny(folder)).exit_code == 0
    return tfm


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("translate --input a --input b", "--input: given 2 times"),
        ("translate --output a --output b --output c", "--output: given 3 times"),
        ("next --run a --run b x", "--run: given 2 times"),
        ("train -c a.yaml --config b.yaml", "--config: given 2 times"),
        ("validate --split test --split test", "--split: given 2 times"),
        ("next x --top 3 --top 4", "--top: given 2 times"),
        ("translate --input=", "--input: the name of the file is empty"),
        ("translate x --output=", "--output: the name of the file is empty"),
        ("validate --source= --reference=", "--source: the name of the file is empty"),
        ("train my.yaml", "did you mean --config my.yaml?"),
        ("data my", "did you mean --config my?"),
        ("info en-it", "did you mean --run en-it?"),
        ("info en-it.yaml", "did you mean --config en-it.yaml?"),
        ("validate en-it", "did you mean --run en-it?"),
        ("validate my.yaml", "my.yaml: a config, where a run is expected"),
        ("calibrate my.yml", "hint: --run NAME, with the name that the config gives to its run"),
    ],
)
def test_a_command_line_that_would_be_misread_is_refused(
    tfm: Callable[..., int], capsys: pytest.CaptureFixture[str], line: str, wanted: str
) -> None:
    assert tfm(*line.split()) == 2
    assert wanted in capsys.readouterr().err


def test_overrides_and_switches_may_be_repeated(tfm: Callable[..., int]) -> None:
    overrides = ("--set", "model.d_model=64", "--set", "model.d_ff=8")
    assert tfm("info", "--config", "en-it.yaml", *overrides, "--json", "--json") == 0


ALL_COMMANDS = {
    **cli.COMMANDS,
    **{f"{name} {below}": entry for name, group in cli.COMMANDS.items() for below, entry in group.commands.items()},
}


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_the_list_of_commands_says_of_each_the_first_sentence_of_its_help(name: str) -> None:
    first, *below = name.split()
    command = cli.Commands(cli.COMMANDS)[first]
    for one in below:
        command = command.commands[one]
    assert command.get_short_help_str(200) == ALL_COMMANDS[name].help
    assert command.epilog.startswith("Example: tfm" if name != "translate" else "Example: cat")


def test_no_converter_is_made_for_an_option_that_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(option: Any, ctx: Any, value: Any) -> Any:
        raise AssertionError(option.name)

    for kind in (TyperOption, TyperArgument):
        monkeypatch.setattr(kind, "process_value", convert)
    options = cli.Commands(cli.COMMANDS)["translate"].params
    assert {option.name: option.process_value(None, None) for option in options} == {
        option.name: () if option.multiple or option.nargs == -1 else None for option in options
    }
    with pytest.raises(AssertionError, match="beam_size"):
        next(option for option in options if option.name == "beam_size").process_value(None, "3")


WITH_EVERY_COMMAND = """\
import sys
from transformer_cli.cli import COMMANDS, Commands
heavy = {"torch", "numpy", "datasets", "pyarrow", "tqdm", "sacrebleu", "matplotlib", "starlette"}
for name, entry in COMMANDS.items():
    made = [Commands(COMMANDS)[name], *Commands(entry.commands).values()]
    if found := heavy & {*sys.modules}:
        sys.exit(f"{name}: {found}")
"""


@pytest.mark.process
def test_the_help_of_a_command_waits_for_no_heavy_module() -> None:
    command = [sys.executable, "-c", WITH_EVERY_COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "place",
    [
        info.EXPORT_OBSTACLES,
        init.SHEET_AS_TSV,
        *(
            f"{translate.DOCUMENTS}:{name}"
            for name in ("chosen_document", "check_output_of_text", "translate_document_file")
        ),
    ],
)
def test_what_the_core_names_of_an_extension_is_there(place: str) -> None:
    assert callable(resolve_name(place))


@pytest.mark.parametrize("arguments", [["--debug", "compare", "a"], ["compare", "a", "--debug"]])
def test_debug_may_stand_before_a_subcommand_and_after_it(tfm: Callable[..., int], arguments: list[str]) -> None:
    assert tfm("runs", *arguments) == MissingInputError.exit_code
    assert logging.getLogger("transformer_cli").level == logging.DEBUG
    assert tfm("runs", "compare", "a") == MissingInputError.exit_code
    assert logging.getLogger("transformer_cli").level == logging.INFO
