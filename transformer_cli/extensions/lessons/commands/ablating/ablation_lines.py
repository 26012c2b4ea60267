"""An ablation as lines for people: its question, the table of figures, and the explanation."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from transformer_cli.commands.output import fitting
from transformer_cli.extensions.lessons.ablations.ablation import Ablation

if TYPE_CHECKING:
    from transformer_cli.extensions.lessons.ablations.laboratory import Outcome

WIDTH = 100


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


def table_lines(ablation: Ablation, outcomes: Sequence["Outcome"]) -> Iterator[str]:
    """The figures, a column for each variant; then the translations of the sample."""
    from transformer_cli.extensions.lessons.ablations.measurements import MEASURES

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


def explanation_lines(ablation: Ablation, prediction: int | None) -> Iterator[str]:
    """Which prediction was right, what was measured before, and why."""
    if prediction is not None:
        verdict = "was right" if prediction == ablation.right else "was not right"
        yield f"Your prediction, {prediction}, {verdict}."
    yield from _wrapped(
        ablation.options[ablation.right - 1], first=f"Answer {ablation.right}: ", then="  "
    )
    yield from _wrapped(ablation.came_out, first="Measured: ", then="  ")
    yield from _wrapped(ablation.why, first="Why: ", then="  ")
    yield from _wrapped(ablation.read_on, first="Read on: ", then="  ")


def facts_of(ablation: Ablation) -> dict[str, Any]:
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
