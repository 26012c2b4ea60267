"""Errors for a command or an option that does not exist: what its name means in other programs, or which name is spelled nearly so."""

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from transformer_cli.config import other_programs
from transformer_cli.config.loading import OVERRIDABLE, commands_that_take
from transformer_cli.config.refusal import setting_called, value_called
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import for_shell

_RESUMING = {"resume", "continue", "restore", "resume-from-checkpoint", "load", "checkpoint", "from-checkpoint"}
_PROGRAM_PREFIX = re.compile(r"(?:onmt|fairseq|sockeye|marian|joeynmt)-(?=.)")
_MANY_SENTENCES = 500
"""A batch of so many is probably counted in tokens."""


def similar(name: str, names: Iterable[str]) -> str:
    """The command, or option without dashes, that is spelled nearly so; empty if none is."""
    close = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=0.7)
    return close[0] if close else ""


def unknown_command(ctx: Any, name: str) -> UsageError:
    """The error for a command that does not exist.

    Args:
        ctx: of the group of commands.
        name: what was typed.
    """
    commands, meant = ctx.command.commands, ""
    if ctx.parent is None:
        whole = name.lower().replace("_", "-")
        plain = _PROGRAM_PREFIX.sub("", whole)
        if instead := other_programs.command_instead(whole, plain):
            return UsageError(f"{name}: there is no such command of {ctx.command_path}", hint=f"here: {instead}")
        meant = plain if plain in commands else next(iter(other_programs.meant_by(plain, other_programs.COMMANDS)), "")
    meant = meant or similar(name, commands)
    hint = f"did you mean {ctx.command_path} {meant}?" if meant else f"{ctx.command_path} --help lists the commands"
    return UsageError(f"{name}: there is no such command of {ctx.command_path}", hint=hint)


def require_short_option(command: Any, ctx: Any, args: Sequence[str], option: str) -> None:
    """Refuse a name behind a single dash, as in `-src`, unless it is a short option with its value, as in `-cmine`.

    Raises:
        UsageError: no option is so short, or the name is that of a long option, here or in another program.
    """
    known = _known(command, ctx)
    name = option.removeprefix("-").lower()
    plain, value = name.replace("_", "-"), _value_behind(args, option)
    if option[:2] not in known or (
        other_programs.options_meant_by(plain, value, known)
        or other_programs.option_instead(ctx.info_name, plain, value)
        or setting_called(name) is not None
    ):
        raise unknown_option(command, ctx, args, option, sorted(one for one in known if one.startswith("--")))


def unknown_option(command: Any, ctx: Any, args: Sequence[str], option: str, near: Iterable[str] | None) -> UsageError:
    """The error for an option that the command does not have, and what its name means in other programs.

    Args:
        option: as it was typed, with its dashes.
        near: the options that may have been meant, if its name means nothing.
    """
    name = option.lstrip("-").lower()
    known, plain, value = _known(command, ctx), name.replace("_", "-"), _value_behind(args, option)
    meant = other_programs.options_meant_by(plain, value, known)
    arguments = [one.name for one in command.get_params(ctx) if one.param_type_name == "argument"]
    setting = setting_called(name)
    if setting is not None and not _takes(ctx.info_name, setting):
        here = other_programs.meant_by(setting.partition("=")[0], other_programs.WHEN_TRANSLATING)
        setting = next((one for one in here if _takes(ctx.info_name, one)), setting)
    if ctx.info_name == "train" and plain in _RESUMING:
        hint = f"the same command continues the run where it stopped: leave out {option}"
    elif instead := other_programs.option_instead(ctx.info_name, plain, value):
        hint = instead.replace("OPTION", option).replace("VALUE", for_shell(value or "VALUE"))
    elif named := next((one for one in args if one in getattr(command, "commands", {})), ""):
        hint = f"options stand behind the command: {ctx.command_path} {named} {option}"
    elif meant:
        hint = f"did you mean {' or '.join(meant)}?"
    elif set(arguments).intersection(other_programs.meant_by(plain, other_programs.ARGUMENTS)):
        hint = f"leave out {option}: {ctx.command_path} {' '.join(arguments).upper()}"
    elif setting is not None and "--set" in known and _takes(ctx.info_name, setting):
        setting, remark = _size_of_batches(args, plain, setting, value)
        hint = f"settings are given as {_as_settings(command, ctx, args, setting, value)}{remark}"
    elif setting is not None:
        name = setting.partition("=")[0]
        hint = f"{name} is a setting of a run, such as tfm train --config en-it.yaml --set {name}=VALUE"
    elif close := [one for one in near or () if one[2:].startswith(name) or similar(name, [one[2:]])]:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = f"{ctx.command_path} --help lists the options"
    return UsageError(f"{option}: there is no such option", hint=hint)


def _known(command: Any, ctx: Any) -> set[str]:
    """All spellings of the options of a command."""
    return {spelled for one in command.get_params(ctx) if one.param_type_name == "option" for spelled in one.opts}


def _as_settings(command: Any, ctx: Any, args: Sequence[str], setting: str, value: str | None) -> str:
    """The options --set in place of an unknown option, and --config where it is needed and missing."""
    # A flag elsewhere has its value in the table, and one that follows it means something else.
    given = None if "=" in setting else value
    name = setting
    if given is not None:
        setting = other_programs.OTHER_SETTING.get(f"{setting}={given}") or f"{setting}={_value(setting, given)}"
    needed = [one for each in sorted({name, setting}) for one in other_programs.meant_by(each, other_programs.NEEDED)]
    shown = [f"--set {for_shell(one)}" for one in (setting if "=" in setting else f"{setting}=VALUE", *needed)]
    options = [one for one in command.get_params(ctx) if "--config" in one.opts]
    if any(one.required and not {*one.opts} & {*args} for one in options):
        shown.insert(0, f"{ctx.command_path} --config en-it.yaml")
    return " ".join(shown)


def _value(setting: str, given: str) -> str:
    if setting in other_programs.LISTS:
        items = re.findall(r"[^\s,;:()\[\]]+", given)
        return f"[{','.join(items)}]"
    return value_called(setting, given)


def _size_of_batches(args: Sequence[str], plain: str, setting: str, value: str | None) -> tuple[str, str]:
    """The setting for the size of batches, which other programs count in sentences or tokens, and what to say about it; else the same setting."""
    if plain != "batch-size" or value is None:
        return setting, ""
    kinds = [_value_behind(args, one) for one in ("--batch-type", "--batch_type", "-batch_type")]
    section = setting.partition(".")[0]
    if any(one is not None and re.match(r"tok|word|max-word", one) for one in kinds):
        return f"{section}.batch_tokens", ""
    if section == "decoding":
        return setting, f", which counts the tokens of a batch, not its sentences: {value} cannot be taken over"
    is_large = value.isdecimal() and int(value) >= _MANY_SENTENCES
    return setting, f"; if {value} counts tokens: --set training.batch_tokens={value}" if is_large else ""


def _takes(command: str, setting: str) -> bool:
    """Whether a command takes this setting by its option --set."""
    if command == "clean":  # its --set is for its own rules
        return False
    overriding_commands = {one.split()[0] for commands in OVERRIDABLE.values() for one in commands}
    is_any = command not in overriding_commands or command == "benchmark"
    return is_any or command in commands_that_take(setting.partition("=")[0])


def _value_behind(args: Sequence[str], option: str) -> str | None:
    """The value that was given to an unknown option."""
    for argument, following in itertools.pairwise([*args, "-"]):
        if argument == option:
            return None if following.startswith("-") else following
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return None
