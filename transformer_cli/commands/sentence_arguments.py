"""Commands whose arguments are sentences; a sentence may begin with a dash."""

import itertools
import re
from typing import Any

from typer.core import TyperCommand

from transformer_cli.errors import UsageError

# Arguments that look like sentences: a dash before a digit or a sign, or a dash before several words. An option
# with its value, such as --set="a b", does not match.
_SENTENCE = re.compile(r"-[^A-Za-z-].*|-(?!-[A-Za-z-]+=)\S*\s.*", re.DOTALL)


class SentenceCommand(TyperCommand):
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
