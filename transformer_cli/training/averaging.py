"""Checkpoint averaging at the end of a run: `tfm translate` uses the mean if it is better than the best checkpoint.

A run that is killed meanwhile makes the average when it is started again; after that, a start changes nothing.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from transformer_cli.checkpoint.averages import averaged_steps, mean_weights, write_average
from transformer_cli.checkpoint.run_folder import (
    AVERAGE,
    Checkpoint,
    goodness,
    list_checkpoints,
    open_checkpoint,
    ranked,
)
from transformer_cli.config import TrainingConfig
from transformer_cli.evaluation import validate
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError, StorageError
from transformer_cli.storage import DamagedError, point_link, remove

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.training.run import TrainingSession

logger = logging.getLogger(__name__)


def average_at_end(session: "TrainingSession") -> bool:
    """Write and validate the average that the config asks for, unless it is there already; returns whether it was written."""
    training, folder = session.config.training, session.checkpoints.folder
    assert training.average_last is not None
    chosen = checkpoints_to_average(folder, training, session.progress.step)
    final = folder / f"{AVERAGE}{session.progress.step:08d}"
    is_new = not _is_still_right(final, chosen)
    if is_new:
        wanted, found = training.average_last, len(chosen)
        if found < 2:
            logger.warning("no average: training.average_last needs at least two checkpoints")
            return False
        if found < wanted:
            text = "training.average_last is %d, but there are only %d checkpoints"
            logger.info(text, wanted, found)
        _make(final, chosen, session)
    averages = list_checkpoints(folder, AVERAGE).whole
    for best in ranked(list_checkpoints(folder).whole, averages)[:1]:
        _tell_and_link(best, is_average=best.folder == final)
        old = [one.folder for one in averages if one.folder not in (final, best.folder)]
        remove(old)
    return is_new


def checkpoints_to_average(folder: Path, training: TrainingConfig, last_step: int) -> list[Checkpoint]:
    """The checkpoints to average. An interruption saves further checkpoints; they are never among these."""
    whole = list_checkpoints(folder).whole
    if training.average_of == "best":
        candidates = ranked(whole)
    else:
        regular = (last_step, training.save_every)
        candidates = [
            found
            for found in whole
            if found.manifest.run_id == whole[0].manifest.run_id
            and (found.step == regular[0] or found.step % regular[1] == 0)
        ]
    assert training.average_last is not None
    valid: list[Checkpoint] = []
    for found in candidates:
        if len(valid) == training.average_last:
            break
        try:
            found.verify()
        except (DamagedError, StorageError) as error:
            logger.warning("not part of the average: %s", error.message)
        else:
            valid.append(found)
    return valid


def _is_still_right(final: Path, chosen: Sequence[Checkpoint]) -> bool:
    """Whether the average can stay: it is made of these checkpoints, or of some that were deleted since and cannot be read again."""
    try:
        average = open_checkpoint(final)
        average.verify()
        steps = averaged_steps(average)
    except (DataError, StorageError):
        return False
    there = {found.step for found in list_checkpoints(final.parent).whole}
    return steps == sorted(found.step for found in chosen) or not there.issuperset(steps)


def _make(final: Path, chosen: Sequence[Checkpoint], session: "TrainingSession") -> None:
    settings, metric = session.config.validation, session.config.training.best_metric
    data, device = session.data, session.experiment.machine.device
    source, target = data.source_tokenizer, data.target_tokenizer
    model = Transformer(session.config.model, source.vocab_size, target.vocab_size).to(device).eval()
    expected = model.state_dict()
    weights = mean_weights(found.model(expected) for found in chosen)
    model.load_state_dict(weights)
    report = validate(session.translator(model), session.validation_pairs, scores=settings.scores, num_samples=0)
    value = report.metric(metric)
    rival = _compared_with_best(model, weights, session)
    figures = {"step": session.progress.step, "value": value} | report.as_json()
    average = write_average(final, chosen, weights, validation=figures, rival=rival)
    steps = ", ".join(f"{step:,}" for step in averaged_steps(average))
    scored = "" if metric == "loss" else f"{metric} {value:.4g}, "
    logger.info("average of the checkpoints of steps %s: %sloss %.4f", steps, scored, report.loss)


def _compared_with_best(
    model: Transformer, weights: Mapping[str, Tensor], session: "TrainingSession"
) -> dict[str, Any] | None:
    """The average and the best checkpoint, with the beam size of `tfm translate`; None if validations have the same one.

    The best checkpoint is the best of many validations, some of which are high by chance. So the average would often lose
    against its score. Both are validated once more here, with the search that counts.

    Args:
        model: gets the weights of both, one after the other.
        weights: of the average.
        session: of the run.
    """
    config, metric = session.config, session.config.training.best_metric
    best = next(iter(ranked(list_checkpoints(session.checkpoints.folder).whole)), None)
    has_same_search = config.validation.beam_size == config.decoding.beam_size
    if best is None or metric == "loss" or has_same_search:
        return None
    try:
        candidates = weights, best.model(weights)
    except (DamagedError, StorageError) as error:
        logger.warning("the average is not compared: %s", error.message)
        return None
    values = []
    for candidate in candidates:
        model.load_state_dict(candidate)
        translator = session.translator(model, beam_size=config.decoding.beam_size)
        report = validate(translator, session.validation_pairs, scores=config.validation.scores, num_samples=0)
        values.append(report.metric(metric))
    ours, theirs = (goodness(value, metric) for value in values)
    logger.info(
        "with beam size %d: average %s %.4g, checkpoint of step %s %.4g",
        config.decoding.beam_size,
        metric,
        values[0],
        f"{best.step:,}",
        values[1],
    )
    return {"step": best.step, "is_worse": ours > theirs, "value": values[1], "own_value": values[0]}


def _tell_and_link(best: Checkpoint, *, is_average: bool) -> None:
    """Log which checkpoint `tfm translate` uses, and let the link `best` name it."""
    chosen = f"{best.manifest.metric} {best.manifest.score:.4g} at its validation"
    text = f"the average is the best ({chosen}): tfm translate uses it"
    if not is_average:
        text = (
            f"the average is not better than the checkpoint of step {best.step:,} ({chosen}): "
            "tfm translate uses that checkpoint"
        )
    logger.info("%s", text)
    point_link(best.folder.with_name("best"), best.folder.name)
