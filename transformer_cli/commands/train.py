"""`tfm train`: trains a run from a config, or continues it where it stopped."""

import logging
from pathlib import Path
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
    is_over = not any(limit.startswith("training.max_minutes") for limit in run.limits_reached)
    if not is_over:
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
    if is_over and not isinstance(settings.data, SequencesData):
        logger.info("%s", _what_to_expect(run.folder, settings.name, options))


_LOW_BLEU = 20.0
"""Below it, translations of everyday sentences had guessed nouns (docs/own_corpus.md, how much data)."""
_HIGH_CHRF = 60.0
"""BLEU counts four words in a row, so lines of one to three words have BLEU 0 even if all are right; their chrF is high."""


def _what_to_expect(folder: Path, name: str, options: str) -> str:
    """That the translations of a run are poor; else which command tells the good ones.

    A calibration of a poor model finds no threshold, so it would be no help.

    Args:
        folder: of the run.
        name: of the run.
        options: those that choose a direction, with a space before each.
    """
    from transformer_cli.checkpoint.recorded_series import finite, read_series
    from transformer_cli.checkpoint.run_folder import RunFolder

    validation = read_series(RunFolder(folder).metrics_file).validation
    bleu, chrf = (finite(validation.get(name, {})).values() for name in ("bleu", "chrf"))
    best = max(bleu, default=_LOW_BLEU)
    if best < _LOW_BLEU and max(chrf, default=0.0) < _HIGH_CHRF:
        return (
            f"BLEU {best:.1f} on the validation sentences: many translations will be wrong. What helps: more pairs "
            "(docs/own_corpus.md has how many gave what), and more updates if the score was still rising"
        )
    return (
        f"to learn which translations can be trusted: tfm calibrate --run {name}{options}, "
        f"then tfm translate --run {name}{options} --mark"
    )
