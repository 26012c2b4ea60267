"""The COMET score of a corpus: the mean of what a COMET model says of its sentences."""

from collections.abc import Sequence
from dataclasses import replace

from transformer_cli.decoding.comet import CometModel
from transformer_cli.evaluation.metrics import MeanOfSegments, Measurement
from transformer_cli.evaluation.validation import DirectionReport, ValidationReport, mean_scores

COMET = "COMET"
"""The name of the score."""


def measure_comet(
    model: CometModel,
    sources: Sequence[str],
    translations: Sequence[str],
    references: Sequence[str],
) -> Measurement:
    """The COMET score of each sentence; the corpus score is that of the command `comet-score`.

    Args:
        model: scores each translation alone.
        sources, translations, references: a line of text for each sentence.
    """
    signature = {"model": model.name, "library": "unbabel-comet", "version": model.version}
    metric = MeanOfSegments(COMET, **signature)
    metric.num_refs = int(model.reads_references)
    statistics = [[score, 1.0] for score in model.scores(sources, translations, references)]
    return Measurement(COMET, metric, statistics)


def with_comet(report: ValidationReport, model: CometModel) -> ValidationReport:
    """The report, which holds the translations of all pairs, with COMET and its interval as the last score, in each direction."""
    parts = [_part_with_comet(part, model) for part in report.parts]
    return replace(report, parts=parts, scores=mean_scores(parts))


def _part_with_comet(part: DirectionReport, model: CometModel) -> DirectionReport:
    measured = measure_comet(
        model,
        [pair.source for pair in part.pairs],
        [translation.text for translation in part.translations],
        [pair.target for pair in part.pairs],
    )
    if part.measurements:
        measured = replace(measured, conditions=part.measurements[0].conditions)
    return replace(
        part,
        scores=[*part.scores, measured.score(with_interval=True)],
        measurements=[*part.measurements, measured],
    )
