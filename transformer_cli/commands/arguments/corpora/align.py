"""The options of `tfm align`. As in `cli.py`, the command is imported only when it runs."""

from typing import Annotated

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    SourceFileOption,
    TargetFileOption,
    ToOption,
    set_option,
)


def align(
    source: SourceFileOption,
    target: TargetFileOption,
    run: RunOption = None,
    overrides: Annotated[
        Overrides, set_option("runtime.device=cpu", completion.settings_of_the_machine)
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print which words of given pairs belong together. For each pair a line such as 0-0 1-2."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.commands.align import run_alignment

    run_alignment(
        source, target, run=run, overrides=overrides or [], languages=(to, from_), as_json=as_json
    )
