"""`tfm score`: the scores of translations in a file against references in files; no model is needed."""

import difflib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from transformer_cli.commands.streams.input_lines import check_input, opened_lines
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.commands.streams.output import fitting, show
from transformer_cli.config.decoding import SCORES_BY_DEFAULT, ScoreName
from transformer_cli.evaluation.breakdown import LENGTHS, by_number, lengths_in_words
from transformer_cli.evaluation.metrics import Measurement, Score, measure_corpus
from transformer_cli.evaluation.scores import resampling
from transformer_cli.evaluation.system_comparison import SignificanceTest, compare
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.text import languages

logger = logging.getLogger(__name__)

INTERVALS = f"± 95 % confidence interval, bootstrap, {resampling.NUM_SAMPLES:,} samples, seed {resampling.SEED}"


class Texts(NamedTuple):
    """The files that `tfm score` reads; one of them may be standard input (-)."""

    hypothesis: Path
    references: tuple[Path, ...]
    against: Path | None = None
    """The translations of another system, with which this one is compared."""
    source: Path | None = None
    """The text that was translated; COMET needs it."""
    comet: Path | None = None
    """The folder of a COMET model."""


def run_scoring(
    texts: Texts,
    *,
    scores: str | None,
    language: str | None,
    has_breakdown: bool = False,
    significance: SignificanceTest | None = None,
    as_json: bool,
) -> None:
    """Score a file against one or several files of references; print a table, or JSON.

    Args:
        scores: names such as "bleu,chrf++"; None: all that need no further package.
        language: the target language; it decides how BLEU and TER split text that has no spaces.
        has_breakdown: whether groups of sentences are scored too, by the length of the first reference.
        significance: the test for the comparison with another system; None: the paired bootstrap.

    Raises:
        UsageError: an unknown score, a target language that is no language, a test without a system to
            compare with, COMET without a source, or standard input is named twice.
        MissingInputError: there is no such file.
        DataError: the numbers of lines differ, or there is no line.
    """
    names = chosen_scores(scores)
    check_significance(significance, has_other=texts.against is not None)
    language = None if language is None else target_language(language)
    _check_comet(texts)
    read = _read(texts)
    hypotheses, references = read.hypotheses, read.references
    measures = _measures(texts, read, names, language)
    measured = measures(hypotheses)
    found = [measurement.score(with_interval=True) for measurement in measured]
    figures: dict[str, Any] = {
        "hypothesis": str(texts.hypothesis),
        "references": [str(path) for path in texts.references],
        "num_sentences": len(hypotheses),
        "scores": [score.as_json() for score in found],
    }
    lines = [f"{len(hypotheses):,} sentences; {INTERVALS}", *score_lines(found)]
    if texts.against:
        comparison = compare(
            measured, measures(read.others), str(texts.against), significance or "bootstrap"
        )
        figures["against"] = comparison.as_json()
        lines += ["", *comparison.lines()]
    if has_breakdown:
        unit, lengths = lengths_in_words(references[0], language)
        breakdown = by_number(measured, f"{unit} of reference", lengths, LENGTHS)
        figures["breakdown"] = [breakdown.as_json()]
        lines += ["", *fitting(breakdown.lines())]
    show(figures, lines, as_json=as_json)


class _Read(NamedTuple):
    """The lines of the files."""

    hypotheses: list[str]
    references: list[list[str]]
    others: list[str]
    sources: list[str]


def _read(texts: Texts) -> _Read:
    """All lines; empty lists for the other system and the source, if they are not given."""
    optional = [path for path in (texts.against, texts.source) if path is not None]
    paths = [texts.hypothesis, *texts.references, *optional]
    if paths.count(STANDARD) > 1:
        raise UsageError("- (standard input) is given more than once")
    read = [lines_of(path, "tfm score") for path in paths]
    for path, lines in zip(paths, read, strict=True):
        if len(lines) != len(read[0]):
            raise DataError(
                f"{paths[0]} has {_num_lines(read[0])}, {path} has {_num_lines(lines)}",
                hint="line N of each file must belong to the same sentence; empty lines count",
            )
    if not read[0]:
        raise DataError(f"{paths[0]} is empty, so there is no sentence to score")
    num_references = len(texts.references)
    rest = read[1 + num_references :]
    others = rest.pop(0) if texts.against else []
    return _Read(read[0], read[1 : 1 + num_references], others, rest[0] if rest else [])


