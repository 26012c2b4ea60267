"""The work of `tfm draw`: a list of the pictures, or the files of the pictures that are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.output import check_output, show, write_and_tell
from transformer_cli.extensions.lessons.drawing.pictures import PICTURES, draw_picture
from transformer_cli.extensions.lessons.drawing.theme import ThemeName
from transformer_cli.process.errors import UsageError

ALL = "all"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the pictures shall show, and how."""

    config: str | None = None
    overrides: Sequence[str] = ()
    run: str | None = None
    theme: ThemeName = "light"


def list_pictures() -> None:
    """Print the name of each picture, with what it shows."""
    width = max(map(len, PICTURES))
    lines = [f"{name:<{width}}  {picture.sentence}" for name, picture in PICTURES.items()]
    show({}, lines, as_json=False)


def draw(names: Sequence[str], output: Path | None, wishes: Wishes) -> None:
    """Draw pictures and write their files.

    Raises:
        UsageError: a name is not known, or an option has no effect on the pictures.
        CannotCreateError: the output cannot be written.
    """
    from transformer_cli.extensions.lessons.drawing.picture_files import bytes_of
    from transformer_cli.storage import make_folders

    chosen = _chosen(names)
    _check_wishes(chosen, wishes, is_all=ALL in names)
    run = _run_folder(wishes.run)
    paths = _paths(chosen, output, is_all=ALL in names)
    for folder in {path.parent for path in paths.values()}:
        make_folders(folder)
    for path in paths.values():
        check_output(path)
    for name, path in paths.items():
        figure = draw_picture(
            name, theme=wishes.theme, config=wishes.config, overrides=wishes.overrides, run=run
        )
        content = bytes_of(figure, path.suffix.lower())
        write_and_tell(path, content)


def _chosen(names: Sequence[str]) -> list[str]:
    unknown = [name for name in names if name != ALL and name not in PICTURES]
    if unknown:
        raise UsageError(
            f"{unknown[0]}: no picture has this name; the names are {', '.join(PICTURES)}",
            hint="tfm draw, without a name, says what each of them shows",
        )
    return list(PICTURES) if ALL in names else list(dict.fromkeys(names))


def _check_wishes(names: Sequence[str], wishes: Wishes, *, is_all: bool) -> None:
    """Refuse options that change no picture, and those that change only some of the pictures that are named."""
    for option, is_given, what in (
        ("--config", wishes.config is not None, "config"),
        ("--set", bool(wishes.overrides), "config"),
        ("--run", wishes.run is not None, "run"),
    ):
        fixed = [name for name in names if PICTURES[name].follows != what]
        if is_given and fixed and not is_all:
            others = [name for name, one in PICTURES.items() if one.follows == what]
            raise UsageError(
                f"{option} has no effect on the picture {fixed[0]}",
                hint=f"{option} goes with {', '.join(others)}",
            )


def _run_folder(run: str | None) -> Path | None:
    if run is None:
        return None
    from transformer_cli.checkpoint import find_run

    return find_run(run)


def _paths(names: Sequence[str], output: Path | None, *, is_all: bool) -> dict[str, Path]:
    """The file of each picture: one file for one name, else files in a folder."""
    from transformer_cli.extensions.lessons.drawing.picture_files import FORMATS

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
            hint=f"give a folder: --output {str(output).removesuffix(output.suffix)}",
        )
    return {names[0]: output}
