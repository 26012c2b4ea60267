"""The options of `tfm likelihood`. As in `cli.py`, the command is imported only when it runs."""

from typing import Annotated

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunsOption,
    SourceFileOption,
    TargetFileOption,
    ToOption,
    set_option,
)


def likelihood(
    source: SourceFileOption,
    target: TargetFileOption,
    run: RunsOption = None,
    overrides: Annotated[
        Overrides, set_option("runtime.device=cpu", completion.settings_of_likelihoods)
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print how probable given translations are. For each line: log-probability, tab, number of tokens."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.commands.likelihood import print_likelihoods

    print_likelihoods(
        run, (source, target), overrides=overrides or [], languages=(to, from_), as_json=as_json
    )
