"""The command line `tfm`: which commands there are, --debug and the log, which command lines are refused, and how a command ends after any error. The file of a command is imported only when it is used."""

import contextlib
import errno
import functools
import inspect
import io
import itertools
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from transformer_cli import __version__
from transformer_cli.commands import completion
from transformer_cli.process.errors import (
    CannotCreateError,
    MissingInputError,
    StorageError,
    TfmError,
    UsageError,
    is_out_of_memory,
)
from transformer_cli.process.messages import escaped, for_shell
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
        """tfm next "Where is the station?" --prefix "Où" --top 5""",
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
        "Lessons: train small models with and without a part, on fixed tasks, and compare.",
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


# What all commands share: --debug and the log, and the refusal of command lines that would be misread: an option that is given twice or
# is unknown, a missing name, a sentence with a dash.


# Arguments that look like sentences: a dash before a digit or a sign, before several words, or before a word with the end of a
# sentence. An option with its value, such as --set="a b", does not match.
_SENTENCE = re.compile(r"-[^A-Za-z-].*|-(?!-[A-Za-z-]+=)\S*\s.*|-[A-Za-z]\S*[.!?]", re.DOTALL)


_FILES = ("--input", "--output", "--source", "--reference", "--target", "--prefixes", "--dictionary", "--config")


_DEBUG = "debug"
DebugOption = Annotated[bool, typer.Option(f"--{_DEBUG}", help="Show the traceback of an error.")]


class _Careful:
    """Before the class of Typer for a command or a group: refuses what the parser would pass over, and begins the log."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: an option is given twice, is unknown or has a wrong value, the name of a file is empty, or an
                option was left out.
        """
        if not (ctx.resilient_parsing or set(args) & {"-h", "--help"}):
            # What a shell has divided has no spaces, and stands beside another word that is no option.
            may_be_divided = any(
                " " not in one + other and "-" not in (one[:1], other[:1]) for one, other in itertools.pairwise(args)
            )
            if ctx.parent is not None and may_be_divided:
                from transformer_cli.commands.command_line import require_whole_words

                require_whole_words(ctx.command_path, args, has_sentences=isinstance(self, SentenceCommand))
            if any(map(_WITH_ONE_DASH.fullmatch, args)):
                _require_two_dashes(self, ctx, args)
            _check_arguments(self, ctx, args)
        given = list(args)
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]  # Typer's class has it
        except Exception as error:
            option, problem = getattr(error, "param", None), getattr(error, "message", "")
            if option is not None and problem:
                raise _wrong_value(self, ctx, given, option, problem) from error
            if incomplete := _incomplete(self, ctx, error):
                raise incomplete from error
            raise

    def invoke(self, ctx: Any) -> Any:
        """Send the log of this process to standard error, and run the function of the command.

        --debug may also stand before the name of a subcommand.
        """
        from transformer_cli.process.messages import talk_on_stderr

        debug, command = False, ctx
        while command is not None:
            debug, command = debug or bool(command.params.get(_DEBUG)), command.parent
        talk_on_stderr(debug=debug)
        return super().invoke(ctx)  # type: ignore[misc]  # Typer's class has it


class CarefulCommand(_Careful, TyperCommand):
    """A command that refuses what the parser would pass over, and that names the option that was left out."""


class CarefulGroup(_Careful, TyperGroup):
    """As `CarefulCommand`, for a command that has subcommands, and for the group of all commands."""


def _incomplete(command: Any, ctx: Any, error: Exception) -> UsageError | None:
    """The error for a command line in which a name or value is missing, or one stands too many; None for any other one."""
    problem = getattr(error, "format_message", lambda: "")().rstrip(".")
    is_group_alone = hasattr(command, "commands") and getattr(error, "option_name", None) is None
    if not problem or is_group_alone:  # a group alone shows its help
        return None
    where = ctx.command_path.partition(" ")[2] or ctx.command_path
    example = (command.epilog or "").partition("Example: ")[2]
    hint = f"such as {example}" if example else f"{ctx.command_path} --help lists the options"
    return UsageError(f"{where}: {problem[0].lower()}{problem[1:]}", hint=hint)


