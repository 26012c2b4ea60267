"""The options of `tfm validate`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    BeamOption,
    CometScoreOption,
    DebugOption,
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
from transformer_cli.process.errors import UsageError

SplitOption = Annotated[
    Literal["validation", "test"] | None,
    typer.Option("--split", help="Which part of the corpus. Default: validation."),
]
SourceOption = Annotated[
    Path | None,
    typer.Option(
        "--source", help="A source text to score instead of a split; - is standard input."
    ),
]
ReferenceOption = Annotated[
    Path | None, typer.Option("--reference", help="The reference translations of --source.")
]
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
    typer.Option(
        "--breakdown", help="Also score groups: by length, by the rarest word, by corpus."
    ),
]
CalibrationOption = Annotated[
    bool,
    typer.Option(
        "--calibration", help="Also compare the probabilities of tokens with their accuracy."
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page (HTML) with scores, curves and the worst sentences.",
    ),
]


def validate(
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
    overrides: Annotated[
        Overrides, set_option("decoding.beam_size=8", completion.settings_of_validating)
    ] = None,
    beam_size: BeamOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Score a run on held-out text. Loss, perplexity, BLEU, chrF, TER and more, with intervals."""
    if (source is None) != (reference is None):
        raise UsageError("give both --source and --reference, or neither")
    if source is not None and split is not None:
        raise UsageError("give either --split, or --source and --reference")
    check_page_name("--report", report)
    from transformer_cli.commands.held_out_text import HeldOut
    from transformer_cli.commands.judgements import Wanted
    from transformer_cli.commands.score import chosen_scores
    from transformer_cli.commands.validate import run_validation
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    settings = list(overrides or [])
    if beam_size is not None:
        settings.append(f"decoding.beam_size={beam_size}")
    if scores is not None:
        settings.append(f"validation.scores=[{','.join(chosen_scores(scores))}]")
    files = (source, reference) if source and reference else None
    held_out = HeldOut(split or "validation", files, (to, from_))
    run_validation(
        run,
        held_out,
        Wanted(against, breakdown, calibration, report, significance, comet),
        overrides=settings,
        as_json=as_json,
    )
