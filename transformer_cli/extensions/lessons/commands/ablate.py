"""`tfm ablate`: asks for a prediction, trains a model with and without one of its parts, and explains the result."""

import json
import logging
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import JsonOption, Overrides, set_option
from transformer_cli.commands.output import fitting, show
from transformer_cli.extensions.lessons.ablations import ABLATIONS, Ablation, ablation_named
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import only_warnings
from transformer_cli.storage import replace_file

if TYPE_CHECKING:
    from transformer_cli.extensions.lessons.laboratory import VariantOutcome

RESULT_FILE = "result.json"
PICTURE_FILE = "curves.png"
WIDTH = 100

logger = logging.getLogger(__name__)


def ablate_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The ablation; without it, all are listed.",
            show_default=False,
            autocompletion=completion.ablations,
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder of its runs, its figures and its picture."),
    ] = Path("ablations"),
    prediction: Annotated[
        int | None,
        typer.Option(
            "--prediction",
            metavar="NUMBER",
            min=1,
            help="The number of your prediction. Default: asked on a terminal.",
        ),
    ] = None,
    answer: Annotated[
        bool,
        typer.Option("--answer", help="Train nothing; say what came out before, and why."),
    ] = False,
    overrides: Annotated[Overrides, set_option("seed=2", completion.settings)] = None,
    as_json: JsonOption = False,
) -> None:
    """Lessons: train small models with and without a part, on fixed tasks, and compare. Predict first what breaks without it.

    Each ablation has its own config, which --set changes; your own config is not read.
    """
    if name is None and (answer or prediction or overrides):
        raise UsageError("give the name of an ablation", hint="tfm ablate lists them; then: tfm ablate NAME")
    if answer and (prediction or overrides):
        raise UsageError("--answer trains nothing, so it takes neither --prediction nor --set")

    if name is None:
        facts = {"ablations": list(map(ablation_facts, ABLATIONS))}
        return show(facts, list_lines(ABLATIONS), as_json=as_json)
    ablation = ablation_named(name)
    if answer:
        lines = [*question_lines(ablation), "", *answer_lines(ablation, None)]
        return show(ablation_facts(ablation), lines, as_json=as_json)
    if prediction is not None and prediction > len(ablation.options):
        raise UsageError(
            f"--prediction {prediction}: this question has {len(ablation.options)} answers",
            hint=f"tfm ablate {ablation.name} --answer shows them; without --prediction, a terminal asks",
        )
    facts, lines = _trained(ablation, output / ablation.name, overrides or (), prediction)
    show(facts, lines, as_json=as_json)


def _trained(
    ablation: Ablation, folder: Path, overrides: Sequence[str], prediction: int | None
) -> tuple[dict[str, Any], list[str]]:
    """Ask for a prediction, train the models of an ablation, and keep the figures; returns facts and lines.

    Raises:
        As `train`.
    """
    from transformer_cli.extensions.lessons.laboratory import (
        AnnouncedTrainings,
        configs_of,
        curves_picture,
        kept_folder,
        remove_replaced,
        try_variants,
    )

    configs_of(ablation, overrides)  # a wrong setting is refused before the question is asked
    prediction = prediction or asked_prediction(ablation)
    with only_warnings(), kept_folder(folder):
        outcomes = try_variants(ablation, folder, overrides, callbacks=AnnouncedTrainings(ablation).callbacks)
    facts = ablation_facts(ablation) | {
        "overrides": list(overrides),
        "prediction": prediction,
        "outcomes": [outcome.as_json() for outcome in outcomes],
    }
    replace_file(folder / RESULT_FILE, json.dumps(facts, indent=1, ensure_ascii=False).encode())
    replace_file(folder / PICTURE_FILE, curves_picture(ablation, outcomes))
    for removed in remove_replaced(ablation, outcomes):
        logger.info(
            "%s: its checkpoints are deleted, because other commands would compute with the whole model",
            removed,
        )
    seconds = sum(outcome.cpu_seconds for outcome in outcomes)
    logger.info("%s: the curves of the loss; %.0f CPU seconds in all", folder / PICTURE_FILE, seconds)
    return facts, [*figure_lines(ablation, outcomes), "", *answer_lines(ablation, prediction)]


