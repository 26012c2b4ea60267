"""`tfm explain`: how a model translates one sentence, or how a run has learned; as text or JSON, a page and a picture."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    BeamOption,
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    ToOption,
    check_page_name,
    set_option,
)
from transformer_cli.commands.output import check_output, show, write_and_tell
from transformer_cli.process.errors import MissingInputError, UsageError
from transformer_cli.process.messages import for_shell, terminal_width
from transformer_cli.process.signals import ended_after
from transformer_cli.text.normalization import is_blank

if TYPE_CHECKING:
    from transformer_cli.extensions.lessons.explaining.terminal_lines import Paint

_WIDTH_OF_A_FILE = 110

SentenceArgument = Annotated[str | None, typer.Argument(help="The sentence that is translated and explained.")]
HtmlOption = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Also write an interactive page, one file that needs no network.",
    ),
]
PngOption = Annotated[
    Path | None,
    typer.Option(
        "--png",
        metavar="FILE",
        help="Also draw the attention as a picture for slides; with --over-time, a film strip.",
    ),
]
OverridesOption = Annotated[Overrides, set_option("decoding.length_penalty=1.0", completion.settings_of_explaining)]
NBestOption = Annotated[
    int | None,
    typer.Option(
        "--n-best",
        min=1,
        max=64,
        metavar="N",
        help="Number of hypotheses, at most the beam size. Default: decoding.num_best, so 1 unless the run says otherwise.",
    ),
]
TopOption = Annotated[
    int | None,
    typer.Option("--top", min=1, max=50, help="Number of probable tokens for each step. Default: 5."),
]
PrefixOption = Annotated[str, typer.Option("--prefix", help="The beginning of the translation: whole words.")]
OverTimeOption = Annotated[
    bool,
    typer.Option(
        "--over-time",
        help="Show how the run has learned: the same sentences at each validation. Takes no sentence.",
    ),
]


def explain_command(
    sentence: SentenceArgument = None,
    run: RunOption = None,
    html: HtmlOption = None,
    png: PngOption = None,
    overrides: OverridesOption = None,
    beam_size: BeamOption = None,
    n_best: NBestOption = None,
    top: TopOption = None,
    prefix: PrefixOption = "",
    over_time: OverTimeOption = False,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how the model translates a sentence. Pieces, masks, shapes, attention, and each step of the search."""

    _check_names(html, png)
    if over_time:
        others = sentence, overrides, beam_size, n_best, top, prefix, to, from_
        if any(one not in (None, "", []) for one in others):
            raise UsageError(
                "--over-time shows what a training has kept: it takes --run, --html, --png and --json only",
                hint='leave out the other options, or give a sentence: tfm explain "a sentence"',
            )
        return _show_learning(run, html, png, as_json=as_json)
    if sentence is None:
        raise UsageError("there is no sentence", hint='tfm explain "a sentence"')
    changed = [] if beam_size is None else [f"decoding.beam_size={beam_size}"]
    _show_sentence(
        sentence,
        run,
        [*(overrides or []), *changed],
        html=html,
        png=png,
        num_best=n_best,
        num_alternatives=top or 5,
        prefix=prefix,
        to=to,
        from_=from_,
        as_json=as_json,
    )


def _show_sentence(
    sentence: str,
    run: str | None,
    overrides: Sequence[str],
    *,
    html: Path | None,
    png: Path | None,
    num_best: int | None,
    num_alternatives: int,
    prefix: str,
    to: str | None,
    from_: str | None,
    as_json: bool,
) -> None:
    """Translate a sentence, and show how.

    Raises:
        UsageError: the sentence is blank, or the run cannot be explained: see `Explainer.of`.
    """
    from transformer_cli.decoding.loading import load_run
    from transformer_cli.extensions.lessons.explaining.explainer import Explainer
    from transformer_cli.extensions.lessons.explaining.standalone_page import (
        BEAM_SIZES,
        page_of_line,
    )
    from transformer_cli.extensions.lessons.explaining.terminal_lines import explanation_lines

    for path in (html, png):
        check_output(path)
    if is_blank(sentence):
        raise UsageError("the sentence is blank", hint='tfm explain "a sentence"')
    loaded = load_run(run, overrides, command="explain", or_demonstration=True)
    explainer = Explainer.of(loaded.translator.towards(to, from_), num_alternatives=num_alternatives)
    explanation = explainer.explain(sentence, num_best=num_best, prefix=prefix)
    if html is not None:
        first = int(explanation.search["beam_size"])  # this one is shown first
        explanations = {
            size: explainer.explain(sentence, beam_size=size, num_best=num_best, prefix=prefix, continues=True)
            for size in {*BEAM_SIZES, first}
        }
        write_and_tell(html, page_of_line(explanations, first).encode("utf-8", "replace"))
    if png is not None:
        from transformer_cli.extensions.lessons.explaining.attention_pictures import (
            draw_slide,
            png_of,
        )

        write_and_tell(png, png_of(draw_slide(explanation)))
    if as_json:
        show(explanation.to_json(), (), as_json=True)
    else:
        _write_lines(lambda paint, width: explanation_lines(explanation, paint, width))


def _show_learning(run: str | None, html: Path | None, png: Path | None, *, as_json: bool) -> None:
    """Show the sentences that each validation of a run has kept.

    Raises:
        MissingInputError: there is no such run, or it has kept no sentence.
        DataError: its file was not written by a training.
    """
    from transformer_cli.extensions.lessons.explaining.learning import read_moments
    from transformer_cli.extensions.lessons.explaining.standalone_page import page_of_learning
    from transformer_cli.extensions.lessons.explaining.terminal_lines import learning_lines

    for path in (html, png):
        check_output(path)
    found = find_run(run)
    folder = RunFolder.containing(found) or RunFolder(found)
    moments = read_moments(folder.learning_file)
    if not moments:
        raise MissingInputError(
            f"{folder.learning_file}: this run has kept no sentence",
            hint="a training keeps some at each validation, if validation.num_samples is not 0; runs of earlier versions have none",
        )
    name = folder.path.resolve().name
    if html is not None:
        write_and_tell(html, page_of_learning(name, moments).encode("utf-8", "replace"))
    if png is not None:
        from transformer_cli.extensions.lessons.explaining.attention_pictures import (
            film_of_run,
            png_of,
        )

        film, steps = film_of_run(folder, moments)
        more = f": {len(steps)} of {len(moments)} validations, steps {', '.join(map(str, steps))}"
        write_and_tell(png, png_of(film), more)
    if as_json:
        show({"run": name, "moments": [one.to_json() for one in moments]}, (), as_json=True)
    else:
        _write_lines(lambda paint, width: learning_lines(name, moments, paint, width))


def _write_lines(lines: Callable[["Paint", int], Iterable[str]]) -> None:
    """Write lines that fit the terminal, in its colours, each as soon as it is there."""
    from transformer_cli.extensions.lessons.explaining.terminal_lines import Paint

    width = terminal_width(sys.stdout) or _WIDTH_OF_A_FILE
    with ended_after():
        for line in lines(Paint.of(sys.stdout), width):
            sys.stdout.write(f"{line}\n")


def _check_names(html: Path | None, png: Path | None) -> None:
    check_page_name("--html", html)
    if png == Path("-"):
        raise UsageError("--png -: this option takes a file", hint="--png attention.png")
    if png is not None and png.suffix.lower() not in ("", ".png"):
        raise UsageError(
            f"--png {png}: the picture is a PNG file, but this name ends in {png.suffix}",
            hint=f"--png {for_shell(png.with_suffix('.png'))}",
        )
