"""The arguments and options of `tfm train`. As in `cli.py`, the command is imported only when it runs."""

from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    ConfigOption,
    DebugOption,
    Overrides,
    set_option,
)


def train(
    config: ConfigOption,
    overrides: Annotated[
        Overrides, set_option("training.max_steps=100", completion.settings)
    ] = None,
    from_scratch: Annotated[
        bool,
        typer.Option(
            "--from-scratch", help="Start a new run; rename the checkpoints of an earlier one."
        ),
    ] = False,
    accept_data_change: Annotated[
        bool, typer.Option("--accept-data-change", help="Continue a run whose corpus has changed.")
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Train a model, or continue its training. A run of the same name goes on where it stopped."""
    from transformer_cli.commands.train import run_training
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    run_training(
        config, overrides or [], from_scratch=from_scratch, accept_data_change=accept_data_change
    )
