"""`tfm score`: the scores of translations in a file against references in files; no model is needed."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from transformer_cli.commands.command_line import (
    CometScoreOption,
    JsonOption,
    ScoresOption,
    SignificanceOption,
)
from transformer_cli.commands.input_lines import check_input, opened_lines
from transformer_cli.commands.output import STANDARD, fitting, show
from transformer_cli.config.schema import SCORES_BY_DEFAULT, ScoreName
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import counted
from transformer_cli.text import languages

if TYPE_CHECKING:
    from transformer_cli.evaluation.metrics import Measurement, Score

logger = logging.getLogger(__name__)


def score_command(
    hypothesis: Annotated[
        Path,
        typer.Argument(
            help="The translations, one per line; - is standard input. The signatures of the scores cannot say how they were made."
        ),
    ],
    references: Annotated[
        list[Path],
        typer.Argument(help="The reference translations; several files: several references."),
    ],
    scores: ScoresOption = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="LANGUAGE",
            help="The target language, for BLEU and TER. Default: by the script of the references.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Translations of another system to compare with."),
    ] = None,
    significance: SignificanceOption = None,
    other_seeds: Annotated[
        list[Path] | None,
        typer.Option(
            "--other-seed",
            help="Translations of the same system, trained with another seed; may be repeated. Prints the mean of each score over all seeds.",
        ),
    ] = None,
    comet: CometScoreOption = None,
    source: Annotated[Path | None, typer.Option("--source", help="With --comet: the text that was translated.")] = None,
    breakdown: Annotated[
        bool, typer.Option("--breakdown", help="Also score groups, by the length of the reference.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Score translations in a file against references. BLEU, chrF, TER and more; needs no model."""
    from transformer_cli.evaluation.breakdown import LENGTHS, by_number, lengths_in_words
    from transformer_cli.evaluation.metrics import measure_corpus, splitting_language
    from transformer_cli.evaluation.seeds import scores_of_seeds, seed_lines
    from transformer_cli.evaluation.system_comparison import compare_systems

    names = chosen_scores(scores)
    check_significance(significance, has_other=against is not None)
    language = None if to is None else target_language(to)
    _check_comet(references, source=source, comet=comet)
    optional = [path for path in (against, source) if path is not None]
    seeds = other_seeds or []
    _require_different([hypothesis, *seeds])
    _require_different([hypothesis, *([against] if against else [])])
    texts = _lines_of_all([hypothesis, *references, *seeds, *optional])
    after_references = 1 + len(references)
    hypotheses, reference_texts = texts[0], texts[1:after_references]
    after_seeds = after_references + len(seeds)
    language = splitting_language(reference_texts[0], language)
    model = None
    if comet is not None:
        from transformer_cli.decoding.comet import load_comet

        model = load_comet(comet, as_command=True)

    def measure(lines: list[str]) -> list[Measurement]:
        """Measure the translations of a system."""
        measured = measure_corpus(lines, reference_texts, names, target_language=language)
        if model is not None:
            from transformer_cli.evaluation.comet_score import measure_comet

            measured.append(measure_comet(model, texts[-1], lines, reference_texts[0]))
        return measured

    measured = measure(hypotheses)
    found = [measurement.score(with_interval=True) for measurement in measured]
    figures: dict[str, Any] = {
        "hypothesis": str(hypothesis),
        "references": [str(path) for path in references],
        "num_sentences": len(hypotheses),
        "scores": [score.as_json() for score in found],
    }
    lines = [f"{counted(len(hypotheses), 'sentence')}; {intervals()}", *score_lines(found)]
    if seeds:
        seed_measurements = [measured, *map(measure, texts[after_references:after_seeds])]
        over_seeds = scores_of_seeds(seed_measurements)
        figures["seeds"] = {
            "hypotheses": [str(path) for path in (hypothesis, *seeds)],
            "scores": [each.as_json() for each in over_seeds],
        }
        lines += ["", *seed_lines(over_seeds)]
    if against:
        others = measure(texts[after_seeds])
        comparison = compare_systems(measured, others, str(against), significance or "bootstrap")
        figures["against"] = {"hypothesis": str(hypothesis), **comparison.as_json()}
        lines += ["", *comparison.lines()]
        if seeds:
            lines += [f"This compares {hypothesis} alone with {against}: p and * say nothing about other seeds."]
    if breakdown:
        unit, lengths = lengths_in_words(reference_texts[0], language)
        groups = by_number(measured, f"{unit} of reference", lengths, LENGTHS)
        figures["breakdown"] = [groups.as_json()]
        lines += ["", *fitting(groups.lines())]
    show(figures, lines, as_json=as_json)


