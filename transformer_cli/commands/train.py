"""`tfm train`: trains a run from a config, or continues it where it stopped."""

import logging
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import ConfigOption, Overrides, set_option

logger = logging.getLogger(__name__)


def train_command(
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
) -> None:
    """Train a model, or continue its training. A run of the same name goes on where it stopped."""
    from transformer_cli.commands.progress_bar import progress_bars
    from transformer_cli.config import SequencesData, load_config
    from transformer_cli.config.schema import ENDS_AT_MAX_STEPS
    from transformer_cli.training.run import train

    settings = load_config(config, overrides or [])
    run = train(
        settings,
        callbacks=progress_bars(),
        from_scratch=from_scratch,
        accept_data_change=accept_data_change,
    )
    if run.was_finished:
        ends_there = settings.training.schedule in ENDS_AT_MAX_STEPS
        go_on = "To train longer, take another name" if ends_there else "To go on, raise it"
        logger.info(
            "runs/%s is finished: %d steps, %s. %s; to start again: --from-scratch",
            settings.name,
            run.step,
            ", ".join(run.limits_reached),
            go_on,
        )
        return
    if any(limit.startswith("training.max_minutes") for limit in run.limits_reached):
        logger.info("the run is not finished: the same command continues it, with a new time limit")
    source, options = run.example, ""
    if not isinstance(settings.data, SequencesData):
        source, directions = "a sentence", settings.data.directions
        options = f" --to {directions[0].target}" if len(directions) > 1 else ""
        if len({one.source for one in directions if one.target == directions[0].target}) > 1:
            options += f" --from {directions[0].source}"
    logger.info(
        "next: tfm translate --run %s%s '%s', or tfm validate --run %s",
        settings.name,
        options,
        source,
        settings.name,
    )
