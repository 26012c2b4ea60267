"""Command lines that would be misread: an option given twice, a missing name, a sentence with a dash."""

import itertools
import re
from pathlib import PurePath
from typing import Any

from typer.core import TyperCommand, TyperGroup

from transformer_cli.errors import UsageError

# Arguments that look like sentences: a dash before a digit or a sign, or a dash before several words. An option
# with its value, such as --set="a b", does not match.
_SENTENCE = re.compile(r"-[^A-Za-z-].*|-(?!-[A-Za-z-]+=)\S*\s.*", re.DOTALL)


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


class CarefulCommand(TyperCommand):
    """A command that refuses what the parser would pass over, and that names the option that was left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: an option is given twice or has a wrong value, the name of a file is empty, or an option was
                left out.
        """
        _check_arguments(self, ctx, args)
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option, problem = getattr(error, "param", None), getattr(error, "message", "")
            if option is None or not problem:  # no wrong value: an option is missing, or unknown
                raise
            raise _wrong_value(self, ctx, given, option, problem) from error


class CarefulGroup(TyperGroup):
    """As `CarefulCommand`, for a command that has subcommands and also works without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line up to the subcommand.

        Raises:
            UsageError: an option is given twice, the name of a file is empty, or an option was left out.
        """
        _check_arguments(self, ctx, args)
        return super().parse_args(ctx, args)


def _wrong_value(command: Any, ctx: Any, args: list[str], option: Any, problem: str) -> UsageError:
    values, *_ = command.make_parser(ctx).parse_args(args)
    name = max(option.opts, key=len)
    problem = problem.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    found = values.get(option.name)
    # A word that is not one of several is in the problem already.
    shown = "" if repr(found) in problem or not isinstance(found, str) else f", found {found!r}"
    return UsageError(
        f"{name}: {problem}{shown}",
        hint=f"{ctx.command_path} --help explains the options",
    )


def _check_arguments(command: Any, ctx: Any, args: list[str]) -> None:
    if ctx.resilient_parsing or set(args) & {"-h", "--help"}:
        return
    values, others, order = command.make_parser(ctx).parse_args(list(args))
    for option in command.get_params(ctx):
        if option.param_type_name == "option" and not option.is_flag:
            _check_option(option, values.get(option.name), order.count(option))
    if not (others and others[0] in getattr(command, "commands", {})):
        _check_others(command, values, others)


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


class SentenceCommand(CarefulCommand):
    """A command that says how to give a sentence that begins with a dash."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: the command line is wrong, and an argument looks like a sentence.
        """
        given = list(itertools.takewhile(lambda argument: argument != "--", args))
        sentences = [argument for argument in given if _SENTENCE.fullmatch(argument)]
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
