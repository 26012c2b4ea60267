"""`tfm validate`: the loss and the scores of a run on a split, or on two given files."""

from __future__ import annotations

import json
import logging
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transformer_cli.checkpoint.run_folder import name_of_run
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    BeamOption,
    CometScoreOption,
    FromOption,
    JsonOption,
    Overrides,
    RunsOption,
    ScoresOption,
    SignificanceOption,
    ToOption,
    check_page_name,
    set_option,
)
from transformer_cli.commands.input_lines import opened_stream, pieces_of_stream
from transformer_cli.commands.output import (
    STANDARD,
    check_output,
    descriptor_of,
    fitting,
    opened_output,
    show,
)
from transformer_cli.commands.score import (
    check_significance,
    chosen_scores,
    given_lines,
    intervals,
    score_lines,
)
from transformer_cli.config import DecodingConfig, FilesData, SequencesData, SplitName
from transformer_cli.config.data import Direction, FileCorpus
from transformer_cli.config.schema import SCORES_BY_DEFAULT
from transformer_cli.config.section import flat_settings
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.selection import first_of_each_direction
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.data.sources.lines import HOW_TO_CONVERT, NotUtf8Error, cut_lines, decode_pairs, read_lines
from transformer_cli.data.sources.local_files import pair_lines
from transformer_cli.process.errors import CannotCreateError, DataError, UsageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.storage import checksum, require_name_in_utf8, require_replaceable_folder, staged_folder

if TYPE_CHECKING:
    from transformer_cli.decoding import Translator
    from transformer_cli.decoding.loading import LoadedRun
    from transformer_cli.evaluation import ValidationReport
    from transformer_cli.evaluation.judgements import Judgements
    from transformer_cli.evaluation.validation import DirectionReport

logger = logging.getLogger(__name__)

SplitOption = Annotated[
    Literal["validation", "test"] | None,
    typer.Option("--split", help="Which part of the corpus. Default: validation."),
]
SourceOption = Annotated[
    Path | None,
    typer.Option("--source", help="A source text to score instead of a split; - is standard input."),
]
ReferenceOption = Annotated[Path | None, typer.Option("--reference", help="The reference translations of --source.")]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="RUN|FILE",
        help="Another run, or a file with translations, to compare with: p-values.",
        autocompletion=completion.runs,
    ),
]
BreakdownOption = Annotated[
    bool,
    typer.Option("--breakdown", help="Also score groups: by length, by the rarest word, by corpus."),
]
CalibrationOption = Annotated[
    bool,
    typer.Option("--calibration", help="Also compare the probabilities of tokens with their accuracy."),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page (HTML) with scores, curves and the worst sentences.",
    ),
]
WriteOption = Annotated[
    Path | None,
    typer.Option(
        "--write",
        metavar="FOLDER",
        help="Write the texts that were scored, one sentence a line, for other programs: test.source.en, "
        "test.reference.it, test.hypotheses.it; with several directions test.en-it.source.en, and so on.",
    ),
]
RECORD = "tfm-validate.json"
"""In a folder of --write: what --json prints. The same command may replace a folder with this file."""
_OTHER_FOLDER = "name another folder"
_LINE_ENDS = re.compile("[\\n\\r\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]+")  # as of `str.splitlines`


