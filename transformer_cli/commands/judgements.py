"""Further measurements of `tfm validate`: a comparison, groups of sentences, calibration; and the report of all."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint import find_run, first_usable, read_files
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.held_out_text import corpus_name
from transformer_cli.commands.score import check_significance, lines_of
from transformer_cli.commands.streams.output import fitting
from transformer_cli.commands.streams.output_file import check_output, opened_output
from transformer_cli.config.data import Direction
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Translator
from transformer_cli.decoding.comet import CometModel
from transformer_cli.decoding.engine import ExplainingEngine
from transformer_cli.decoding.loading import LoadedRun, load_run
from transformer_cli.evaluation.breakdown import (
    FREQUENCIES,
    LENGTHS,
    Breakdown,
    by_name,
    by_number,
    lengths_in_words,
)
from transformer_cli.evaluation.calibration import Calibration, calibration_on
from transformer_cli.evaluation.comet_score import COMET, measure_comet
from transformer_cli.evaluation.confidence import ConfidenceReport, confidence_report
from transformer_cli.evaluation.metrics import measure_corpus
from transformer_cli.evaluation.report.learning_curves import learning_curves
from transformer_cli.evaluation.report.page import Page, html_of
from transformer_cli.evaluation.report.ranked_sentences import ranked_sentences
from transformer_cli.evaluation.system_comparison import Comparison, SignificanceTest, compare
from transformer_cli.evaluation.validation import DirectionReport, ValidationReport
from transformer_cli.evaluation.word_frequency import rarest_word_frequencies, training_sources
from transformer_cli.process.errors import DataError, UsageError

logger = logging.getLogger(__name__)


class Wanted(NamedTuple):
    """What is measured beside loss and scores."""

    against: str | None = None
    """Another run, or a file with translations, with which the run is compared."""
    has_breakdown: bool = False
    """Whether the scores of groups of sentences are computed too."""
    has_calibration: bool = False
    """Whether the probabilities of tokens are compared with how often they are right, and lines with their quality."""
    report: Path | None = None
    """The file of a page with all of this."""
    significance: SignificanceTest | None = None
    """The test for the comparison; None: the paired bootstrap."""
    comet: Path | None = None
    """The folder of a COMET model, which scores the translations, too."""


SCORES_ONLY = Wanted()


class Judgements(NamedTuple):
    """What was measured; None for what was not wanted."""

    comparison: Comparison | None = None
    breakdowns: Sequence[Breakdown] = ()
    calibration: Calibration | None = None
    confidence: ConfidenceReport | None = None

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        figures: dict[str, Any] = {}
        if self.comparison is not None:
            figures["against"] = self.comparison.as_json()
        if self.breakdowns:
            figures["breakdown"] = [breakdown.as_json() for breakdown in self.breakdowns]
        if self.calibration is not None:
            figures["calibration"] = self.calibration.as_json()
        if self.confidence is not None:
            figures["confidence"] = self.confidence.as_json()
        return figures

    def lines(self) -> list[str]:
        """Tables for people, each after an empty line."""
        tables = [breakdown.lines() for breakdown in self.breakdowns]
        if self.comparison is not None:
            tables.insert(0, self.comparison.lines())
        if self.calibration is not None:
            tables.append(self.calibration.lines())
        if self.confidence is not None:
            tables.append(self.confidence.lines())
        return [line for table in tables for line in ("", *fitting(table))]


def needs_details(wanted: Wanted, translator: Translator) -> bool:
    """Whether the probabilities of the tokens of each translation are needed, and can be had."""
    is_wanted = wanted.has_calibration or wanted.report is not None
    return is_wanted and isinstance(translator.engine, ExplainingEngine)


def check_wanted(wanted: Wanted) -> None:
    """Refuse what cannot work, before a model is loaded.

    Raises:
        UsageError: a test of significance without a system to compare with.
        MissingInputError: there is no such run to compare with.
        CannotCreateError: the report cannot be written.
    """
    check_significance(wanted.significance, has_other=wanted.against is not None)
    if wanted.against is not None and not Path(wanted.against).is_file():
        find_run(wanted.against)
    if wanted.report is not None:
        check_output(wanted.report)


def require_means(
    translator: Translator, pairs: Sequence[SentencePair], wanted: Wanted, *, has_scores: bool
) -> None:
    """Refuse what this run cannot give, before anything is translated.

    Raises:
        UsageError: the pairs have several directions, or another one than the run to compare with; there are no scores; or
            the engine tells no probabilities.
    """
    option = _option(wanted)
    if not has_scores and (option or wanted.comet):
        raise UsageError(f"{option or '--comet'} needs a score", hint="name one: --scores chrf")
    if option is None:
        return
    directions = {pair.direction for pair in pairs}
    if translator.pipeline.direction is None and len(directions) > 1:
        raise UsageError(
            f"{option} needs one direction, and these pairs have {len(directions)}",
            hint="choose one with --to, and --from if needed",
        )
    if wanted.against is not None and not Path(wanted.against).is_file():
        data = translator.pipeline.data
        _require_direction(wanted.against, [data.directions[each] for each in directions])
    if wanted.has_calibration and not isinstance(translator.engine, ExplainingEngine):
        raise UsageError(
            "--calibration needs the probabilities of tokens, which this engine does not give",
            hint="use the engine that runs on PyTorch",
        )


def _require_direction(against: str, scored: Sequence[Direction]) -> None:
    """Raise UsageError if the other run does not translate in a direction of the pairs."""
    data = first_usable(find_run(against), read_files).config.data
    for direction in scored:
        if direction not in data.directions:
            theirs = ", ".join(map(str, data.directions))
            raise UsageError(
                f"--against {against}: this run translates {theirs}, but the sentences are {direction}",
                hint="compare runs of the same two languages",
            )


def judge(
    report: ValidationReport,
    wanted: Wanted,
    loaded: LoadedRun,
    translator: Translator,
    overrides: Sequence[str],
    comet: CometModel | None = None,
) -> Judgements:
    """Measure what is wanted.

    Args:
        report: of the validation, in one direction.
        translator: made the translations.
        overrides: also hold for the run to compare with.
        comet: has scored the translations, and scores those of the other system.
    """
    if _option(wanted) is None:
        return Judgements()
    [part] = report.parts
    if translator.pipeline.direction is None:
        translator = translator.in_direction(part.pairs[0].direction)
    needs_all = wanted.report is not None
    references = [pair.target for pair in part.pairs]
    return Judgements(
        _comparison(wanted, part, overrides, comet) if wanted.against else None,
        _breakdowns(part, loaded) if wanted.has_breakdown or needs_all else (),
        calibration_on(translator, part.pairs) if wanted.has_calibration or needs_all else None,
        confidence_report(part.translations, references),
    )


def write_report(
    path: Path,
    report: ValidationReport,
    judged: Judgements,
    loaded: LoadedRun,
    facts: Sequence[tuple[str, str]],
) -> None:
    """Write the page to a file, which appears whole or not at all.

    Args:
        facts: names and values for the head of the page.
    """
    run = RunFolder.of_checkpoint(loaded.trained.folder)
    page = Page(
        title=f"{loaded.trained.config.name}: {report.parts[0].direction}",
        facts=facts,
        report=report,
        sentences=ranked_sentences(report.parts[0]),
        curves=learning_curves(run.metrics_file) if run and not loaded.others else [],
        breakdowns=judged.breakdowns,
        calibration=judged.calibration,
        confidence=judged.confidence,
        comparison=judged.comparison,
    )
    with opened_output(path) as write:
        write(html_of(page).encode())
    logger.info("report: %s", path)


def _option(wanted: Wanted) -> str | None:
    """The first option that needs one direction."""
    given = {
        "--against": wanted.against is not None,
        "--breakdown": wanted.has_breakdown,
        "--calibration": wanted.has_calibration,
        "--report": wanted.report is not None,
    }
    return next((option for option, is_given in given.items() if is_given), None)


def _comparison(
    wanted: Wanted,
    part: DirectionReport,
    overrides: Sequence[str],
    comet: CometModel | None,
) -> Comparison:
    """This run and another one, or a file with translations of the same sentences."""
    against = wanted.against or ""
    sources = [pair.source for pair in part.pairs]
    references = [pair.target for pair in part.pairs]
    texts = _other_texts(against, part, sources, overrides)
    names = [one.name for one in part.measurements if one.name != COMET]
    others = measure_corpus(texts, references, names, target_language=part.direction.target)
    if comet is not None:
        others.append(measure_comet(comet, sources, texts, references))
    return compare(part.measurements, others, against, wanted.significance or "bootstrap")


def _other_texts(
    against: str, part: DirectionReport, sources: Sequence[str], overrides: Sequence[str]
) -> list[str]:
    """The translations of another run, or of a file."""
    if Path(against).is_file():
        texts = lines_of(Path(against), "--against")
        if len(texts) != len(part.pairs):
            raise DataError(
                f"{against} has {len(texts):,} lines, but {len(part.pairs):,} sentences are scored",
                hint="line N of the file must translate sentence N",
            )
        return texts
    taken = [one for one in overrides if not one.startswith("data.")]
    translator = load_run(against, taken, command="validate --source").translator
    if len(translator.pipeline.data.directions) > 1:
        translator = translator.towards(part.direction.target, part.direction.source)
    return [translation.text for translation in translator.translate(sources)]


def _breakdowns(part: DirectionReport, loaded: LoadedRun) -> list[Breakdown]:
    """The scores by length of source and reference, by the rarest word of the source, and by corpus."""
    measured, pairs, languages = part.measurements, part.pairs, part.direction
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    found = []
    for side, texts, language in (
        ("source", sources, languages.source),
        ("reference", references, languages.target),
    ):
        unit, lengths = lengths_in_words(texts, language)
        found.append(by_number(measured, f"{unit} of {side}", lengths, LENGTHS))
    training = training_sources(loaded.config, loaded.trained.folder)
    if training is None:
        logger.warning(
            "the breakdown by the rarest word is left out: it needs the prepared training data, "
            "which is not in the folder of this run"
        )
    else:
        frequencies = rarest_word_frequencies(loaded.translator.pipeline, sources, training)
        found.append(
            by_number(measured, "rarest word of source, in training", frequencies, FREQUENCIES)
        )
    if len({pair.corpus for pair in pairs}) > 1:
        names = [corpus_name(loaded.config.data, pair.corpus) for pair in pairs]
        found.append(by_name(measured, "corpus", names))
    return found