def _require_different(systems: Sequence[Path]) -> None:
    """Refuse a file of translations that is given twice, perhaps under several names: it would be compared with itself.

    Raises:
        UsageError: one is.
    """
    files = [path for path in systems if path.is_file()]
    for one, other in combinations(files, 2):
        if one.samefile(other):
            raise UsageError(
                f"{other}: this is the same file as {one}, so it would be compared with itself",
                hint="give the translations of another system to --against, and those of other seeds to --other-seed",
            )


def _lines_of_all(paths: Sequence[Path]) -> list[list[str]]:
    """The lines of each file.

    Raises:
        UsageError: standard input is named twice.
        MissingInputError: there is no such file.
        DataError: the numbers of lines differ, or there is no line.
    """
    if paths.count(STANDARD) > 1:
        raise UsageError("- (standard input) is given more than once")
    texts = [given_lines(path, "tfm score") for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise DataError(
                f"{paths[0]} has {counted(len(texts[0]), 'line')}, {path} has {counted(len(lines), 'line')}",
                hint="line N of each file must belong to the same sentence; empty lines count",
            )
    if not texts[0]:
        raise DataError(f"{paths[0]} is empty, so there is no sentence to score")
    return texts


def _check_comet(references: Sequence[Path], *, source: Path | None, comet: Path | None) -> None:
    """Refuse what COMET cannot score, before anything is read."""
    if (comet is None) != (source is None):
        given, missing = ("--comet", "--source") if comet else ("--source", "--comet")
        raise UsageError(
            f"{given} needs {missing}",
            hint="COMET reads the source, too: --comet FOLDER --source FILE",
        )
    if comet is not None and len(references) > 1:
        raise UsageError(
            f"--comet reads one reference, and {len(references)} files are given",
            hint="name one file of references, or leave out --comet",
        )


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
            raise UsageError(f"--scores: there is no score {name!r}", hint=f"{meant}known: {', '.join(known)}")
    if not wanted:
        raise UsageError("--scores names no score", hint=f"known: {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(wanted))


def check_significance(test: str | None, *, has_other: bool) -> None:
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
    code = languages.language_code(given.strip()) or languages.named_language(given)
    if code is None:
        similar = difflib.get_close_matches(given.strip().casefold(), languages.LANGUAGE_OF_NAME, n=1, cutoff=0.8)
        meant = f"did you mean {similar[0]}? " if similar else ""
        raise UsageError(
            f"--to {given}: this is not a known language",
            hint=f"{meant}give a code such as zh or pt-BR, or a name such as Chinese",
        )
    if not (languages.is_known_language(code) or languages.has_name(code)):
        logger.warning(
            "--to %s: this code is not known here; BLEU and TER split the text at spaces and punctuation marks",
            given,
        )
    return code


def given_lines(path: Path, taker: str) -> list[str]:
    """All lines of a file, compressed or not, of a pipe, or of standard input (-).

    Bytes that are not UTF-8 become U+FFFD, with a warning.

    Args:
        taker: the command or option that takes the file, for messages.
    """
    if path != STANDARD:
        check_input(path, taker)
    with opened_lines(path) as batches:
        return [line for batch in batches for line in batch]


def intervals() -> str:
    """What stands behind ± in a table of scores."""
    from transformer_cli.evaluation.metrics import NUM_SAMPLES, SEED

    return f"± 95 % confidence interval, bootstrap, {NUM_SAMPLES:,} samples, seed {SEED}"


def score_lines(scores: Sequence[Score]) -> list[str]:
    """The scores as a table for people."""
    return fitting(score.line() for score in scores)
