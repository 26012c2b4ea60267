"""The command line `tfm`: which commands there are, and how a command ends after any error. The file of a command is imported only when it is used."""

import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, NoReturn, TextIO

import typer
from typer.main import get_command, get_group

from transformer_cli import __version__
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    CarefulCommand,
    CarefulGroup,
    SentenceCommand,
    unknown_command,
    with_debug,
)
from transformer_cli.process.errors import TfmError, is_out_of_memory
from transformer_cli.process.messages import escaped
from transformer_cli.process.torchrun import NUM_PROCESSES, require_single_process


class Entry(NamedTuple):
    """A command in the list of commands."""

    place: str
    """The function of the command, as `module:name`."""
    help: str
    """The first sentence of its docstring."""
    example: str
    """A command line for the end of its help."""
    takes_sentences: bool = False
    """Whether its arguments are sentences, which may begin with a dash."""
    commands: Mapping[str, "Entry"] = MappingProxyType({})
    """The commands below it, such as `check` of `tfm data`; its own function runs before them, or alone."""


COMMANDS = {
    "train": Entry(
        "transformer_cli.commands.train:train_command",
        "Train a model, or continue its training.",
        "tfm train --config en-it.yaml --set training.max_steps=500",
    ),
    "translate": Entry(
        "transformer_cli.commands.translate:translate_command",
        "Translate sentences or a document.",
        "cat in.txt | tfm translate > out.txt",
        takes_sentences=True,
    ),
    "validate": Entry(
        "transformer_cli.commands.validate:validate_command",
        "Score a run on held-out text.",
        "tfm validate --split test --json",
    ),
    "score": Entry(
        "transformer_cli.commands.score:score_command",
        "Score translations in a file against references.",
        "tfm score out.txt reference.txt",
    ),
    "calibrate": Entry(
        "transformer_cli.commands.calibrate:calibrate_command",
        "Find out which translations of a run can be trusted.",
        "tfm calibrate --run en-it --below 60 --share 0.05",
    ),
    "next": Entry(
        "transformer_cli.commands.next:next_command",
        "Show the probabilities of the next token.",
        """tfm next "Where is the station?" --prefix "Dov'è la" --top 5""",
        takes_sentences=True,
    ),
    "explain": Entry(
        "transformer_cli.extensions.lessons.commands.explain:explain_command",
        "Show how the model translates a sentence.",
        'tfm explain "The red cars are here." --html page.html',
        takes_sentences=True,
    ),
    "likelihood": Entry(
        "transformer_cli.commands.likelihood:likelihood_command",
        "Print how probable given translations are.",
        "tfm likelihood --run en-it --source in.en --target out.it",
    ),
    "info": Entry(
        "transformer_cli.commands.info:info_command",
        "Show a run or a config.",
        "tfm info --run en-it",
    ),
    "verify": Entry(
        "transformer_cli.commands.verify:verify_command",
        "Check that the files of a run or an export are complete and unchanged.",
        "tfm verify en-it, or: tfm verify en-it --public-key them.pem",
    ),
    "doctor": Entry(
        "transformer_cli.commands.doctor:doctor_command",
        "Show what this installation has and can use.",
        "tfm doctor",
    ),
    "init": Entry(
        "transformer_cli.commands.init:init_command",
        "Write a config for a corpus of your own.",
        "tfm init phrases.csv, or: tfm init train.en train.it",
    ),
    "average": Entry(
        "transformer_cli.commands.average:average_command",
        "Average the weights of several checkpoints of a run.",
        "tfm average --run en-it --last 5",
    ),
    "ablate": Entry(
        "transformer_cli.extensions.lessons.commands.ablate:ablate_command",
        "Train with and without a part of the model, and compare.",
        "tfm ablate no-causal-mask",
    ),
    "align": Entry(
        "transformer_cli.commands.align:align_command",
        "Print which words of given pairs belong together.",
        "tfm align --source in.en --target in.it",
    ),
    "student": Entry(
        "transformer_cli.commands.student:student_command",
        "Train a small model on the translations of another one, and measure both.",
        "tfm student --teacher en-it --config student-en-it.yaml",
    ),
    "shortlist": Entry(
        "transformer_cli.commands.shortlist:shortlist_command",
        "Learn which target tokens a sentence may need, for faster translation with decoding.shortlist.",
        "tfm shortlist --run en-it",
    ),
    "serve": Entry(
        "transformer_cli.extensions.serving.command:serve",
        "Serve translations over HTTP.",
        "tfm serve --run en-it --port 5000",
    ),
    "plot": Entry(
        "transformer_cli.extensions.lessons.commands.plot:plot_command",
        "Draw the training curves of runs.",
        "tfm plot en-it en-it-2 --output curves.png",
    ),
    "import": Entry(
        "transformer_cli.extensions.exchange.commands.import_model:import_model_command",
        "Make a run of a model of another program.",
        "tfm import opus-mt-en-fr --name en-fr",
    ),
    "export": Entry(
        "transformer_cli.extensions.exchange.commands.export:export_command",
        "Write a run in the format of another program.",
        "tfm export --run en-it --to ctranslate2 --output en-it.ct2",
    ),
    "card": Entry(
        "transformer_cli.extensions.exchange.commands.card:card_command",
        "Print the model card of a run.",
        "tfm card --run en-it --license cc-by-4.0",
    ),
    "push": Entry(
        "transformer_cli.extensions.exchange.commands.push:push_command",
        "Upload an exported folder to the Hugging Face hub.",
        "tfm push en-it.hf your-name/en-it",
    ),
    "benchmark": Entry(
        "transformer_cli.extensions.benchmark.command:benchmark",
        "Measure how fast this machine trains or translates.",
        "tfm benchmark --config en-it.yaml --set runtime.threads=1",
    ),
    "draw": Entry(
        "transformer_cli.extensions.lessons.commands.draw:draw_command",
        "Draw the model, its masks, schedules and batches.",
        "tfm draw architecture --output architecture.png",
    ),
    "exercises": Entry(
        "transformer_cli.extensions.lessons.commands.exercises:exercises_command",
        "Write exercises, or check them.",
        "tfm exercises my-exercises, then: tfm exercises --check my-exercises",
    ),
    "data": Entry(
        "transformer_cli.commands.data:data_command",
        "Preview a corpus, check it, clean it or get one.",
        "tfm data --config en-it.yaml --split test, or: tfm data check train.en train.it",
        commands={
            "check": Entry(
                "transformer_cli.extensions.corpora.commands.check:check_command",
                "Find what ruins a training in a corpus.",
                "tfm data check train.en train.it, or: tfm data check --config mine.yaml --json",
            ),
            "clean": Entry(
                "transformer_cli.extensions.corpora.commands.clean:clean_command",
                "Write a corpus without the pairs that harm a training.",
                "tfm data clean train.en train.it --output clean --set drop_near_duplicates=false",
            ),
            "import": Entry(
                "transformer_cli.extensions.corpora.commands.import_pairs:import_command",
                "Turn a translation memory or a table into text files.",
                "tfm data import memory.tmx --output corpus --source-language en --target-language it",
            ),
            "get": Entry(
                "transformer_cli.extensions.corpora.commands.get:get_command",
                "Fetch public corpora by name.",
                "tfm data get --list tatoeba --source-language en --target-language it",
            ),
            "back-translate": Entry(
                "transformer_cli.commands.back_translate:back_translate_command",
                "Make training pairs of text of the target language.",
                "tfm data back-translate --config mine.yaml --text mono.it",
            ),
            "diversify": Entry(
                "transformer_cli.commands.diversify:diversify_command",
                "Make training pairs of what several models of both directions write.",
                "tfm data diversify --config mine.yaml --models 3",
            ),
        },
    ),
    "runs": Entry(
        "transformer_cli.commands.runs:runs_command",
        "List, compare and prune the runs of a folder.",
        "tfm runs, or: tfm runs compare en-it en-it-2, or: tfm runs prune en-it --keep-last 1",
        commands={
            "compare": Entry(
                "transformer_cli.commands.runs:compare_command",
                "Show runs side by side.",
                "tfm runs compare en-it en-it-small --json",
            ),
            "prune": Entry(
                "transformer_cli.commands.runs:prune_command",
                "Delete checkpoints of runs, but never the best and the last one.",
                "tfm runs prune en-it --keep-best 1 --keep-last 1 --dry-run",
            ),
        },
    ),
}


