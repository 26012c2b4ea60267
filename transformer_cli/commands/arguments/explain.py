"""The arguments and options of `tfm explain`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import (
    BeamOption,
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    ToOption,
    check_page_name,
    set_option,
)

SentenceArgument = Annotated[
    str | None, typer.Argument(help="The sentence that is translated and explained.")
]
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
OverridesOption = Annotated[
    Overrides, set_option("decoding.length_penalty=1.0", completion.settings_of_explaining)
]
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
    typer.Option(
        "--top", min=1, max=50, help="Number of probable tokens for each step. Default: 5."
    ),
]
PrefixOption = Annotated[
    str, typer.Option("--prefix", help="The beginning of the translation: whole words.")
]
OverTimeOption = Annotated[
    bool,
    typer.Option(
        "--over-time",
        help="Show how the run has learned: the same sentences at each validation. Takes no sentence.",
    ),
]


def explain(
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
    debug: DebugOption = False,
) -> None:
    """Show how the model translates a sentence. Pieces, masks, shapes, attention, and each step of the search."""
    from transformer_cli.process.errors import UsageError
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    _check_names(html, png)
    if over_time:
        others = sentence, overrides, beam_size, n_best, top, prefix, to, from_
        if any(one not in (None, "", []) for one in others):
            raise UsageError(
                "--over-time shows what a training has kept: it takes --run, --html, --png and --json only",
                hint='leave out the other options, or give a sentence: tfm explain "a sentence"',
            )
        from transformer_cli.extensions.lessons.commands.explaining.over_time import show_learning

        return show_learning(run, html, png, as_json=as_json)
    if sentence is None:
        raise UsageError("there is no sentence", hint='tfm explain "a sentence"')
    from transformer_cli.extensions.lessons.commands.explaining.explain import (
        Asked,
        Outputs,
        run_explanation,
    )

    changed = [] if beam_size is None else [f"decoding.beam_size={beam_size}"]
    run_explanation(
        run,
        [*(overrides or []), *changed],
        Asked(sentence, to, from_, prefix=prefix, num_best=n_best, num_alternatives=top or 5),
        Outputs(html, png, as_json=as_json),
    )


def _check_names(html: Path | None, png: Path | None) -> None:
    from transformer_cli.process.errors import UsageError

    check_page_name("--html", html)
    if png == Path("-"):
        raise UsageError("--png -: this option takes a file", hint="--png attention.png")
    if png is not None and png.suffix.lower() not in ("", ".png"):
        raise UsageError(
            f"--png {png}: the picture is a PNG file, but this name ends in {png.suffix}",
            hint=f"--png {str(png).removesuffix(png.suffix)}.png",
        )
