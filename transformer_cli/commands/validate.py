"""`tfm validate`: the loss and the scores of a run on a split, or on two given files."""

from collections.abc import Sequence
from typing import Any

from transformer_cli.commands.held_out_text import HeldOut, pairs_of
from transformer_cli.commands.judgements import (
    SCORES_ONLY,
    Wanted,
    check_wanted,
    judge,
    needs_details,
    require_means,
    write_report,
)
from transformer_cli.commands.score import INTERVALS, score_lines
from transformer_cli.commands.streams.output import fitting, show
from transformer_cli.commands.streams.sentence_progress import sentence_progress
from transformer_cli.config import DecodingConfig, SequencesData
from transformer_cli.config.decoding import SCORES_BY_DEFAULT
from transformer_cli.config.section import flat_settings
from transformer_cli.decoding.comet import load_comet
from transformer_cli.decoding.loading import LoadedRun, load_run
from transformer_cli.evaluation import ValidationReport, validate
from transformer_cli.evaluation.comet_score import with_comet
from transformer_cli.evaluation.synthetic_tasks import exact_match_table, exact_matches
from transformer_cli.evaluation.validation import DirectionReport


def run_validation(
    run: str | Sequence[str] | None,
    held_out: HeldOut,
    wanted: Wanted = SCORES_ONLY,
    *,
    overrides: Sequence[str],
    as_json: bool,
) -> None:
    """Validate a run on a split, or on given files (source, reference); print a table, or JSON.

    All pairs are scored, with all scores that need no further package, unless an override of
    validation.max_sentences or validation.scores says otherwise; the run's config says what is measured during
    training.

    Args:
        run: as in `load_run`; several are an ensemble.
    """
    files = held_out.files
    check_wanted(wanted)
    comet = None if wanted.comet is None else load_comet(wanted.comet, as_command=True)
    loaded = load_run(run, overrides, command="validate --source" if files else "validate")
    translator = loaded.translator
    if files or any(held_out.languages):
        translator = translator.towards(*held_out.languages)
    settings, asked = loaded.config.validation, loaded.overridden
    pairs = pairs_of(loaded, translator, held_out)
    scores = settings.scores if "validation.scores" in asked else SCORES_BY_DEFAULT
    require_means(translator, pairs, wanted, has_scores=bool(scores))
    with sentence_progress():
        report = validate(
            translator,
            pairs,
            scores=scores,
            num_samples=settings.num_samples,
            with_intervals=True,
            with_details=needs_details(wanted, translator),
        )
    if comet is not None:
        report = with_comet(report, comet, with_intervals=True)
    rows = [] if files else exact_matches(loaded.translator, loaded.config)
    facts = _facts(loaded, held_out)
    figures = {"run": facts["run"], "split": facts["split"]} | report.as_json()
    del figures["num_target_tokens"]
    if "validation.num_samples" in asked:
        figures["samples"] = [sample.as_json() for sample in report.samples]
    if rows:
        figures["exact_match"] = [row._asdict() for row in rows]
    heading = "  ".join(f"{what} {value}" for what, value in facts.items())
    lines = [heading, "", *_table(report)]
    if isinstance(loaded.config.data, SequencesData) and not files:
        lines += ["", *exact_match_table(rows, loaded.config.data.task)]
    with sentence_progress():
        judged = judge(report, wanted, loaded, translator, overrides, comet)
    figures |= judged.as_json()
    lines += judged.lines()
    if wanted.report is not None:
        write_report(wanted.report, report, judged, loaded, list(facts.items()))
    report.unknown_words.report()
    show(figures, lines, as_json=as_json)


def _facts(loaded: LoadedRun, held_out: HeldOut) -> dict[str, str]:
    """What was measured, and with which settings; settings that nobody changes often are told only if changed."""
    decoding = loaded.config.decoding
    facts = {
        "run": " + ".join(member.config.name for member in loaded.members),
        "step": ", ".join(str(member.step) for member in loaded.members),
        "split": held_out.name,
        "beam_size": str(decoding.beam_size),
        "length_penalty": str(decoding.length_penalty),
        "split_sentences": str(loaded.translator.pipeline.splits_sentences).lower(),
    }
    given, by_default = map(_settings_of, (decoding, DecodingConfig()))
    changed = {name: value for name, value in given.items() if by_default.get(name) != value}
    return facts | {
        name: str(value).lower()
        for name, value in changed.items()
        if name not in facts and name != "batch_tokens"  # it changes no translation
    }


def _settings_of(decoding: DecodingConfig) -> dict[str, Any]:
    return flat_settings(decoding.model_dump(mode="json", exclude_none=True))


def _table(report: ValidationReport) -> list[str]:
    unknown_words = report.unknown_words
    rows = [
        ("sentences", f"{report.num_sentences:,}", ""),
        ("loss", f"{report.loss:.4f}", "nats per target token"),
        ("perplexity", f"{report.perplexity:.2f}", ""),
    ]
    if unknown_words.num_words:
        share = 100 * unknown_words.num_unknown / unknown_words.num_words
        note = f"% of {unknown_words.num_words:,} words of the sources are not in the vocabulary"
        rows.append(("unknown words", f"{share:.2f}", note))
    lines = fitting(f"{name:<14}{value:>9}  {note}".rstrip() for name, value, note in rows)
    lines += score_lines(report.scores)
    if any(score.interval for score in report.scores):
        lines.append(INTERVALS)
    lines += _table_of_directions(report.directions)
    for sample in report.samples:
        lines += ["", *sample.lines()]
    return lines


def _table_of_directions(reports: Sequence[DirectionReport]) -> list[str]:
    """One row for each direction; nothing if there is only one."""
    if not reports:
        return []
    names = ["loss", *(score.name for score in reports[0].scores)]
    widths = [max(10, len(name) + 2) for name in names]
    titles = "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    lines = ["", f"{'direction':<12}{'sentences':>10}{titles}"]
    for report in reports:
        values = [report.loss, *(score.value for score in report.scores)]
        numbers = "".join(
            f"{value:>{width}.{4 if name == 'loss' else 2}f}"
            for name, value, width in zip(names, values, widths, strict=True)
        )
        lines.append(f"{report.direction!s:<12}{report.num_sentences:>10,}{numbers}")
    return lines
