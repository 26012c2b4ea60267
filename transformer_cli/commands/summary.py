"""What a finished run came to: exact matches of a synthetic task, and published figures beside its own."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformer_cli.config import Config, PublishedConfig, SequencesData
from transformer_cli.decoding import Translator
from transformer_cli.evaluation.exact_match import ExactMatch, exact_match_by_length
from transformer_cli.inference import load_run
from transformer_cli.storage import read_json_lines

logger = logging.getLogger(__name__)

UNSHIFTED = (
    "the decoder was given the very symbols that it had to predict (data.shift_target: false), so that a "
    "low loss is easy and says nothing about generating"
)


def tell_summary(run_folder: Path, config: Config) -> None:
    """Log what there is to say beyond the validations, if anything: with the best checkpoint."""
    for line in published_table(config.published, run_folder / "metrics.jsonl"):
        logger.info(line)
    if not isinstance(config.data, SequencesData):
        return
    if not config.data.shift_target:
        logger.info("note: %s", UNSHIFTED)
    translator = load_run(config.name, []).translator
    for line in exact_match_table(exact_matches(translator, config), config.data.task):
        logger.info(line)


def exact_matches(translator: Translator, config: Config) -> list[ExactMatch]:
    """How much of a synthetic task comes out right, for each length; nothing for other data."""
    if not isinstance(config.data, SequencesData):
        return []
    lengths = config.validation.sequence_lengths
    return exact_match_by_length(translator, config.data, lengths, seed=config.seed)


def exact_match_table(rows: Sequence[ExactMatch], task: str) -> Iterator[str]:
    """Lines for people."""
    if not rows:
        yield f"{task}: no sequence has one of the lengths asked for"
        return
    which = "its own" if task == "memorise" else "fresh"
    yield f"{task} on {which} sequences, generated, by length:"
    yield f"{'length':>10}{'sequences':>12}{'exact match':>14}{'right symbols':>16}"
    for row in rows:
        shares = f"{row.exact:>12.1f} %{row.symbols:>14.1f} %"
        yield f"{row.length:>10}{row.num_sequences:>12}{shares}"


def published_table(published: PublishedConfig, metrics_file: Path) -> Iterator[str]:
    """Lines for people: the losses of each published step that the run has reached."""
    wanted = {"train": published.training_loss, "validation": published.validation_loss}
    if not any(wanted.values()):
        return
    records = list(read_json_lines(metrics_file))
    for kind, figures in wanted.items():
        ours: dict[int, Any] = {
            record["step"]: record["loss"] for record in records if record.get("kind") == kind
        }
        shown = [(step, ours[step], loss) for step, loss in figures if ours.get(step) is not None]
        if shown:
            yield f"{kind} loss beside what is published:"
            yield f"{'step':>10}{'ours':>12}{'published':>12}"
        for step, our_loss, loss in shown:
            yield f"{step:>10}{our_loss:>12.5f}{loss:>12.5f}"
