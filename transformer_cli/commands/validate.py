"""`tfm validate`: the loss and the scores of a run on a split, or on two given files."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.streams.output import fitting, show
from transformer_cli.commands.streams.pair_streams import is_stream, pairs_of_streams
from transformer_cli.config import FilesData, SequencesData, SplitName
from transformer_cli.config.data import FileCorpus
from transformer_cli.config.decoding import ScoreName
from transformer_cli.data.fingerprint import changes, fingerprint
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.data.selection.held_out import first_pairs
from transformer_cli.data.sources import has_split, read_pairs
from transformer_cli.data.sources.lines import HOW_TO_CONVERT, NotUtf8Error
from transformer_cli.errors import DataError
from transformer_cli.evaluation import ValidationReport, validate
from transformer_cli.evaluation.exercises import exact_match_table, exact_matches
from transformer_cli.evaluation.validation import DirectionReport
from transformer_cli.inference import LoadedRun, load_run

logger = logging.getLogger(__name__)


def run_validation(
    run: str | Sequence[str] | None,
    split: SplitName,
    files: tuple[Path, Path] | None,
    *,
    overrides: Sequence[str],
    languages: tuple[str | None, str | None] = (None, None),
    as_json: bool,
) -> None:
    """Validate a run on a split, or on given files (source, reference); print a table, or JSON.

    All pairs are scored, with all scores, unless an override of validation.max_sentences or validation.scores
    says otherwise; the run's config says what is measured during training.

    Args:
        run: as in `load_run`; several are an ensemble.
        languages: the target and the source language. If both are None, a split is measured in all its directions,
            and files in the only direction of the model.
    """
    loaded = load_run(run, overrides, command="validate --source" if files else "validate")
    translator = loaded.translator
    if files or any(languages):
        translator = translator.towards(*languages)
    pairs = _pairs_of_files(*files) if files else _pairs_of_split(loaded, split)
    if any(languages) and not files:
        pairs = [pair for pair in pairs if pair.direction == translator.pipeline.direction]
    settings, asked = loaded.config.validation, loaded.overridden
    if "validation.max_sentences" in asked:
        pairs = first_pairs(pairs, settings.max_sentences)
    report = validate(
        translator,
        pairs,
        scores=settings.scores if "validation.scores" in asked else get_args(ScoreName),
        num_samples=settings.num_samples,
    )
    report.unknown_words.report()
    rows = [] if files else exact_matches(loaded.translator, loaded.config)
    measured = f"{files[0]} / {files[1]}" if files else split
    name = " + ".join(member.config.name for member in loaded.members)
    steps, decoding = ", ".join(str(one.step) for one in loaded.members), loaded.config.decoding
    figures = {"run": name, "split": measured} | report.as_json()
    del figures["num_target_tokens"]
    if "validation.num_samples" in asked:
        figures["samples"] = [sample.as_json() for sample in report.samples]
    if rows:
        figures["exact_match"] = [row._asdict() for row in rows]
    heading = (
        f"run {name}  step {steps}  split {measured}  "
        f"beam_size {decoding.beam_size}  length_penalty {decoding.length_penalty}  "
        f"split_sentences {str(loaded.translator.pipeline.splits_sentences).lower()}"
    )
    lines = [heading, "", *_table(report)]
    if isinstance(loaded.config.data, SequencesData) and not files:
        lines += ["", *exact_match_table(rows, loaded.config.data.task)]
    show(figures, lines, as_json=as_json)


def _pairs_of_split(loaded: LoadedRun, split: SplitName) -> list[SentencePair]:
    if not has_split(loaded.config.data, split):
        raise DataError(
            f"the config of this run names no {split} split",
            hint=f"train with a corpus of split: {split} or a data.{split}_share, "
            "or score two files: --source FILE --reference FILE",
        )
    _warn_of_other_data(loaded, split)
    return held_out_pairs(loaded.config, split)


def _warn_of_other_data(loaded: LoadedRun, split: SplitName) -> None:
    """Warn if the files of the split have changed since the training: scores cannot be compared with earlier ones."""
    run_folder = RunFolder.of_checkpoint(loaded.trained.folder)
    if run_folder is None:
        return
    try:
        trained_on = dict(json.loads(run_folder.environment_file.read_bytes())["data"])
    except (OSError, ValueError, KeyError, TypeError):
        return  # without this file, or with a damaged one, the run can still be validated
    now = fingerprint(loaded.config, split=split)
    before = {name: trained_on[name] for name in now if name in trained_on}
    if changed := changes(before, now):
        logger.warning("the data has changed since the training: %s", "; ".join(changed))


def _pairs_of_files(source: Path, reference: Path) -> list[SentencePair]:
    report = ReadingReport()
    try:
        pairs = _read_pairs_of_files(source, reference, report)
    except (
        NotUtf8Error
    ) as error:  # its hint names a setting of corpora, which these files do not have
        raise DataError(error.message, hint=HOW_TO_CONVERT) from error
    for reason, finding in report.skipped.items():
        logger.warning(
            "skipped pairs: %d, reason: %s, first: %s", finding.count, reason, finding.example
        )
    return pairs


def _read_pairs_of_files(
    source: Path, reference: Path, report: ReadingReport
) -> list[SentencePair]:
    if is_stream(source) or is_stream(reference):
        return pairs_of_streams(source, reference, report)
    of_source, of_target = str(source.absolute()), str(reference.absolute())
    corpus = FileCorpus(source_path=of_source, target_path=of_target, split="test", format="text")
    data = FilesData(source="files", corpora=(corpus,))
    return list(read_pairs(data, "test", seed=0, report=report))


def _table(report: ValidationReport) -> list[str]:
    rows = [
        ("sentences", f"{report.num_sentences:,}", ""),
        ("loss", f"{report.loss:.4f}", "nats per target token"),
        ("perplexity", f"{report.perplexity:.2f}", ""),
        *((score.name, f"{score.value:.2f}", score.signature) for score in report.scores),
    ]
    lines = fitting(f"{name:<12}{value:>10}  {note}".rstrip() for name, value, note in rows)
    lines += _table_of_directions(report.directions)
    for sample in report.samples:
        lines += ["", *sample.lines()]
    return lines


def _table_of_directions(reports: Sequence[DirectionReport]) -> list[str]:
    """One row for each direction; nothing if there is only one."""
    if not reports:
        return []
    names = [score.name for score in reports[0].scores]
    lines = [
        "",
        f"{'direction':<12}{'sentences':>10}{'loss':>10}" + "".join(f"{n:>10}" for n in names),
    ]
    for report in reports:
        values = [report.loss, *(score.value for score in report.scores)]
        numbers = "".join(f"{value:>10.{2 if i else 4}f}" for i, value in enumerate(values))
        lines.append(f"{report.direction!s:<12}{report.num_sentences:>10,}{numbers}")
    return lines