_LIMIT = re.compile(r"(?P<side>greater|less) than or equal to (?P<value>[\d.]+)")


def _wrong_value(command: Any, ctx: Any, args: list[str], option: Any, problem: str) -> UsageError:
    values, *_ = command.make_parser(ctx).parse_args(args)
    name = max(option.opts, key=len)
    problem = problem.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    found = values.get(option.name)
    # A word that is not one of several is in the problem already.
    shown = "" if repr(found) in problem or not isinstance(found, str) else f", found {found!r}"
    limit = _LIMIT.search(problem)
    if limit is None:
        hint = f"{ctx.command_path} --help explains the options"
    else:
        which = "least" if limit["side"] == "greater" else "greatest"
        hint = f"the {which} value is {limit['value']}: {name} {limit['value']}"
    return UsageError(f"{name}: {problem}{shown}", hint=hint)


def _check_arguments(command: Any, ctx: Any, args: list[str]) -> None:
    """Refuse what the parser would pass over, or take for something else than is meant."""
    try:
        values, others, order = command.make_parser(ctx).parse_args(list(args))
    except Exception as error:
        if refused := _no_such_option(command, ctx, args, error) or _incomplete(command, ctx, error):
            raise refused from error
        raise
    if values.get("beam_size") is not None:
        _check_overrides(values)
    for option in command.get_params(ctx):
        if option.name not in values or option.param_type_name != "option" or option.is_flag:
            continue
        name, value, count = option.opts[0], values[option.name], order.count(option)
        if count > 1 and not option.multiple:
            raise UsageError(
                f"{name}: given {count} times, but it takes one value",
                hint=f"leave one {name} on the command line",
            )
        if value == "" and name in _FILES:
            raise UsageError(f"{name}: the name of the file is empty", hint="give a file")
        if option.metavar == "FILE" and isinstance(value, str) and value.endswith(("/", os.sep)):
            raise UsageError(
                f"{name} {value}: a name that ends in {value[-1]} is a folder, and a file is expected",
                hint=f"give a file in it: {name} {for_shell(value + 'NAME')}",
            )
    if others and others[0] not in getattr(command, "commands", {}):
        _require_no_near_command(command, ctx, others[0])
        _check_others(ctx, values, others)


def _no_such_option(command: Any, ctx: Any, args: list[str], error: Any) -> UsageError | None:
    """The error for an option that the command does not have; None for any other one."""
    if not hasattr(error, "possibilities"):  # only an unknown option has them
        return None
    from transformer_cli.commands.unknown_names import unknown_option

    return unknown_option(command, ctx, args, error.option_name, error.possibilities)


def _require_no_near_command(command: Any, ctx: Any, name: str) -> None:
    """Refuse the misspelt name of a command below a command that also takes arguments or options."""
    if commands := getattr(command, "commands", {}):
        from transformer_cli.commands.unknown_names import similar, unknown_command

        if similar(name, commands):
            raise unknown_command(ctx, name)


# As `-src`, which some programs take for `--src`: the parser reads `-config` as -c and the value onfig.
_WITH_ONE_DASH = re.compile(r"-[A-Za-z][A-Za-z][\w-]*(?:=.*)?", re.DOTALL)


def _require_two_dashes(command: Any, ctx: Any, args: list[str]) -> None:
    with_value, is_group, before = _with_value(command, ctx), hasattr(command, "commands"), ""
    for argument in itertools.takewhile(lambda one: one != "--", args):
        if before not in with_value:
            if is_group and not argument.startswith("-"):
                return  # what follows is for the command below
            if _WITH_ONE_DASH.fullmatch(argument):
                from transformer_cli.commands.unknown_names import require_short_option

                require_short_option(command, ctx, args, argument.partition("=")[0])
        before = argument


