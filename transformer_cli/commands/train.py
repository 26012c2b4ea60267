"""`tfm train`: trains a run from a config, or continues it where it stopped."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_cli.checkpoint.recorded_series import finite, read_series
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import ConfigOption, Overrides, set_option
from transformer_cli.config import SequencesData, load_config
from transformer_cli.config.schema import ENDS_AT_MAX_STEPS
from transformer_cli.process import plain_form
from transformer_cli.process.messages import counted, for_shell

if TYPE_CHECKING:
    from transformer_cli.training.run import TrainedRun

logger = logging.getLogger(__name__)

SettingsOption = Annotated[Overrides, set_option("training.max_steps=100", completion.settings)]


def train_command(
    config: ConfigOption,
    overrides: SettingsOption = None,
    from_scratch: Annotated[
        bool,
        typer.Option("--from-scratch", help="Start a new run; rename the checkpoints of an earlier one."),
    ] = False,
    accept_data_change: Annotated[
        bool, typer.Option("--accept-data-change", help="Continue a run whose corpus has changed.")
    ] = False,
) -> None:
    """Train a model, or continue its training. A run of the same name goes on where it stopped."""
    from transformer_cli.commands.progress_bar import progress_bars
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
            "runs/%s is finished: %s, %s. %s; to start again: --from-scratch",
            settings.name,
            counted(run.step, "step"),
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
    # The model was trained with the code as it stands, and other code would translate with it.
    tfm = f"{plain_form.SWITCH}=1 tfm" if plain_form.IS_PLAIN else "tfm"
    logger.info(
        "next: %s translate --run %s%s '%s', or %s validate --run %s",
        tfm,
        settings.name,
        options,
        source,
        tfm,
        settings.name,
    )
    if not isinstance(settings.data, SequencesData):
        if is_over:
            logger.info("%s", _what_to_expect(run, settings.name, options, settings.training.init_from))
        elif poor := _how_poor(run):
            logger.info("%s. What helps first: the rest of the training", poor)


_LOW_BLEU = 20.0
"""Below it, translations of everyday sentences had guessed nouns (docs/own_corpus.md, how much data)."""
_HIGH_CHRF = 60.0
"""BLEU counts four words in a row, so lines of one to three words have BLEU 0 even if all are right; their chrF is high."""
_FEW_SENTENCES = 100
"""The 95 % interval of BLEU over fewer is wider than most differences that a user asks about; a calibration needs as many."""
_LEAST_FALL = 0.05
"""In nats per token, in half of a run: a loss that falls by less has come to its end, or rises."""


def _how_poor(run: TrainedRun) -> str:
    """That many translations of a run will be wrong, if its best score on the validation sentences says so; else empty."""
    series = read_series(RunFolder(run.folder).metrics_file)
    bleu, chrf = (finite(series.validation.get(name, {})).values() for name in ("bleu", "chrf"))
    best = max(bleu, default=_LOW_BLEU)
    if best >= _LOW_BLEU or max(chrf, default=0.0) >= _HIGH_CHRF:
        return ""
    return f"BLEU {best:.1f} on the validation sentences: many translations will be wrong"


def _what_to_expect(run: TrainedRun, name: str, options: str, begun_from: str | None = None) -> str:
    """That the translations of a run are poor or not measured, and what helps; else which command tells the good ones.

    A calibration of a poor model finds no threshold, and one of few sentences is refused, so it would be no help.

    Args:
        run: the training that has ended.
        name: of the run.
        options: those that choose a direction, with a space before each.
        begun_from: the run whose weights it began with, if it was fine-tuned.
    """
    if poor := _how_poor(run):
        series = read_series(RunFolder(run.folder).metrics_file)
        if begun_from is not None:  # the run that it began from decides most
            return f"{poor}. Whether they are better than before: tfm validate --run {name}{options} --against {for_shell(begun_from)}"
        losses = finite(series.validation.get("loss", {}))
        if len(losses) < 2:  # then the reports alone say how the loss went
            losses = finite(series.training.get("loss", {}))
        fall = _late_fall(losses)
        pairs = "more pairs, or a model that exists to begin with (docs/own_corpus.md has how many gave what, and how)"
        if fall is not None and fall < _LEAST_FALL:
            return f"{poor}. In the second half of the run the loss no longer fell, so more updates are no help. What helps: {pairs}"
        measured = "" if fall is None else f": the loss fell by {fall:.2f} in the second half of the run"
        return f"{poor}. What helps first: more than {counted(run.step, 'update')}{measured}. Then {pairs}"
    if run.num_validation_pairs < _FEW_SENTENCES:
        return (
            f"the validation split has only {counted(run.num_validation_pairs, 'sentence')}, so its scores are partly chance. More pairs help most: docs/own_corpus.md "
            "has how many gave what"
        )
    return (
        f"to learn which translations can be trusted: tfm calibrate --run {name}{options}, "
        f"then tfm translate --run {name}{options} --mark"
    )


def _late_fall(losses: Mapping[int, float]) -> float | None:
    """By how much the loss at the end of a run is below that at half of its steps, in nats; None: not measured."""
    if not losses:
        return None
    last = max(losses)
    before = [step for step in losses if step <= last / 2]
    return losses[max(before)] - losses[last] if before else None
