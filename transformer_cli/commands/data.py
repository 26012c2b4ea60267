"""`tfm data`: the first pairs of a corpus, their tokens, and the report of the preparation.

The commands below it, such as `tfm data check`, stand in the table of `cli.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transformer_cli.checkpoint.run_folder import RUNS, RunFolder
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    JsonOption,
    OptionalConfigOption,
    Overrides,
    set_option,
)
from transformer_cli.commands.output import fitting, show
from transformer_cli.config import Config, SplitName, load_config, load_stored_config
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.process.errors import (
    CannotCreateError,
    StorageError,
    TryAgainError,
    UsageError,
)
from transformer_cli.process.messages import on_one_line
from transformer_cli.process.signals import cleaned_up
from transformer_cli.storage import RunLock, remove, temporary_folder
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.normalization import REVERSED

if TYPE_CHECKING:
    from transformer_cli.data.preparation import PreparedData

logger = logging.getLogger(__name__)


def data_command(
    context: typer.Context,
    config: OptionalConfigOption = None,
    overrides: Annotated[Overrides, set_option("tokenizer.vocab_size=4000", completion.settings)] = None,
    split: Annotated[
        Literal["train", "validation", "test"],
        typer.Option("--split", help="Which part of the corpus: train, validation or test."),
    ] = "train",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="A new folder for the prepared pairs: texts, ids, rows of the corpus, and why pairs were dropped; for "
            "datasets.load_from_disk, and as Parquet.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Preview a corpus, check it, clean it or get one. Shows sentence pairs, what cleaning drops, and tokenizer statistics."""
    if context.invoked_subcommand is not None:
        return
    if config is None:
        raise UsageError(
            "Missing option '--config' / '-c'",
            hint="such as tfm data --config en-it.yaml; or one of the commands check, clean, import, get",
        )
    show_data(config, overrides or [], split=split, output=output, as_json=as_json)


def show_data(
    config_path: str,
    overrides: Sequence[str],
    *,
    split: SplitName,
    output: Path | None = None,
    as_json: bool,
) -> None:
    """Prepare the corpus as `tfm train` does, and print the report; `tfm train` then uses the prepared data.

    Args:
        output: a new folder into which the prepared pairs are written; None: nowhere.
    """
    config = _as_begun(load_config(config_path, overrides))
    if output is not None:
        from transformer_cli.data.exported import export_prepared, require_exportable

        require_exportable(config, output)
    prepared = _prepared(config)
    pairs = _pairs_to_show(prepared, split)
    report = asdict(prepared.report)
    del report["examples"]
    shown = [_as_json(pair, prepared) for pair in pairs]
    lines = [f"{split}, the first {len(pairs)} pairs:"]
    for pair in pairs:
        lines += _lines(pair, prepared)
    lines += _tag_lines(config)
    facts = {"report": report, "split": split, "pairs": shown}
    if output is not None:
        counts = export_prepared(prepared, output)
        facts["exported"] = counts
        told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        logger.info("%s: written, with these pairs: %s", output, told)
    show(facts, [*lines, "", *fitting(prepared.report.lines())], as_json=as_json)


def _as_begun(config: Config) -> Config:
    """The config with what the run of this name began with, if it has begun."""
    from transformer_cli.training.config_changes import with_recorded_cleaning

    run = RunFolder(RUNS / config.name)
    if not (run.is_begun() and run.config_file.is_file()):
        return config
    return with_recorded_cleaning(config, load_stored_config(run.config_file))


def _tag_lines(config: Config) -> list[str]:
    """Which tags the model reads before the tokens of a source; no line if it reads none."""
    sequences = SequenceFormat.of(config.data)
    directions = dict(zip(sequences.tags, config.data.directions, strict=False))
    lines = [f"  {tag}  to translate into {one.target}" for tag, one in directions.items()]
    lines += [
        f"  {tag}  in the training pairs of data.corpora.{number}"
        for number, tag in enumerate(sequences.corpus_tags)
        if tag and tag != REVERSED
    ]
    if REVERSED in sequences.corpus_tags:
        lines.append(f"  {REVERSED}  in the pairs that the first epochs read the other way round")
    return ["", "tags, which the model reads before the tokens of a source:", *lines] if lines else []


def _prepared(config: Config) -> PreparedData:
    """The prepared data of the run of this name if they fit the config; else data that are prepared now."""
    from transformer_cli.data.preparation import open_prepared, prepare_data
    from transformer_cli.training.initial_weights import load_initial_model

    run = RunFolder(RUNS / config.name)
    if (found := open_prepared(config, run.data_folder)) is not None:
        return found
    is_new = not run.path.exists()
    with ExitStack() as stack:
        place = _place_for_data(run, stack)
        if is_new and place == run.data_folder:
            stack.enter_context(_removed_on_failure(run.path))
        initial = load_initial_model(config, run.path)
        tokenizers = initial.trained.tokenizers if initial else None
        prepared = prepare_data(config, place, has_begun=False, tokenizers=tokenizers, runs=RUNS)
    if place == run.data_folder:
        logger.info("%s: kept for tfm train", place)
    return prepared


@contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    """Remove a folder if the block fails, or if a signal ends it."""
    with cleaned_up(lambda: remove([folder])):
        try:
            yield
        except BaseException:
            with suppress(StorageError):
                remove([folder])
            raise


def _place_for_data(run: RunFolder, stack: ExitStack) -> Path:
    """The data folder of a run that has not begun; for any other run, a folder that the stack removes."""
    try:
        if not run.checkpoints_folder.exists():
            stack.enter_context(RunLock(run.path))
            # Check again: a training that held the lock may have made the folder.
            if not run.checkpoints_folder.exists():
                return run.data_folder
    except (CannotCreateError, StorageError, TryAgainError) as error:
        logger.info("%s; the data are prepared in a temporary folder", error.message)
    return stack.enter_context(temporary_folder("tfm-data-")) / "data"


def _pairs_to_show(prepared: PreparedData, split: SplitName) -> list[SentencePair]:
    from transformer_cli.data.preparation import NUM_EXAMPLES

    if found := prepared.report.examples.get(split):
        return found
    if split == "train":  # an earlier version prepared the data, and stored no examples
        return list(islice(prepared.train_text(), NUM_EXAMPLES))
    return held_out_pairs(prepared.config, split)[:NUM_EXAMPLES]


def _as_json(pair: SentencePair, prepared: PreparedData) -> dict[str, Any]:
    """The texts; the direction if there are several; the tags before the source if it has some."""
    facts: dict[str, Any] = {"source": pair.source, "target": pair.target}
    if len(prepared.config.data.directions) > 1:
        facts["direction"] = str(prepared.config.data.directions[pair.direction])
    tags = SequenceFormat.of(prepared.config.data).tags_of(pair.corpus, pair.direction)
    return facts | ({"tags": tags} if tags else {})


def _lines(pair: SentencePair, prepared: PreparedData) -> list[str]:
    facts = _as_json(pair, prepared)
    direction = [f"  DIRECTION  {facts['direction']}"] if "direction" in facts else []
    return [
        *direction,
        *_text_and_tokens("SOURCE", pair.source, prepared.source_tokenizer, facts.get("tags", [])),
        *_text_and_tokens("TARGET", pair.target, prepared.target_tokenizer),
    ]


def _text_and_tokens(side: str, text: str, tokenizer: Tokenizer, tags: Sequence[str] = ()) -> list[str]:
    tokens = [*tags, *tokenizer.marked_tokens(tokenizer.encode(text))]
    return [f"  {side}  {on_one_line(text)}", f"          {on_one_line(' | '.join(tokens))}"]