def _with_value(command: Any, ctx: Any) -> set[str]:
    """The options of a command behind which a value stands."""
    return {
        name
        for option in command.get_params(ctx)
        if option.param_type_name == "option" and not getattr(option, "is_flag", False)
        for name in option.opts
    }


def _check_overrides(values: dict[str, Any]) -> None:
    """Refuse a beam size that is given in both ways: one would win silently. Of several --set, the last one counts."""
    settings = [override.partition("=")[0].strip() for override in values.get("overrides") or ()]
    if "decoding.beam_size" in settings:
        raise UsageError(
            "--beam-size and --set decoding.beam_size are the same setting",
            hint="leave one of them on the command line",
        )


def _check_others(ctx: Any, values: dict[str, Any], others: list[str]) -> None:
    """Say which option stands before an argument, if the command takes options only, or that a sentence is one argument."""
    options = {option.name for option in ctx.command.params}
    arguments = [option.name for option in ctx.command.params if option.param_type_name == "argument"]
    words = [*(str(values.get(name)) for name in arguments), *others]
    if isinstance(ctx.command, SentenceCommand) and not any(" " in word for word in words):
        raise UsageError(
            f"{ctx.command.name}: one sentence is expected, found {len(words)} words without quotation marks",
            hint=f"{ctx.command_path} {for_shell(' '.join(words))}",
        )
    if arguments:
        return
    is_config = PurePath(others[0]).suffix in (".yaml", ".yml") or "run" not in options
    name = "config" if is_config else "run"
    if is_config and "config" not in options and "run" in options:
        raise UsageError(
            f"{others[0]}: a config, where a run is expected",
            hint="--run NAME, with the name that the config gives to its run",
        )
    if name in options and name not in values:
        raise UsageError(
            f"{others[0]}: an argument, where an option is expected",
            hint=f"did you mean --{name} {for_shell(others[0])}?",
        )


class SentenceCommand(CarefulCommand):
    """A command that says how to give a sentence that begins with a dash."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: the command line is wrong, and an argument looks like a sentence.
        """
        given = list(itertools.takewhile(lambda argument: argument != "--", args))
        if not any(map(_SENTENCE.fullmatch, given)):
            return super().parse_args(ctx, args)
        with_value = _with_value(self, ctx)
        sentences = [
            argument
            for before, argument in itertools.pairwise(["", *given])
            if _SENTENCE.fullmatch(argument) and before not in with_value
        ]
        for argument, before in zip(given, ["", *given], strict=False):
            # The parser would read `-hello you` as -h and other options, and show the help.
            if argument in sentences and argument.startswith("-h") and not before.startswith("-"):
                raise _refusal(argument, ctx)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if sentences and getattr(error, "exit_code", None) == UsageError.exit_code:
                raise _refusal(sentences[0], ctx) from error
            raise


def _refusal(sentence: str, ctx: Any) -> UsageError:
    return UsageError(
        f"{sentence}: begins with a dash, so it is read as an option",
        hint=f"write -- before such sentences, behind all options: {ctx.command_path} -- {for_shell(sentence)}",
    )


@dataclass(frozen=True, eq=False)
class Commands(Mapping[str, Any]):
    """The commands of a table by name, as objects of Typer that parse their arguments; each is imported when it is asked for."""

    table: Mapping[str, Entry]
    _made: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __getitem__(self, name: str) -> Any:
        if name in self._made:
            return self._made[name]
        entry = self.table[name]
        function = resolve_name(entry.place)

        @functools.wraps(function)
        def command(*arguments: Any, debug: bool = False, **options: Any) -> Any:
            return function(*arguments, **options)

        # The option --debug stands behind those of the function; only the class of the command reads it.
        signature = inspect.signature(function, eval_str=True)
        debug = inspect.Parameter(_DEBUG, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DebugOption)
        parameters = [*signature.parameters.values(), debug]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        app, epilog = typer.Typer(add_completion=False, rich_markup_mode=None), f"Example: {entry.example}"
        if entry.commands:
            app.callback(cls=LazyGroup, invoke_without_command=True, epilog=epilog)(command)
            made: Any = get_group(app)
            made.name, made.commands = name, Commands(entry.commands)
        else:
            kind = SentenceCommand if entry.takes_sentences else CarefulCommand
            app.command(name=name, cls=kind, epilog=epilog)(command)
            made = get_command(app)
            for option in made.params:
                option.process_value = functools.partial(_value_of, option, option.process_value)
        self._made[name] = made
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


