"""`tfm score`: the scores of translations in a file against references in files; no model is needed."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from transformer_cli.commands.streams.input_lines import check_input, opened_lines
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.commands.streams.output import fitting, show
from transformer_cli.config.decoding import SCORES_BY_DEFAULT, ScoreName
from transformer_cli.errors import DataError, UsageError
from transformer_cli.evaluation.metrics import Score, measure_corpus
from transformer_cli.evaluation.scores import resampling
from transformer_cli.evaluation.system_comparison import compare

INTERVALS = f"± 95 % confidence interval, bootstrap, {resampling.NUM_SAMPLES:,} samples, seed {resampling.SEED}"


def run_scoring(
    hypothesis: Path,
    references: Sequence[Path],
    *,
    scores: str | None,
    language: str | None,
    against: Path | None,
    as_json: bool,
) -> None:
    """Score a file against one or several files of references; print a table, or JSON.

    Args:
        scores: names such as "bleu,chrf++"; None: all that need no further package.
        language: the target language; it decides how BLEU and TER split text that has no spaces.
        against: the translations of another system, with which this one is compared.

    Raises:
        UsageError: an unknown score, or standard input is named twice.
        MissingInputError: there is no such file.
        DataError: the numbers of lines differ, or there is no line.
    """
    names = chosen_scores(scores)
    paths = [hypothesis, *references, *([against] if against else [])]
    if paths.count(STANDARD) > 1:
        raise UsageError("- (standard input) is given more than once")
    texts = [lines_of(path, "tfm score") for path in paths]
    require_equal_numbers(paths, texts)
    if not texts[0]:
        raise DataError(f"{hypothesis} is empty, so there is no sentence to score")
    its_references = texts[1 : 1 + len(references)]
    measured = measure_corpus(texts[0], its_references, names, target_language=language)
    found = [measurement.score(with_interval=True) for measurement in measured]
    figures: dict[str, Any] = {
        "hypothesis": str(hypothesis),
        "references": [str(path) for path in references],
        "num_sentences": len(texts[0]),
        "scores": [score.as_json() for score in found],
    }
    lines = [f"{len(texts[0]):,} sentences; {INTERVALS}", *score_lines(found)]
    if against:
        others = measure_corpus(texts[-1], its_references, names, target_language=language)
        comparison = compare(measured, others, str(against))
        figures["against"] = comparison.as_json()
        lines += ["", *comparison.lines()]
    show(figures, lines, as_json=as_json)


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


def require_equal_numbers(paths: Sequence[Path], texts: Sequence[Sequence[str]]) -> None:
    """Raise DataError if a text has another number of lines than the first one."""
    for path, text in zip(paths, texts, strict=True):
        if len(text) != len(texts[0]):
            raise DataError(
                f"{paths[0]} has {_num_lines(texts[0])}, {path} has {_num_lines(text)}",
                hint="line N of each file must belong to the same sentence; empty lines count",
            )


def score_lines(scores: Sequence[Score]) -> list[str]:
    """The scores as a table for people."""
    return fitting(score.line() for score in scores)


def _num_lines(text: Sequence[str]) -> str:
    return "1 line" if len(text) == 1 else f"{len(text):,} lines"
