"""What all commands share: --debug and the log, options that several commands have, and the refusal of command lines that would be misread.

Misread would be an option that is given twice or is unknown, a missing name, and a sentence with a dash.
"""

import difflib
import functools
import inspect
import itertools
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from transformer_cli.commands import completion
from transformer_cli.process.errors import UsageError

# Arguments that look like sentences: a dash before a digit or a sign, or a dash before several words. An option
# with its value, such as --set="a b", does not match.
_SENTENCE = re.compile(r"-[^A-Za-z-].*|-(?!-[A-Za-z-]+=)\S*\s.*", re.DOTALL)


_RESUMING = {
    "resume",
    "continue",
    "restore",
    "resume-from-checkpoint",
    "load",
    "checkpoint",
    "from-checkpoint",
}
# Options of other programs, and those of tfm that mean the same.
_OPTIONS_ELSEWHERE = {
    "model": ("--run",), "checkpoint": ("--run",), "path": ("--run",), "src": ("--source",), "ref": ("--reference",),
    "references": ("--reference",), "tgt": ("--target", "--output"), "hyp": ("--against",), "in": ("--input",),
    "file": ("--input",), "i": ("--input",), "o": ("--output",), "out": ("--output",), "output-file": ("--output",),
    "input-file": ("--input",), "nbest": ("--n-best",), "n-best-list": ("--n-best",), "num-hypotheses": ("--n-best",),
    "beam": ("--beam-size",), "beams": ("--beam-size",), "num-beams": ("--beam-size",), "beam-width": ("--beam-size",),
    "source-lang": ("--from", "--source-language"), "src-lang": ("--from", "--source-language"),
    "target-lang": ("--to", "--target-language"), "tgt-lang": ("--to", "--target-language"),
    "from": ("--source-language",), "to": ("--target-language",), "languages": ("--source-language", "--target-language"),
    "lang": ("--to", "--target-language"), "metric": ("--scores",), "metrics": ("--scores",), "cfg": ("--config",), "yaml": ("--config",),
    "overwrite": ("--force", "--from-scratch"), "dry": ("--dry-run",), "verbose": ("--debug",), "v": ("--debug",),
}  # fmt: skip
_FILES = (
    "--input",
    "--output",
    "--source",
    "--reference",
    "--target",
    "--prefixes",
    "--dictionary",
    "--config",
)


_DEBUG = "debug"
DebugOption = Annotated[bool, typer.Option(f"--{_DEBUG}", help="Show the traceback of an error.")]