def _check_comet(texts: Texts) -> None:
    """Refuse what COMET cannot score, before anything is read."""
    if (texts.comet is None) != (texts.source is None):
        given, missing = ("--comet", "--source") if texts.comet else ("--source", "--comet")
        raise UsageError(
            f"{given} needs {missing}",
            hint="COMET reads the source, too: --comet FOLDER --source FILE",
        )
    if texts.comet is not None and len(texts.references) > 1:
        raise UsageError(
            f"--comet reads one reference, and {len(texts.references)} files are given",
            hint="name one file of references, or leave out --comet",
        )


def _measures(
    texts: Texts, read: _Read, names: Sequence[str], language: str | None
) -> Callable[[list[str]], list[Measurement]]:
    """The function that measures the translations of a system."""

    def by_sacrebleu(lines: list[str]) -> list[Measurement]:
        return measure_corpus(lines, read.references, names, target_language=language)

    if texts.comet is None:
        return by_sacrebleu
    from transformer_cli.decoding.comet import load_comet  # it loads PyTorch
    from transformer_cli.evaluation.comet_score import measure_comet

    model = load_comet(texts.comet, as_command=True)
    return lambda lines: [
        *by_sacrebleu(lines),
        measure_comet(model, read.sources, lines, read.references[0]),
    ]


def chosen_scores(names: str | None) -> tuple[ScoreName, ...]:
    """The scores that an option names, separated by commas; None: all that need no further package.

    Raises:
        UsageError: there is no such score.
    """
    if names is None:
        return SCORES_BY_DEFAULT
    known = {str(name): name for name in get_args(ScoreName)}
    wanted = [name.strip().lower() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            similar = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {similar[0]}? " if similar else ""
            raise UsageError(
                f"--scores: there is no score {name!r}", hint=f"{meant}known: {', '.join(known)}"
            )
    if not wanted:
        raise UsageError("--scores names no score", hint=f"known: {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(wanted))


def check_significance(test: SignificanceTest | None, *, has_other: bool) -> None:
    """Refuse a test of significance where no other system is given.

    Raises:
        UsageError: there is none.
    """
    if test is not None and not has_other:
        raise UsageError(
            "--significance works only with --against",
            hint="add --against with the other system, or leave out --significance",
        )


def target_language(given: str) -> str:
    """The code of a language that a person gives as a code or a name; a warning tells of a code that is not known.

    Raises:
        UsageError: it is neither a code nor a known name.
    """
    code = languages.language_code(given.strip())
    if code is None:
        similar = difflib.get_close_matches(
            given.strip().casefold(), languages.LANGUAGE_OF_NAME, n=1, cutoff=0.8
        )
        meant = f"did you mean {similar[0]}? " if similar else ""
        raise UsageError(
            f"--to {given}: this is not a known language",
            hint=f"{meant}give a code such as zh or pt-BR, or a name such as Chinese",
        )
    if not languages.is_known_language(code):
        logger.warning(
            "--to %s: this code is not known here; BLEU and TER split the text at spaces and punctuation marks",
            given,
        )
    return code


def lines_of(path: Path, taker: str) -> list[str]:
    """All lines of a file, compressed or not, of a pipe, or of standard input (-).

    Bytes that are not UTF-8 become U+FFFD, with a warning.

    Args:
        taker: the command or option that takes the file, for messages.
    """
    if path != STANDARD:
        check_input(path, taker)
    with opened_lines(None if path == STANDARD else path) as batches:
        return [line for batch in batches for line in batch]


def score_lines(scores: Sequence[Score]) -> list[str]:
    """The scores as a table for people."""
    return fitting(score.line() for score in scores)


def _num_lines(text: Sequence[str]) -> str:
    return "1 line" if len(text) == 1 else f"{len(text):,} lines"