def _value_of(option: Any, convert: Callable[..., Any], ctx: Any, value: Any) -> Any:
    """The value of an option for the function of the command; `convert` is the way of Typer.

    Typer makes a converter with pydantic for each option, 20 ms for `tfm translate`, also for those that were not given.
    """
    if value is None and not option.required and option.callback is None:
        return () if option.multiple or option.nargs == -1 else None
    return convert(ctx, value)


class LazyGroup(CarefulGroup):
    """All commands, or a command that has commands below it: its help lists them and imports none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = Commands(COMMANDS)  # type: ignore[assignment]  # Typer asks for a mapping that it could change

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names, and the arguments behind it.

        Raises:
            UsageError: there is no such command.
        """
        if not ctx.resilient_parsing and args[0] not in self.commands:
            from transformer_cli.commands.unknown_names import unknown_command

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
    epilog='Start with: tfm train --config en-it.yaml, then: tfm translate "The red cars are in front of the station."',
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
    _prepare_streams()
    try:
        try:
            app(prog_name="tfm")
        finally:
            sys.stdout.flush()
    except SystemExit as error:  # Typer turns a BrokenPipeError into one
        if type(error.__context__) is BrokenPipeError:
            _end_like_cat()
        raise
    except BaseException as error:  # a panic in Rust is a BaseException
        _exit_after(error)
        raise
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):  # standard error is closed, or its terminal is gone
            _send_nowhere(sys.stderr)


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

_HOME_PATH = re.compile(r"(?:^|[\s/])(~[^\s/:]*/.+?)(?=: |$)", re.MULTILINE)
"""A path that begins in a home folder, in a message about a file that is not found."""

_NO_THREAD = (
    "no further thread can be started: memory, or the threads of this user, are used up\n"
    "  hint: end other programs, or allow more threads with ulimit -u"
)


def _exit_after(error: BaseException) -> None:
    """Show the message of an error and exit with its code; return if a closed pipe did not end the process."""
    if isinstance(error, TfmError):
        cause = getattr(error.__cause__, "errno", None)
        is_about_reading = isinstance(error, MissingInputError) or (isinstance(error, StorageError) and not error.hint)
        if cause == errno.EMFILE or (cause in _HINTS and is_about_reading):
            error.hint = _HINTS[cause]  # whatever was opened, this is the cause
        elif isinstance(error, MissingInputError | CannotCreateError) and (home := _HOME_PATH.search(error.message)):
            meant = for_shell(os.path.expanduser(home[1]))
            error.hint = f"a shell replaces ~ by the home folder only outside of quotation marks: write {meant}"
        _exit_with_error(f"tfm: {error}", error.exit_code)
    if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
        _end_like_cat()
        return
    if is_out_of_memory(error):
        if "thread" in str(error).casefold():
            _exit_with_error(f"tfm: {_NO_THREAD}", 75)
        _exit_with_error("tfm: out of memory\n  hint: close other programs, or lower the size of the batches", 75)
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
    """Set UTF-8 in any locale; give standard output a buffer; reopen closed streams, so that no other file gets descriptor 0, 1 or 2.

    A command that needs neither standard input nor standard output works as usual. Standard output is
    reopened for reading only: so writing to it is an error, and no output is lost without a message.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_RDONLY if name == "stdout" else os.O_RDWR
            os.open(os.devnull, flags)  # gets the lowest free descriptor
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # PYTHONUNBUFFERED=1: Python then calls the system once, and what a full disk has no room for is lost without an error.
        sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
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
