"""The arguments and options of `tfm draw`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.options import DebugOption, Overrides, set_option
from transformer_cli.process.errors import UsageError

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="The pictures, or all; without a name, tfm draw lists them.",
        show_default=False,
        autocompletion=completion.pictures,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="PATH",
        help="A file that ends in .png, .svg or .pdf, or a folder, which gets one PNG for each picture.",
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        help="A YAML file, or the name of a shipped config, that the pictures show.",
        autocompletion=completion.configs,
    ),
]
OverridesOption = Annotated[
    Overrides, set_option("training.warmup_steps=1000", completion.settings)
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Name or folder of a run: the picture checkpoint shows its files, and attention its model.",
        autocompletion=completion.runs,
    ),
]
ThemeOption = Annotated[
    Literal["light", "dark"], typer.Option("--theme", help="The colours of the background.")
]


def draw(
    names: NamesArgument = None,
    output: OutputOption = None,
    config: ConfigOption = None,
    overrides: OverridesOption = None,
    run: RunOption = None,
    theme: ThemeOption = "light",
    debug: DebugOption = False,
) -> None:
    """Draw the model, its masks, schedules and batches. All values are those that the functions of tfm compute."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.extensions.lessons.commands.draw import Wishes, list_pictures
    from transformer_cli.extensions.lessons.commands.draw import draw as draw_pictures

    if names:
        draw_pictures(names, output, Wishes(config, overrides or [], run, theme))
    elif output or config or overrides or run:
        raise UsageError("say which picture: a name, or all", hint="tfm draw lists the names")
    else:
        list_pictures()
