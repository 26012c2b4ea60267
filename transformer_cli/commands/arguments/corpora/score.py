"""The arguments and options of `tfm score`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands.options import (
    CometScoreOption,
    DebugOption,
    JsonOption,
    ScoresOption,
    SignificanceOption,
)


def score(
    hypothesis: Annotated[
        Path, typer.Argument(help="The translations, one per line; - is standard input.")
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
            help="The target language; BLEU and TER need it if its text has no spaces.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Translations of another system to compare with."),
    ] = None,
    significance: SignificanceOption = None,
    comet: CometScoreOption = None,
    source: Annotated[
        Path | None, typer.Option("--source", help="With --comet: the text that was translated.")
    ] = None,
    breakdown: Annotated[
        bool, typer.Option("--breakdown", help="Also score groups, by the length of the reference.")
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Score translations in a file against references. BLEU, chrF, TER and more; needs no model."""
    from transformer_cli.commands.score import Texts, run_scoring
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    texts = Texts(hypothesis, tuple(references), against, source, comet)
    run_scoring(
        texts,
        scores=scores,
        language=to,
        has_breakdown=breakdown,
        significance=significance,
        as_json=as_json,
    )