def with_debug(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a command with the option --debug after its own; only the class of the command reads the option."""
    signature = inspect.signature(function, eval_str=True)
    if _DEBUG in signature.parameters:
        return function

    @functools.wraps(function)
    def command(*arguments: Any, debug: bool = False, **options: Any) -> Any:
        return function(*arguments, **options)

    debug = inspect.Parameter(
        _DEBUG, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DebugOption
    )
    parameters = [*signature.parameters.values(), debug]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


class _Careful:
    """Before the class of Typer for a command or a group: refuses what the parser would pass over, and begins the log."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: an option is given twice, is unknown or has a wrong value, the name of a file is empty, or an
                option was left out.
        """
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
    if ctx.resilient_parsing or set(args) & {"-h", "--help"}:
        return
    try:
        values, others, order = command.make_parser(ctx).parse_args(list(args))
    except Exception as error:
        if hasattr(error, "possibilities"):  # only an unknown option has them
            raise _unknown_option(command, ctx, args, error) from error
        if incomplete := _incomplete(command, ctx, error):
            raise incomplete from error
        raise
    if values.get("beam_size") is not None:
        _check_overrides(values)
    for option in command.get_params(ctx):
        if option.param_type_name == "option" and not option.is_flag:
            _check_option(option, values.get(option.name), order.count(option))
    commands = getattr(command, "commands", {})
    if not (others and others[0] in commands):
        if others and (meant := _similar(others[0], commands)):
            raise unknown_command(ctx, others[0], meant)
        _check_others(command, values, others)


# What other programs call the commands of tfm.
_COMMANDS_ELSEWHERE = {
    "fit": "train", "finetune": "train", "fine-tune": "train", "resume": "train", "predict": "translate", "infer": "translate", "generate": "translate",
    "decode": "translate", "interactive": "translate", "test": "validate", "eval": "validate", "evaluate": "validate", "bleu": "score",
    "sacrebleu": "score", "preprocess": "data", "prepare": "data", "clean": "data clean", "check": "data check", "download": "data get",
    "convert": "export", "server": "serve", "list": "runs", "compare": "runs compare", "help": "--help", "version": "--version",
}  # fmt: skip


def _similar(name: str, commands: Iterable[str]) -> str:
    """The command that is spelled nearly so; empty if none is."""
    close = difflib.get_close_matches(name.lower(), list(commands), n=1, cutoff=0.7)
    return close[0] if close else ""


def unknown_command(ctx: Any, name: str, meant: str = "") -> UsageError:
    """The error for a command that does not exist.

    Args:
        ctx: of the group of commands.
        name: what was typed.
        meant: the command that was probably meant; empty: it is searched.
    """
    meant = meant or _similar(name, ctx.command.commands)
    if not meant and ctx.parent is None:
        meant = _COMMANDS_ELSEWHERE.get(name.lower(), "")
    hint = f"did you mean {ctx.command_path} {meant}?" if meant else f"{ctx.command_path} --help lists the commands"  # fmt: skip
    return UsageError(f"{name}: there is no such command of {ctx.command_path}", hint=hint)


def _unknown_option(command: Any, ctx: Any, args: list[str], error: Any) -> UsageError:
    """The error for an option that the command does not have, and what its name means in other programs."""
    from transformer_cli.config.refusal import setting_called

    option = str(error.option_name)
    name = option.lstrip("-").lower()
    known = {spelled for one in command.get_params(ctx) for spelled in one.opts}
    meant = [one for one in _OPTIONS_ELSEWHERE.get(name, ()) if one in known]
    setting = setting_called(name)
    if ctx.info_name == "train" and name.replace("_", "-") in _RESUMING:
        hint = f"the same command continues the run where it stopped: leave out {option}"
    elif named := next((one for one in args if one in getattr(command, "commands", {})), ""):
        hint = f"options stand behind the command: {ctx.command_path} {named} {option}"
    elif meant:
        hint = f"did you mean {' or '.join(meant)}?"
    elif setting is not None and "--set" in known and _takes(ctx.info_name, setting):
        given = _value_behind(args, option)
        setting = setting if given is None else f"{setting.partition('=')[0]}={given}"
        hint = f"settings are given as --set {setting if '=' in setting else f'{setting}=VALUE'}"
    elif setting is not None:
        name = setting.partition("=")[0]
        hint = f"{name} is a setting of a run, such as tfm train --config en-it.yaml --set {name}=VALUE"
    elif error.possibilities:
        hint = f"did you mean {' or '.join(error.possibilities)}?"
    else:
        hint = f"{ctx.command_path} --help lists the options"
    return UsageError(f"{option}: there is no such option", hint=hint)


def _takes(command: str, setting: str) -> bool:
    """Whether a command takes this setting by its option --set."""
    from transformer_cli.config.loading import OVERRIDABLE, commands_that_take

    if command == "clean":  # its --set is for its own rules
        return False
    of_trained = {one.split()[0] for commands in OVERRIDABLE.values() for one in commands}
    is_any = command not in of_trained or command == "benchmark"
    return is_any or command in commands_that_take(setting.partition("=")[0])


def _value_behind(args: list[str], option: str) -> str | None:
    """The value that was given to an unknown option."""
    for argument, following in itertools.pairwise([*args, "-"]):
        if argument == option:
            return None if following.startswith("-") else following
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return None


def _check_overrides(values: dict[str, Any]) -> None:
    """Refuse a beam size that is given in both ways: one would win silently. Of several --set, the last one counts."""
    settings = [override.partition("=")[0].strip() for override in values.get("overrides") or ()]
    if "decoding.beam_size" in settings:
        raise UsageError(
            "--beam-size and --set decoding.beam_size are the same setting",
            hint="leave one of them on the command line",
        )


def _check_others(command: Any, values: dict[str, Any], others: list[str]) -> None:
    """Say which option stands before an argument, if the command takes options only."""
    options = {option.name for option in command.params}
    if not others or any(option.param_type_name == "argument" for option in command.params):
        return
    is_config = PurePath(others[0]).suffix in (".yaml", ".yml") or "run" not in options
    name = "config" if is_config else "run"
    if name in options and name not in values:
        raise UsageError(
            f"{others[0]}: an argument, where an option is expected",
            hint=f"did you mean --{name} {others[0]}?",
        )


def _check_option(option: Any, value: Any, count: int) -> None:
    if count > 1 and not option.multiple:
        raise UsageError(
            f"{option.opts[0]}: given {count} times, but it takes one value",
            hint=f"leave one {option.opts[0]} on the command line",
        )
    if value == "" and option.opts[0] in _FILES:
        raise UsageError(f"{option.opts[0]}: the name of the file is empty", hint="give a file")
    if option.metavar == "FILE" and isinstance(value, str) and value.endswith(("/", os.sep)):
        raise UsageError(
            f"{option.opts[0]} {value}: a name that ends in {value[-1]} is a folder, and a file is expected",
            hint=f"give a file in it: {option.opts[0]} {value}NAME",
        )


class SentenceCommand(CarefulCommand):
    """A command that says how to give a sentence that begins with a dash."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: the command line is wrong, and an argument looks like a sentence.
        """
        given = list(itertools.takewhile(lambda argument: argument != "--", args))
        with_value = {
            name
            for option in self.get_params(ctx)
            if option.param_type_name == "option" and not getattr(option, "is_flag", False)
            for name in option.opts
        }
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
        hint=f"write -- before such sentences, behind all options: {ctx.command_path} -- '{sentence}'",
    )


# The options that several commands share.


ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        help="A YAML file, or the name of a shipped config such as en-it.yaml.",
        autocompletion=completion.configs,
    ),
]
OptionalConfigOption = Annotated[str | None, *ConfigOption.__metadata__]
Overrides = list[str] | None


def set_option(example: str, offered: Callable[[str], list[completion.Offer]]) -> Any:
    """The option --set: an example that works for the command, and the settings that a shell offers."""
    return typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help=f"Override a setting, such as {example}; may be repeated, and the last one for a setting counts.",
        autocompletion=offered,
    )


RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Name or folder of a run, or one of its checkpoints. Default: the newest run under runs/.",
        autocompletion=completion.runs,
    ),
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        help="Name or folder of a run, or one of its checkpoints; several are an ensemble. "
        "Default: the newest run under runs/.",
        autocompletion=completion.runs,
    ),
]
BeamOption = Annotated[
    int | None,
    typer.Option(
        "--beam-size",
        "-b",
        min=1,
        max=64,
        help="Hypotheses per sentence; 1 is greedy search. Short for --set decoding.beam_size=N.",
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="LANGUAGE", help="Translate into this language, if the model knows several."
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LANGUAGE",
        help="Language of the source, if the model translates from several.",
    ),
]
SignificanceOption = Annotated[
    Literal["bootstrap", "randomization"] | None,
    typer.Option(
        "--significance",
        help="The test behind the p-values of --against; bootstrap if absent.",
    ),
]
ScoresOption = Annotated[
    str | None,
    typer.Option(
        "--scores",
        metavar="NAMES",
        help="Which scores, such as bleu,chrf++. Default: all but bleu_lc_moses.",
        autocompletion=completion.scores,
    ),
]
CometScoreOption = Annotated[
    Path | None,
    typer.Option(
        "--comet",
        metavar="FOLDER",
        help="Also score with the COMET model in this folder. Needs unbabel-comet.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]


# Those of the commands whose models write training pairs: student, data back-translate, data diversify.


def text_option(what: str) -> Any:
    """The option --text: text without translations, and its language."""
    return typer.Option(
        "--text",
        metavar="FILE[=LICENCE]",
        help=f"{what}, a sentence a line, and its licence; may be repeated.",
    )


def folder_option(default: str) -> Any:
    """The option --folder: where the command keeps its files."""
    return typer.Option(
        "--folder",
        help=f"For all that the command makes: text, translations, the config. Default: {default}.",
    )


NBestOption = Annotated[
    int,
    typer.Option(
        "--n-best",
        metavar="N",
        min=1,
        max=64,
        help="Translations of each sentence among which the best is chosen; all are kept in the folder.",
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="RUN",
        help="A run of the opposite direction to the model that translates; the likelihood that it gives to a sentence chooses "
        "among the translations of the sentence that have no reference.",
        autocompletion=completion.runs,
    ),
]
DropOption = Annotated[
    float,
    typer.Option(
        "--drop",
        min=0.0,
        max=0.9,
        help="Leave out the worst pairs, so large a share of them: by chrF to the reference, or by the likelihood of --judge.",
    ),
]
TeacherOverrides = Annotated[
    list[str] | None,
    typer.Option(
        "--teacher-set",
        metavar="KEY=VALUE",
        help="A setting of the model that translates the corpus, such as decoding.beam_size=5; may be repeated.",
        autocompletion=completion.settings_of_translating,
    ),
]


def check_page_name(option: str, page: Path | None) -> None:
    """Refuse a name for an HTML page that says something else.

    Raises:
        UsageError: it ends in .pdf or another ending, or is - for standard output.
    """
    if page == Path("-"):
        raise UsageError(f"{option} -: this option takes a file", hint=f"{option} page.html")
    if page is not None and page.suffix.lower() not in ("", ".html", ".htm", ".xhtml"):
        raise UsageError(
            f"{option} {page}: the page is HTML, but this name ends in {page.suffix}",
            hint=f"{option} {str(page).removesuffix(page.suffix)}.html",
        )


# Those of the commands that read a corpus whose format is found out.


SourceFieldOption = Annotated[
    str | None,
    typer.Option("--source-field", help="Column of the source: a name, or a number from 0."),
]
TargetFieldOption = Annotated[
    str | None, typer.Option("--target-field", help="Column of the target.")
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the files, such as windows-1252 or utf-16. Default: UTF-8, or found out.",
    ),
]
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def require_run_name(name: str) -> None:
    """Refuse a value of --name that cannot be the name of a run.

    Raises:
        UsageError: it cannot.
    """
    if not _RUN_NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r} cannot be the name of a run",
            hint="letters, digits, '.', '_' and '-', of which a letter or a digit is the first; at most 100",
        )


SourceFileOption = Annotated[
    Path, typer.Option("--source", help="A text file, one sentence per line; - is standard input.")
]
TargetFileOption = Annotated[
    Path, typer.Option("--target", help="Its translations: line N belongs to line N of --source.")
]