def validate_command(
    run: RunsOption = None,
    split: SplitOption = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    scores: ScoresOption = None,
    against: AgainstOption = None,
    significance: SignificanceOption = None,
    breakdown: BreakdownOption = False,
    calibration: CalibrationOption = False,
    comet: CometScoreOption = None,
    report: ReportOption = None,
    write: WriteOption = None,
    overrides: Annotated[Overrides, set_option("decoding.beam_size=8", completion.settings_of_validating)] = None,
    beam_size: BeamOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a run on held-out text. Loss, perplexity, BLEU, chrF, TER and more, with intervals."""
    _check_options(split, source, reference, against, significance, report, write)
    from transformer_cli.commands.sentence_progress import sentence_progress
    from transformer_cli.decoding.comet import load_comet
    from transformer_cli.decoding.engine import ExplainingEngine
    from transformer_cli.decoding.loading import load_run
    from transformer_cli.evaluation import validate
    from transformer_cli.evaluation.comet_score import with_comet
    from transformer_cli.evaluation.judgements import Judgements, judge, report_page, require_means

    settings = list(overrides or [])
    if beam_size is not None:
        settings.append(f"decoding.beam_size={beam_size}")
    if scores is not None:
        settings.append(f"validation.scores=[{','.join(chosen_scores(scores))}]")
    comet_model = None if comet is None else load_comet(comet, as_command=True)
    loaded = load_run(run, settings, command="validate --source" if source else "validate")
    is_directed = bool(source or to or from_)
    translator = loaded.translator.towards(to, from_) if is_directed else loaded.translator
    pairs = pairs_to_score(loaded, translator, split, source, reference)
    # All scores that need no further package are measured, unless an override says otherwise: the config of the run
    # says what is measured during training.
    is_asked = "validation.scores" in loaded.overridden
    measured = loaded.config.validation.scores if is_asked else SCORES_BY_DEFAULT
    judging = _first_judging(against, breakdown, calibration, report)
    needing = judging or ("--comet" if comet else "--write" if write else None)
    if not measured and needing:
        raise UsageError(f"{needing} needs a score", hint="name one: --scores chrf")
    if judging:
        require_means(judging, translator, pairs, against=against, has_calibration=calibration)
    other_texts = _lines_against(against, len(pairs))
    facts = _facts(loaded, f"{source} / {reference}" if source else split or "validation")
    stem = "given" if source else facts["split"]
    if write is not None:
        _check_earlier_texts(write, facts | {"num_sentences": len(pairs)}, _names_of_texts(stem, translator, pairs))
    explains = isinstance(translator.engine, ExplainingEngine)
    with sentence_progress():
        found = validate(
            translator,
            pairs,
            scores=measured,
            num_samples=loaded.config.validation.num_samples,
            with_intervals=True,
            with_details=explains and (calibration or report is not None),
        )
    if comet_model is not None:
        found = with_comet(found, comet_model)
    judged = Judgements()
    if judging:
        with sentence_progress():
            judged = judge(
                found,
                loaded,
                translator,
                against=against,
                other_texts=other_texts,
                significance=significance,
                has_breakdown=breakdown or report is not None,
                has_calibration=calibration or report is not None,
                overrides=settings,
                comet=comet_model,
            )
    if report is not None:
        page = report_page(found, judged, loaded, list(facts.items()))
        with opened_output(report) as write_page:
            write_page(page.encode())
        logger.info("report: %s", report)
    figures, lines = _shown(loaded, facts, found, judged, is_split=source is None)
    if write is not None:
        names = _names_of_texts(stem, translator, pairs)
        _write_texts(write, names, found.parts, facts | figures)
    show(figures, lines, as_json=as_json)


def _check_options(
    split: str | None,
    source: Path | None,
    reference: Path | None,
    against: str | None,
    significance: str | None,
    report: Path | None,
    write: Path | None,
) -> None:
    """Refuse what cannot work, before a model is loaded.

    Raises:
        UsageError: options do not fit together.
        MissingInputError: there is no such run to compare with.
        CannotCreateError: the report or the folder of texts cannot be written.
    """
    check_text(split, source, reference)
    check_page_name("--report", report)
    check_significance(significance, has_other=against is not None)
    if against is not None and not Path(against).is_file():
        find_run(against)
    if report is not None:
        check_output(report)
    if write is not None:
        require_replaceable_folder(write, RECORD, "one of tfm validate --write", other=_OTHER_FOLDER)
        for read in (source, reference, Path(against or "")):
            if read is not None and read.is_file() and read.resolve().is_relative_to(write.resolve()):
                raise UsageError(
                    f"--write {write}: {read} is read from this folder, which would be replaced",
                    hint=_OTHER_FOLDER,
                )


def check_text(split: str | None, source: Path | None, reference: Path | None) -> None:
    """Refuse a split together with files, and one file without the other.

    Raises:
        UsageError: the options do not fit together.
    """
    if (source is None) != (reference is None):
        raise UsageError(
            "give both --source and --reference, or neither",
            hint="--source FILE has the sentences, and --reference FILE their right translations, line by line",
        )
    if source is not None and split is not None:
        raise UsageError(
            "give either --split, or --source and --reference",
            hint="leave out --split to take the two files",
        )


def _first_judging(against: str | None, breakdown: bool, calibration: bool, report: Path | None) -> str | None:
    """The first option that needs one direction."""
    given = {
        "--against": against is not None,
        "--breakdown": breakdown,
        "--calibration": calibration,
        "--report": report is not None,
    }
    return next((option for option, is_given in given.items() if is_given), None)


def pairs_to_score(
    loaded: LoadedRun,
    translator: Translator,
    split: SplitName | None,
    source: Path | None,
    reference: Path | None,
) -> list[SentencePair]:
    """The pairs that are validated, in the directions of the translator: all, unless an override says otherwise.

    Raises:
        DataError: the run has no such split, or the files do not fit together.
    """
    from transformer_cli.evaluation.held_out_text import pairs_of_split

    if source and reference:
        languages = loaded.config.data.directions[translator.pipeline.direction or 0]
        pairs = _pairs_of_files(source, reference, languages)
    else:
        pairs = pairs_of_split(loaded, split or "validation")
        direction = translator.pipeline.direction
        if direction is not None:
            pairs = [pair for pair in pairs if pair.direction == direction]
    if "validation.max_sentences" in loaded.overridden:
        pairs = first_of_each_direction(pairs, loaded.config.validation.max_sentences)
    return pairs


def _lines_against(against: str | None, num_sentences: int) -> list[str] | None:
    """The translations of a file to compare with; None if there is none, or if it is a run."""
    if against is None or not Path(against).is_file():
        return None
    texts = given_lines(Path(against), "--against")
    if len(texts) != num_sentences:
        raise DataError(
            f"{against} has {len(texts):,} lines, but {num_sentences:,} sentences are scored",
            hint="line N of the file must translate sentence N",
        )
    return texts


def _names_of_texts(stem: str, translator: Translator, pairs: Sequence[SentencePair]) -> list[tuple[str, str, str]]:
    """The files of the sources, references and translations, in the order of the directions."""
    from transformer_cli.evaluation.validation import by_direction

    directions = [directed_translator.pipeline.languages for directed_translator, _ in by_direction(translator, pairs)]
    return [
        (f"{begin}.source.{source}", f"{begin}.reference.{target}", f"{begin}.hypotheses.{target}")
        for source, target in directions
        for begin in [stem if len(directions) == 1 else f"{stem}.{source}-{target}"]
    ]


def _check_earlier_texts(folder: Path, facts: Mapping[str, Any], names: Sequence[tuple[str, str, str]]) -> None:
    """Refuse a folder with the texts of another validation, before the work: they would be lost.

    The same command may write its texts again, also after more training.

    Raises:
        CannotCreateError: the folder has the texts of another run, split, direction or setting.
    """
    record = folder / RECORD
    if not record.is_file():
        return
    earlier = json.loads(record.read_bytes())
    settings = [name for name in earlier if name.partition(".")[0] in DecodingConfig.model_fields]
    compared = [name for name in dict.fromkeys([*facts, *settings]) if name != "step"]
    values = {name: [side.get(name, "by default") for side in (earlier, facts)] for name in compared}
    changes = [f"{name} {old}, not {new}" for name, (old, new) in values.items() if old != new]
    changes += sorted(set(earlier["files"]).difference(*names))[:1]
    if changes:
        raise CannotCreateError(
            f"{folder}: has the texts of another validation, which would be lost: {on_one_line(changes[0])}",
            hint=f"{_OTHER_FOLDER}, or delete this one",
        )


def _write_texts(
    folder: Path,
    names: Sequence[tuple[str, str, str]],
    reports: Sequence[DirectionReport],
    figures: Mapping[str, Any],
) -> None:
    """Write sources, references and translations as text files whose lines belong together, and the figures."""
    num_joined = 0
    checksums: dict[str, str] = {}
    is_replaced = (folder / RECORD).exists()
    with staged_folder(folder) as unfinished:
        for file_names, report in zip(names, reports, strict=True):
            texts = (
                [pair.source for pair in report.pairs],
                [pair.target for pair in report.pairs],
                [one.text for one in report.translations],
            )
            for name, sentences in zip(file_names, texts, strict=True):
                lines = [_LINE_ENDS.sub(" ", sentence) for sentence in sentences]
                num_joined += sum(map(str.__ne__, lines, sentences))
                text = "".join(f"{line}\n" for line in lines)
                (unfinished / name).write_text(text, encoding="utf-8", newline="\n")
                checksums[name] = checksum(unfinished / name)
        record = json.dumps({**figures, "files": checksums}, ensure_ascii=False, indent=1)
        (unfinished / RECORD).write_text(f"{record}\n", encoding="utf-8", newline="\n")
    if num_joined:
        logger.warning("sentences with a line end in them, written with a space: %d", num_joined)
    logger.info("texts: %s%s", folder, ", which replaces the earlier ones" if is_replaced else "")


def _shown(
    loaded: LoadedRun,
    facts: Mapping[str, str],
    report: ValidationReport,
    judged: Judgements,
    *,
    is_split: bool,
) -> tuple[dict[str, Any], list[str]]:
    """What --json prints, and the lines of the table."""
    from transformer_cli.evaluation.validation import exact_match_table, exact_matches

    rows = exact_matches(loaded.translator, loaded.config) if is_split else []
    figures = {"run": facts["run"], "split": facts["split"]} | report.as_json()
    del figures["num_target_tokens"]
    if "validation.num_samples" in loaded.overridden:
        figures["samples"] = [sample.as_json() for sample in report.samples]
    if rows:
        figures["exact_match"] = [row._asdict() for row in rows]
    heading = "  ".join(f"{what} {value}" for what, value in facts.items())
    lines = [heading, "", *_table(report)]
    if isinstance(loaded.config.data, SequencesData) and is_split:
        lines += ["", *exact_match_table(rows, loaded.config.data.task)]
    report.unknown_words.report()  # it starts again from zero
    return figures | judged.as_json(), [*lines, *fitting(judged.lines())]


def _facts(loaded: LoadedRun, held_out: str) -> dict[str, str]:
    """What was measured, and with which settings; settings that nobody changes often are told only if changed."""
    decoding = loaded.config.decoding
    facts = {
        "run": " + ".join(name_of_run(member.folder) for member in loaded.members),
        "step": ", ".join(str(member.step) for member in loaded.members),
        "split": held_out,
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
        lines.append(intervals())
    lines += _table_of_directions(report.directions)
    for sample in report.samples:
        lines += ["", *sample.lines()]
    return lines


def _table_of_directions(reports: Sequence[DirectionReport]) -> list[str]:
    """One row for each direction; nothing if there is only one."""
    if not reports:
        return []
    from transformer_cli.evaluation.metrics import num_digits

    names = ["loss", *(score.name for score in reports[0].scores)]
    widths = [max(10, len(name) + 2) for name in names]
    titles = "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    lines = ["", f"{'direction':<12}{'sentences':>10}{titles}"]
    for report in reports:
        values = [report.loss, *(score.value for score in report.scores)]
        numbers = "".join(
            f"{value:>{width}.{4 if name == 'loss' else num_digits(name)}f}"
            for name, value, width in zip(names, values, widths, strict=True)
        )
        lines.append(f"{report.direction!s:<12}{report.num_sentences:>10,}{numbers}")
    return lines


def _pairs_of_files(source: Path, reference: Path, languages: Direction) -> list[SentencePair]:
    """Line N of the source with line N of the reference; either may come through a pipe or standard input.

    Raises:
        DataError: they have different numbers of lines, or none, or are not UTF-8.
    """
    report = ReadingReport()
    try:
        if _is_stream(source) or _is_stream(reference):
            pairs = _pairs_of_streams(source, reference, report)
        else:
            pairs = _pairs_on_disk(source, reference, languages, report)
    except NotUtf8Error as error:
        # Its hint names a setting of corpora, which these files do not have.
        raise DataError(error.message, hint=HOW_TO_CONVERT) from error
    for reason, finding in report.skipped.items():
        logger.warning("skipped pairs: %d, reason: %s, first: %s", finding.count, reason, finding.example)
    return pairs


def _pairs_on_disk(source: Path, reference: Path, languages: Direction, report: ReadingReport) -> list[SentencePair]:
    paths = str(source.absolute()), str(reference.absolute())
    for path in paths:
        require_name_in_utf8(path)
    corpus = FileCorpus(source_path=paths[0], target_path=paths[1], split="test", format="text")
    data = FilesData(
        source="files", corpora=(corpus,), source_language=languages.source, target_language=languages.target
    )
    return list(read_pairs(data, "test", seed=0, report=report))


def _is_stream(path: Path) -> bool:
    """Whether a path can be read only once: standard input (-), an open descriptor, a pipe or a device."""
    if _descriptor(path) is not None:
        return True
    mode = path.stat().st_mode if path.exists() else 0
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _pairs_of_streams(source: Path, reference: Path, report: ReadingReport) -> list[SentencePair]:
    if _descriptor(source) is not None and _descriptor(source) == _descriptor(reference):
        raise UsageError(
            f"--source {source} and --reference {reference} name the same input",
            hint="give two inputs: one with the sentences, one with their right translations",
        )
    names = str(source), str(reference)
    with ExitStack() as opened:
        sides = [_raw_lines(path, opened) for path in (source, reference)]
        rows = pair_lines((source, reference), *sides)
        texts = decode_pairs(rows, names, "error", report)
        pairs = [SentencePair(*sentences, 0) for sentences in texts]
    if not pairs:
        raise DataError(f"no sentence pair in {names[0]} and {names[1]}")
    return pairs


def _raw_lines(path: Path, opened: ExitStack) -> Iterator[bytes | None]:
    if not _is_stream(path):
        return read_lines(path)
    number = _descriptor(path)
    if number is None:
        number = opened.enter_context(opened_stream(path))
    return cut_lines(pieces_of_stream(number, str(path)), path)


def _descriptor(path: Path) -> int | None:
    return 0 if path == STANDARD else descriptor_of(path)
