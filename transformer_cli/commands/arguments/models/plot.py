"""The arguments and options of `tfm plot`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import DebugOption, JsonOption

RunsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN]...",
        help="Names or folders of runs. Default: the newest run under runs/.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="A file that ends in .png, .svg or .pdf, or in .html for a page that needs no network.",
    ),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="What is drawn, such as loss, bleu or gradient_norm; may be repeated. Default: loss, all scores, "
        "learning rate, gradient norm and speed.",
        autocompletion=completion.plotted_metrics,
    ),
]
AxisOption = Annotated[
    Literal["step", "epoch", "tokens", "minutes"],
    typer.Option("--x", help="The horizontal axis."),
]
SmoothOption = Annotated[
    int,
    typer.Option(
        "--smooth",
        min=1,
        max=10_000,
        metavar="N",
        help="Draw the mean of N reports of the training around each one; the values themselves stay visible.",
    ),
]
LogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        metavar="NAME",
        help="A metric with a logarithmic axis; may be repeated.",
        autocompletion=completion.plotted_metrics,
    ),
]
GroupOption = Annotated[
    bool,
    typer.Option(
        "--group", help="Draw runs that differ only in the seed as their mean, with their range."
    ),
]
ThemeOption = Annotated[
    Literal["light", "dark"] | None,
    typer.Option(
        "--theme", help="The colours. Default: light; a page follows the reader's setting."
    ),
]
TableOption = Annotated[
    bool, typer.Option("--table", help="Print the final and the best values as a table.")
]


def plot(
    names: RunsArgument = None,
    output: OutputOption = None,
    metrics: MetricOption = None,
    axis: AxisOption = "step",
    smooth: SmoothOption = 1,
    log: LogOption = None,
    group: GroupOption = False,
    theme: ThemeOption = None,
    table: TableOption = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Draw the training curves of runs. Loss, scores, learning rate, gradient norm and speed."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.extensions.lessons.commands.plot import Wishes
    from transformer_cli.extensions.lessons.commands.plot import plot as plot_runs

    wishes = Wishes(metrics or (), axis, smooth, log or (), is_grouped=group, theme=theme)
    plot_runs(names or [], output, wishes, as_json=as_json, as_table=table)
