"""`tfm draw`: the pictures of the model, its masks, schedules and batches as files, or a list of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import Overrides, set_option
from transformer_cli.commands.output import check_output, show, write_and_tell
from transformer_cli.extensions.lessons.drawing.pictures import (
    FORMATS,
    PICTURES,
    ThemeName,
    bytes_of,
    draw_picture,
)
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import make_folders

ALL = "all"

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
OverridesOption = Annotated[Overrides, set_option("training.warmup_steps=1000", completion.settings)]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Name or folder of a run: the picture checkpoint shows its files, and attention its model.",
        autocompletion=completion.runs,
    ),
]
ThemeOption = Annotated[ThemeName, typer.Option("--theme", help="The colours of the background.")]


def draw_command(
    names: NamesArgument = None,
    output: OutputOption = None,
    config: ConfigOption = None,
    overrides: OverridesOption = None,
    run: RunOption = None,
    theme: ThemeOption = "light",
) -> None:
    """Draw the model, its masks, schedules and batches. All values are those that the functions of tfm compute."""
    if not names:
        if output or config or overrides or run:
            raise UsageError("say which picture: a name, or all", hint="tfm draw lists the names")
        width = max(map(len, PICTURES))
        lines = [f"{name:<{width}}  {picture.sentence}" for name, picture in PICTURES.items()]
        return show({}, lines, as_json=False)
    is_all = ALL in names
    chosen = _chosen(names)
    if not is_all:
        _check_effect("--config", "config", chosen, is_given=config is not None)
        _check_effect("--set", "config", chosen, is_given=bool(overrides))
        _check_effect("--run", "run", chosen, is_given=run is not None)
    folder_of_run = None if run is None else find_run(run)
    paths = _paths(chosen, output, is_all=is_all)
    for folder in {path.parent for path in paths.values()}:
        make_folders(folder)
    for path in paths.values():
        check_output(path)
    for name, path in paths.items():
        figure = draw_picture(name, theme=theme, config=config, overrides=overrides or (), run=folder_of_run)
        write_and_tell(path, bytes_of(figure, path.suffix.lower()))


def _chosen(names: Sequence[str]) -> list[str]:
    unknown = [name for name in names if name != ALL and name not in PICTURES]
    if unknown:
        raise UsageError(
            f"{unknown[0]}: no picture has this name; the names are {', '.join(PICTURES)}",
            hint="tfm draw, without a name, says what each of them shows",
        )
    return list(PICTURES) if ALL in names else list(dict.fromkeys(names))


def _check_effect(option: str, what: str, names: Sequence[str], *, is_given: bool) -> None:
    """Refuse an option that changes no picture, or only some of the pictures that are named.

    Args:
        what: the option changes pictures that follow it: config or run.
    """
    fixed = [name for name in names if PICTURES[name].follows != what]
    if is_given and fixed:
        others = [name for name, one in PICTURES.items() if one.follows == what]
        raise UsageError(
            f"{option} has no effect on the picture {fixed[0]}",
            hint=f"{option} goes with {', '.join(others)}",
        )


def _paths(names: Sequence[str], output: Path | None, *, is_all: bool) -> dict[str, Path]:
    """The file of each picture: one file for one name, else files in a folder."""
    example = "pictures" if is_all or len(names) > 1 else f"{names[0]}.png"
    if output is None:
        raise UsageError("give --output, the file or folder to write", hint=f"--output {example}")
    if output == Path("-"):
        raise UsageError("--output -: tfm draw writes files only", hint=f"--output {example}")
    is_file = bool(output.suffix) and not output.is_dir()
    if not is_file:
        return {name: output / f"{name}.png" for name in names}
    if output.suffix.lower() not in FORMATS:
        raise UsageError(
            f"{output}: not the name of a picture; it ends in {output.suffix}",
            hint=f"tfm draw writes {', '.join(FORMATS)}, or a folder",
        )
    if is_all or len(names) > 1:
        raise UsageError(
            f"{output}: one file, but {len(names)} pictures",
            hint=f"give a folder: --output {for_shell(str(output).removesuffix(output.suffix))}",
        )
    return {names[0]: output}
