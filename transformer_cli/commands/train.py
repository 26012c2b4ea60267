"""`tfm train`: trains a run from a config, or continues it where it stopped."""

import logging
from collections.abc import Sequence

from transformer_cli.config import SequencesData, load_config
from transformer_cli.console import ProgressBar
from transformer_cli.training.run import train

logger = logging.getLogger(__name__)


def run_training(
    config_path: str, overrides: Sequence[str], *, from_scratch: bool, accept_data_change: bool
) -> None:
    """Train with a progress bar, then say what can be done next."""
    config = load_config(config_path, overrides)
    run = train(
        config,
        callbacks=[ProgressBar()],
        from_scratch=from_scratch,
        accept_data_change=accept_data_change,
    )
    if run.was_finished:
        ends_there = config.training.schedule == "cosine"  # the learning rate is 0 at max_steps
        go_on = "To train longer, take another name" if ends_there else "To go on, raise it"
        logger.info(
            "runs/%s is finished: %d steps, %s. %s; to start again: --from-scratch",
            config.name, run.step, ", ".join(run.limits_reached), go_on,
        )  # fmt: skip
        return
    source = run.example if isinstance(config.data, SequencesData) else "a sentence"
    logger.info(
        "next: tfm translate --run %s '%s', or tfm validate --run %s",
        config.name, source, config.name,
    )  # fmt: skip
