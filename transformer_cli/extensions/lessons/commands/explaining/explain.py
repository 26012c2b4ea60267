"""The work of `tfm explain`: one sentence, as text or JSON, and as a page or a picture beside it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.output import check_output, show, write_and_tell
from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.lessons.commands.explaining.explanation_lines import (
    explanation_lines,
)
from transformer_cli.extensions.lessons.commands.explaining.paint import Paint
from transformer_cli.extensions.lessons.explaining.explainer import Explainer
from transformer_cli.extensions.lessons.explaining.explanation import LineExplanation
from transformer_cli.extensions.lessons.explaining.standalone_page import BEAM_SIZES, page_of_line
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import terminal_width
from transformer_cli.process.signals import ended_after
from transformer_cli.text.normalization import is_blank

_WIDTH_OF_A_FILE = 110


@dataclass(frozen=True, slots=True)
class Asked:
    """What is explained."""

    sentence: str
    to: str | None
    from_: str | None
    prefix: str
    num_best: int | None
    num_alternatives: int


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the explanation goes, beside standard output."""

    html: Path | None
    png: Path | None
    as_json: bool


def run_explanation(
    run: str | None, overrides: Sequence[str], asked: Asked, outputs: Outputs
) -> None:
    """Translate a sentence, and show how.

    Raises:
        UsageError: the sentence is blank, or the run cannot be explained: see `Explainer.of`.
    """
    for path in (outputs.html, outputs.png):
        check_output(path)
    if is_blank(asked.sentence):
        raise UsageError("the sentence is blank", hint='tfm explain "a sentence"')
    loaded = load_run(run, overrides, command="explain")
    translator = loaded.translator.towards(asked.to, asked.from_)
    explainer = Explainer.of(translator, num_alternatives=asked.num_alternatives)
    explanation = explainer.explain(asked.sentence, num_best=asked.num_best, prefix=asked.prefix)
    if outputs.html is not None:
        _write_page(explainer, explanation, asked, outputs.html)
    if outputs.png is not None:
        _write_picture(explanation, outputs.png)
    _show(explanation, as_json=outputs.as_json)


def _write_page(
    explainer: Explainer, explanation: LineExplanation, asked: Asked, path: Path
) -> None:
    """Write the page with several beam sizes; that of the settings is shown first."""
    first = int(explanation.search["beam_size"])
    explanations = {
        size: explainer.explain(
            asked.sentence,
            beam_size=size,
            num_best=asked.num_best,
            prefix=asked.prefix,
            continues=True,
        )
        for size in {*BEAM_SIZES, first}
    }
    page = page_of_line(explanations, first).encode("utf-8", "replace")
    write_and_tell(path, page)


def _write_picture(explanation: LineExplanation, path: Path) -> None:
    from transformer_cli.extensions.lessons.commands.explaining.slide import draw_slide, png_of

    write_and_tell(path, png_of(draw_slide(explanation)))


def _show(explanation: LineExplanation, *, as_json: bool) -> None:
    if as_json:
        show(explanation.to_json(), (), as_json=True)
        return
    paint = Paint.of(sys.stdout)
    width = terminal_width(sys.stdout) or _WIDTH_OF_A_FILE
    with ended_after():
        for line in explanation_lines(explanation, paint, width):
            sys.stdout.write(f"{line}\n")
