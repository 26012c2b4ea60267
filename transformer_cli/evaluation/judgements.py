"""What `tfm validate` measures beside loss and scores: a comparison, groups of sentences, calibration; and the page of all."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.trained_files import find_run, first_usable, read_trained_files
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
    rarest_word_frequencies,
    training_sources,
)
from transformer_cli.evaluation.comet_score import COMET, measure_comet
from transformer_cli.evaluation.confidence import (
    Calibration,
    ConfidenceReport,
    calibration_on,
    confidence_report,
)
from transformer_cli.evaluation.curve_pictures import learning_curves
from transformer_cli.evaluation.held_out_text import corpus_name
from transformer_cli.evaluation.metrics import measure_corpus
from transformer_cli.evaluation.report import Page, html_of, ranked_sentences
from transformer_cli.evaluation.system_comparison import SignificanceTest, SystemComparison, compare_systems
from transformer_cli.evaluation.validation import DirectionReport, ValidationReport
from transformer_cli.process.errors import UsageError

logger = logging.getLogger(__name__)


class Judgements(NamedTuple):
    """What was measured; None for what was not wanted."""

    comparison: SystemComparison | None = None
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
        return [line for table in tables for line in ("", *table)]


def require_means(
    option: str,
    translator: Translator,
    pairs: Sequence[SentencePair],
    *,
    against: str | None,
    has_calibration: bool,
) -> None:
    """Refuse what this run cannot give, before anything is translated.

    Args:
        option: the first option that asks for a judgement.
        against, has_calibration: as of `judge`.

    Raises:
        UsageError: the pairs have several directions, or another one than the run to compare with; or the engine tells no
            probabilities.
    """
    directions = {pair.direction for pair in pairs}
    if translator.pipeline.direction is None and len(directions) > 1:
        raise UsageError(
            f"{option} needs one direction, and these pairs have {len(directions)}",
            hint="choose one with --to, and --from if needed",
        )
    if against is not None and not Path(against).is_file():
        data = translator.pipeline.data
        _require_direction(against, [data.directions[each] for each in directions])
    if has_calibration and not isinstance(translator.engine, ExplainingEngine):
        raise UsageError(
            "--calibration needs the probabilities of tokens, which this engine does not give",
            hint="use the engine that runs on PyTorch",
        )


def _require_direction(against: str, scored: Sequence[Direction]) -> None:
    """Raise UsageError if the other run does not translate in a direction of the pairs."""
    data = first_usable(find_run(against), read_trained_files).config.data
    for direction in scored:
        if direction not in data.directions:
            theirs = ", ".join(map(str, data.directions))
            raise UsageError(
                f"--against {against}: this run translates {theirs}, but the sentences are {direction}",
                hint="compare runs of the same two languages",
            )


def judge(
    report: ValidationReport,
    loaded: LoadedRun,
    translator: Translator,
    *,
    against: str | None,
    other_texts: Sequence[str] | None,
    significance: SignificanceTest | None,
    has_breakdown: bool,
    has_calibration: bool,
    overrides: Sequence[str],
    comet: CometModel | None,
) -> Judgements:
    """Measure what is wanted.

    Args:
        report: of the validation, in one direction.
        translator: made the translations.
        against: another run, or the name of a file with translations, with which the run is compared.
        other_texts: the lines of this file; None: it is a run.
        significance: the test for the comparison; None: the paired bootstrap.
        has_breakdown: whether the scores of groups of sentences are computed.
        has_calibration: whether the probabilities of tokens are compared with how often they are right.
        overrides: also hold for the run to compare with.
        comet: has scored the translations, and scores those of the other system.
    """
    [part] = report.parts
    if translator.pipeline.direction is None:
        translator = translator.in_direction(part.pairs[0].direction)
    comparison = None
    if against is not None:
        if other_texts is None:
            other_texts = _translations(against, part, overrides)
        comparison = _comparison(against, other_texts, part, significance or "bootstrap", comet)
    references = [pair.target for pair in part.pairs]
    return Judgements(
        comparison,
        _breakdowns(part, loaded) if has_breakdown else (),
        calibration_on(translator, part.pairs) if has_calibration else None,
        confidence_report(part.translations, references),
    )


def report_page(
    report: ValidationReport,
    judged: Judgements,
    loaded: LoadedRun,
    facts: Sequence[tuple[str, str]],
) -> str:
    """The page (HTML) with all that was measured.

    Args:
        facts: names and values for the head of the page.
    """
    run = RunFolder.containing(loaded.trained.folder)
    page = Page(
        title=f"{loaded.trained.name}: {report.parts[0].direction}",
        facts=facts,
        report=report,
        sentences=ranked_sentences(report.parts[0]),
        curves=learning_curves(run.metrics_file) if run and not loaded.others else [],
        breakdowns=judged.breakdowns,
        calibration=judged.calibration,
        confidence=judged.confidence,
        comparison=judged.comparison,
    )
    return html_of(page)


def _comparison(
    against: str,
    other_texts: Sequence[str],
    part: DirectionReport,
    significance: SignificanceTest,
    comet: CometModel | None,
) -> SystemComparison:
    """This run and another system, by its translations of the same sentences."""
    sources = [pair.source for pair in part.pairs]
    references = [pair.target for pair in part.pairs]
    names = [one.name for one in part.measurements if one.name != COMET]
    others = measure_corpus(other_texts, references, names, target_language=part.direction.target)
    if comet is not None:
        others.append(measure_comet(comet, sources, other_texts, references))
    return compare_systems(part.measurements, others, against, significance)


def _translations(run: str, part: DirectionReport, overrides: Sequence[str]) -> list[str]:
    """What another run makes of the same sentences."""
    taken = [one for one in overrides if not one.startswith(("data.", "validation."))]  # what is measured is of one run
    translator = load_run(run, taken, command="validate --source").translator
    if len(translator.pipeline.data.directions) > 1:
        translator = translator.towards(part.direction.target, part.direction.source)
    sources = [pair.source for pair in part.pairs]
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
        found.append(by_number(measured, "rarest word of source, in training", frequencies, FREQUENCIES))
    if len({pair.corpus for pair in pairs}) > 1:
        names = [corpus_name(loaded.config.data, pair.corpus) for pair in pairs]
        found.append(by_name(measured, "corpus", names))
    return found
