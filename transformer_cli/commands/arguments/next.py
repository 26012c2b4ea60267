"""The arguments and options of `tfm next`. As in `cli.py`, the command is imported only when it runs."""

from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    ToOption,
    set_option,
)


def show_next(
    source: Annotated[str, typer.Argument(help="The source sentence.")],
    prefix: Annotated[str, typer.Option("--prefix", help="The beginning of its translation.")] = "",
    top: Annotated[
        int, typer.Option("--top", min=1, max=1000, help="How many tokens to show.")
    ] = 10,
    run: RunOption = None,
    overrides: Annotated[
        Overrides, set_option("runtime.device=cpu", completion.settings_of_the_machine)
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the probabilities of the next token. Greedy search takes the largest."""
    from transformer_cli.commands.next import show_next as show
    from transformer_cli.decoding.loading import load_run
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    translator = load_run(run, overrides or [], command="next").translator.towards(to, from_)
    show(translator, source, prefix=prefix, top=top, as_json=as_json)
