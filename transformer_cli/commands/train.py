"""`tfm train`: trains a run from a config, or continues it where it stopped."""

import logging
from collections.abc import Sequence

from transformer_cli.commands.progress_bar import ProgressBar
from transformer_cli.config import SequencesData, load_config
from transformer_cli.config.training import ENDS_AT_MAX_STEPS
from transformer_cli.process.torchrun import read_launch
from transformer_cli.training.run import train

logger = logging.getLogger(__name__)


def run_training(
    config_path: str, overrides: Sequence[str], *, from_scratch: bool, accept_data_change: bool
) -> None:
    """Train with a progress bar, then say what can be done next."""
    config = load_config(config_path, overrides)
    run = train(
        config,
        callbacks=[ProgressBar()] if read_launch().rank == 0 else [],
        from_scratch=from_scratch,
        accept_data_change=accept_data_change,
    )
    if run.was_finished:
        ends_there = config.training.schedule in ENDS_AT_MAX_STEPS
        go_on = "To train longer, take another name" if ends_there else "To go on, raise it"
        logger.info(
            "runs/%s is finished: %d steps, %s. %s; to start again: --from-scratch",
            config.name, run.step, ", ".join(run.limits_reached), go_on,
        )  # fmt: skip
        return
    if any(limit.startswith("training.max_minutes") for limit in run.limits_reached):
        logger.info("the run is not finished: the same command continues it, with a new time limit")
    source = run.example if isinstance(config.data, SequencesData) else "a sentence"
    directions = config.data.directions
    options = f" --to {directions[0].target}" if len(directions) > 1 else ""
    if len({one.source for one in directions if one.target == directions[0].target}) > 1:
        options += f" --from {directions[0].source}"
    logger.info(
        "next: tfm translate --run %s%s '%s', or tfm validate --run %s",
        config.name, options, source, config.name,
    )  # fmt: skip