def asked_prediction(ablation: Ablation) -> int | None:
    """The prediction that a person types at a terminal; None if there is no terminal, or for an empty line."""
    for line in question_lines(ablation):
        logger.info("%s", line)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    numbers = [str(number + 1) for number in range(len(ablation.options))]
    while True:
        typed = typer.prompt(
            f"Your prediction ({' or '.join(numbers)}; Enter for none)",
            default="",
            show_default=False,
            err=True,
        ).strip()
        if not typed:
            return None
        if typed in numbers:
            return int(typed)


def list_lines(ablations: Sequence[Ablation]) -> Iterator[str]:
    """All ablations, one on a line."""
    width = max(len(one.name) for one in ablations)
    rows = (f"{one.name:<{width}}  {one.cpu_seconds:>3} s  {one.subject}" for one in ablations)
    yield from fitting(rows)
    yield ""
    yield "tfm ablate NAME asks for your prediction and trains the models; the seconds are CPU time of one core"


def question_lines(ablation: Ablation) -> Iterator[str]:
    """The subject, the question, and the predictions to choose from."""
    yield from _wrapped(f"{ablation.name}: {ablation.subject}")
    yield from _wrapped(ablation.question)
    for number, option in enumerate(ablation.options, start=1):
        yield from _wrapped(option, first=f"  {number}  ", then="     ")


def figure_lines(ablation: Ablation, outcomes: Sequence["VariantOutcome"]) -> Iterator[str]:
    """The figures, a column for each variant; then the translations of the sample."""
    from transformer_cli.extensions.lessons.laboratory import MEASURES

    titles = [MEASURES[name].title for name in ablation.measures]
    first = max(map(len, titles))
    widths = [max(len(one.label), 8) for one in outcomes]
    labels = (f"{one.label:>{width}}" for one, width in zip(outcomes, widths, strict=True))
    yield "  ".join([" " * first, *labels])
    for name, title in zip(ablation.measures, titles, strict=True):
        cells = (
            f"{one.figures[name]:>{width}.{MEASURES[name].digits}f}"
            for one, width in zip(outcomes, widths, strict=True)
        )
        yield "  ".join([f"{title:<{first}}", *cells])
    yield ""
    first = max(len("source"), *(len(one.label) for one in outcomes))
    yield f"{'source':<{first}}  {ablation.sample}"
    for one in outcomes:
        yield f"{one.label:<{first}}  {one.translation or '(nothing)'}"


def answer_lines(ablation: Ablation, prediction: int | None) -> Iterator[str]:
    """Which prediction was right, what was measured before, and why."""
    if prediction is not None:
        verdict = "was right" if prediction == ablation.right else "was not right"
        yield f"Your prediction, {prediction}, {verdict}."
    yield from _wrapped(ablation.options[ablation.right - 1], first=f"Answer {ablation.right}: ", then="  ")
    yield from _wrapped(ablation.came_out, first="Measured: ", then="  ")
    yield from _wrapped(ablation.why, first="Why: ", then="  ")
    yield from _wrapped(ablation.read_on, first="Read on: ", then="  ")


def ablation_facts(ablation: Ablation) -> dict[str, Any]:
    """What `--json` tells about an ablation."""
    return {
        "name": ablation.name,
        "subject": ablation.subject,
        "config": ablation.config,
        "question": ablation.question,
        "options": list(ablation.options),
        "right": ablation.right,
        "measured": ablation.came_out,
        "why": ablation.why,
        "cpu_seconds": ablation.cpu_seconds,
    }


def _wrapped(text: str, *, first: str = "", then: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=then)
