"""`tfm ablate`: asks for a prediction, trains a model with and without one of its parts, and explains the result."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from transformer_cli.commands.output import show
from transformer_cli.extensions.lessons.ablations.ablation import Ablation, Variant
from transformer_cli.extensions.lessons.ablations.known_ablations import ABLATIONS, ablation_named
from transformer_cli.extensions.lessons.commands.ablating.ablation_lines import (
    explanation_lines,
    facts_of,
    list_lines,
    question_lines,
    table_lines,
)
from transformer_cli.process.errors import InterruptedBySignal, UsageError
from transformer_cli.process.messages import only_warnings
from transformer_cli.process.signals import cleaned_up

if TYPE_CHECKING:
    from transformer_cli.training.callbacks import Callback

RESULT_FILE = "result.json"
PICTURE_FILE = "curves.png"
_GOES_ON = "%s: finished trainings and checkpoints are kept; the same command goes on from them"

logger = logging.getLogger(__name__)


class Wanted(NamedTuple):
    """What the command line asks for."""

    name: str
    output: Path
    overrides: tuple[str, ...]
    prediction: int | None


def list_all(*, as_json: bool) -> None:
    """Print all ablations."""
    show({"ablations": list(map(facts_of, ABLATIONS))}, list_lines(ABLATIONS), as_json=as_json)


def answer_question(name: str, *, as_json: bool) -> None:
    """Print the question of an ablation, and what came out; nothing is trained.

    Raises:
        UsageError: there is no such ablation.
    """
    ablation = ablation_named(name)
    lines = [*question_lines(ablation), "", *explanation_lines(ablation, None)]
    show(facts_of(ablation), lines, as_json=as_json)


def run(wanted: Wanted, *, as_json: bool) -> None:
    """Ask for a prediction, train the models of an ablation, and print the figures and the explanation.

    Raises:
        UsageError: there is no such ablation, or no such prediction.
        As `train`.
    """
    ablation = ablation_named(wanted.name)
    if wanted.prediction is not None and wanted.prediction > len(ablation.options):
        raise UsageError(
            f"--prediction {wanted.prediction}: this question has {len(ablation.options)} answers",
            hint=f"tfm ablate {ablation.name} --answer shows them; without --prediction, a terminal asks",
        )
    from transformer_cli.extensions.lessons.ablations.curves_picture import curves_picture
    from transformer_cli.extensions.lessons.ablations.laboratory import (
        configs_of,
        remove_replaced,
        try_variants,
    )
    from transformer_cli.storage import replace_file

    configs_of(
        ablation, wanted.overrides
    )  # a wrong setting is refused before the question is asked
    prediction = wanted.prediction or _asked(ablation)
    folder = wanted.output / ablation.name
    with only_warnings(), _made(folder):
        outcomes = try_variants(
            ablation, folder, wanted.overrides, callbacks=_Progress(ablation).of
        )
    facts = facts_of(ablation) | {
        "overrides": list(wanted.overrides),
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
    logger.info(
        "%s: the curves of the loss; %.0f CPU seconds in all", folder / PICTURE_FILE, seconds
    )
    lines = [*table_lines(ablation, outcomes), "", *explanation_lines(ablation, prediction)]
    show(facts, lines, as_json=as_json)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder. If a signal ends the block, remove it again while it is empty, and say what is kept."""
    from transformer_cli.storage import REAL, make_folders

    new = [path for path in (folder, folder.parent) if not path.exists()]

    def tell() -> None:
        for path in new:
            with suppress(OSError):  # it holds something
                REAL.remove_folder(path)
        told = _GOES_ON % folder if folder.exists() else "no training has begun, so nothing is kept"
        sys.stderr.write(f"{told}\n")

    with cleaned_up(tell):
        make_folders(folder)
        try:
            yield
        except InterruptedBySignal as error:
            error.hint = _GOES_ON % folder
            raise


def _asked(ablation: Ablation) -> int | None:
    """The prediction that a person types at a terminal; None if there is no terminal, or for an empty line."""
    for line in question_lines(ablation):
        logger.info("%s", line)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    numbers = [str(number + 1) for number in range(len(ablation.options))]
    while True:
        typed = typer.prompt(
            f"Your prediction ({' or '.join(numbers)}; Enter for none)",
            default="", show_default=False, err=True,
        ).strip()  # fmt: skip
        if not typed:
            return None
        if typed in numbers:
            return int(typed)


class _Progress:
    """Announces each training, and makes its progress bar."""

    def __init__(self, ablation: Ablation) -> None:
        self.ablation = ablation
        self.trained: list[tuple[tuple[str, ...], str | None]] = []

    def of(self, variant: Variant) -> list["Callback"]:
        from transformer_cli.commands.progress_bar import ProgressBar

        key = variant.settings, variant.replaced
        if key in self.trained:
            return []
        self.trained.append(key)
        settings = ", ".join(variant.settings)
        how = settings or (f"without {variant.replaced}" if variant.replaced else "as usual")
        number, count = len(self.trained), self.ablation.num_trainings
        sys.stderr.write(f"training {number} of {count}: {variant.label} ({how})\n")
        return [ProgressBar()]