class Commands(Mapping[str, Any]):
    """The commands of a table by name, as objects of Typer that parse their arguments; each is imported when it is asked for."""

    def __init__(self, table: Mapping[str, Entry] = COMMANDS) -> None:
        self.table = table
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            entry, app = self.table[name], typer.Typer(add_completion=False, rich_markup_mode=None)
            function, epilog = with_debug(resolve_name(entry.place)), f"Example: {entry.example}"
            if entry.commands:
                app.callback(cls=LazyGroup, invoke_without_command=True, epilog=epilog)(function)
                made: Any = get_group(app)
                made.name, made.commands = name, Commands(entry.commands)
            else:
                kind = SentenceCommand if entry.takes_sentences else CarefulCommand
                app.command(name=name, cls=kind, epilog=epilog)(function)
                made = get_command(app)
            self._made[name] = made
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


class LazyGroup(CarefulGroup):
    """All commands, or a command that has commands below it: its help lists them and imports none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = Commands()  # type: ignore[assignment]  # Typer asks for a mapping that it could change

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names, and the arguments behind it.

        Raises:
            UsageError: there is no such command.
        """
        if not ctx.resilient_parsing and args[0] not in self.commands:
            raise unknown_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands into the help."""
        table: Mapping[str, Entry] = self.commands.table  # type: ignore[attr-defined]
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in table.items()])


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train a neural machine translator from a parallel corpus, and translate with it.",
    epilog="Start with: tfm train --config en-it.yaml, then: tfm translate 'The red cars are in front of the station.'",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tfm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    if os.environ.get(NUM_PROCESSES):
        require_single_process(context.invoked_subcommand)


def main() -> None:
    """Run the command line of this process; `__main__` calls it, after it has taken over the signals."""
    if os.environ.get("_TFM_COMPLETE") == "complete_bash":
        completion.join_words_of_bash()
    with errors_as_exit_codes():
        app(prog_name="tfm")


# How a command ends after any error: with one message, one exit code, and no traceback.


_HINTS = {
    errno.ENOSPC: "make room, then try again",
    errno.EACCES: "name another file or folder, or ask for the permission to use this one",
    errno.EPERM: "name another file or folder, or ask for the permission to use this one",
    errno.EROFS: "nothing can be written on this disk; name another file or folder",
    errno.ENAMETOOLONG: "give a shorter name; most systems allow 255 bytes",
    errno.ELOOP: "this link leads to itself; name the file that is meant",
    errno.EMFILE: "this process may not open more files; allow more with ulimit -n",
}

_NO_THREAD = (
    "no further thread can be started: memory, or the threads of this user, are used up\n"
    "  hint: end other programs, or allow more threads with ulimit -u"
)


@contextlib.contextmanager
def errors_as_exit_codes() -> Iterator[None]:
    """The block of the command line of this process: every error in it becomes one message and an exit code."""
    _prepare_streams()
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BaseException as error:  # a panic in Rust is a BaseException
        _exit_after(error)
        raise
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):  # standard error is closed, or its terminal is gone
            _send_nowhere(sys.stderr)


def _exit_after(error: BaseException) -> None:
    """Show the message of an error and exit with its code; return if the error is an exit itself."""
    if isinstance(error, TfmError):
        if getattr(error.__cause__, "errno", None) == errno.EMFILE:
            error.hint = _HINTS[errno.EMFILE]  # whatever was opened, this is the cause
        _exit_with_error(f"tfm: {error}", error.exit_code)
    if isinstance(
        error, BrokenPipeError | SystemExit
    ):  # typer turns a BrokenPipeError into a SystemExit
        if BrokenPipeError in (
            type(error),
            type(error.__context__),
        ):  # the reader has closed the pipe
            _end_like_cat()
        return
    if is_out_of_memory(error):
        if "thread" in str(error).casefold():
            _exit_with_error(f"tfm: {_NO_THREAD}", 75)
        _exit_with_error("tfm: out of memory\n  hint: lower the size of the batches", 75)
    if isinstance(error, OSError):
        is_full = error.errno == errno.ENOSPC
        if error.filename is None:
            _send_nowhere(sys.stdout)
        _exit_with_error(_message_of(error), 75 if is_full else 74)
    what = f"tfm: internal error, please report it: {type(error).__name__}: {error}"
    _exit_with_error(f"{what}\n  hint: --debug shows the traceback", 70)


def _message_of(error: OSError) -> str:
    if error.filename is None and error.errno == errno.EBADF:
        return (
            "tfm: standard output is closed, so the output is lost\n"
            "  hint: send it to a file or a program: > out.txt, or | less"
        )
    hint = _HINTS.get(error.errno or 0, "--debug shows the traceback")
    return f"tfm: {error.filename or 'standard output'}: {error.strerror or error}\n  hint: {hint}"


def _send_nowhere(stream: TextIO) -> None:
    """Send the buffer to the null device: Python would write it at exit, fail again, and exit with code 120."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end_like_cat() -> None:
    """End by SIGPIPE, which a shell shows as 141; a system without SIGPIPE gets 141 as exit code."""
    number = getattr(signal, "SIGPIPE", None)
    if number is None:
        os._exit(141)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _prepare_streams() -> None:
    """Set UTF-8 in any locale; reopen closed streams, so that no other file gets descriptor 0, 1 or 2.

    A command that needs neither standard input nor standard output works as usual. Standard output is
    reopened for reading only: so writing to it is an error, and no output is lost without a message.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_RDONLY if name == "stdout" else os.O_RDWR
            os.open(os.devnull, flags)  # gets the lowest free descriptor
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # On Windows, a line would end with a carriage return too.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _exit_with_error(message: str, exit_code: int) -> NoReturn:
    if "--debug" in sys.argv[1:]:
        traceback.print_exc()
    rank = os.environ.get("RANK", "0")  # set by torchrun
    if rank != "0":
        message = f"rank {rank}: {message}"
        if exit_code > 128:  # rank 0 logs that a signal has stopped the run
            sys.exit(exit_code)
    with contextlib.suppress(OSError):  # stderr may be closed
        typer.echo(escaped(message), err=True)
    sys.exit(exit_code)
