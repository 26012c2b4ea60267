"""The options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import DebugOption as DebugOption
from transformer_cli.process.errors import UsageError

ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        help="A YAML file, or the name of a shipped config such as en-it.yaml.",
        autocompletion=completion.configs,
    ),
]
OptionalConfigOption = Annotated[str | None, *ConfigOption.__metadata__]
Overrides = list[str] | None


def set_option(example: str, offered: Callable[[str], list[completion.Offer]]) -> Any:
    """The option --set: an example that works for the command, and the settings that a shell offers."""
    return typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help=f"Override a setting, such as {example}; may be repeated, and the last one for a setting counts.",
        autocompletion=offered,
    )


RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Name or folder of a run, or one of its checkpoints. Default: the newest run under runs/.",
        autocompletion=completion.runs,
    ),
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        help="Name or folder of a run, or one of its checkpoints; several are an ensemble. "
        "Default: the newest run under runs/.",
        autocompletion=completion.runs,
    ),
]
BeamOption = Annotated[
    int | None,
    typer.Option(
        "--beam-size",
        "-b",
        min=1,
        max=64,
        help="Hypotheses per sentence; 1 is greedy search. Short for --set decoding.beam_size=N.",
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="LANGUAGE", help="Translate into this language, if the model knows several."
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LANGUAGE",
        help="Language of the source, if the model translates from several.",
    ),
]
SignificanceOption = Annotated[
    Literal["bootstrap", "randomization"] | None,
    typer.Option(
        "--significance",
        help="The test behind the p-values of --against; bootstrap if absent.",
    ),
]
ScoresOption = Annotated[
    str | None,
    typer.Option(
        "--scores",
        metavar="NAMES",
        help="Which scores, such as bleu,chrf++. Default: all but bleu_lc_moses.",
        autocompletion=completion.scores,
    ),
]
CometScoreOption = Annotated[
    Path | None,
    typer.Option(
        "--comet",
        metavar="FOLDER",
        help="Also score with the COMET model in this folder. Needs unbabel-comet.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]


def check_page_name(option: str, page: Path | None) -> None:
    """Refuse a name for an HTML page that says something else.

    Raises:
        UsageError: it ends in .pdf or another ending, or is - for standard output.
    """
    if page == Path("-"):
        raise UsageError(f"{option} -: this option takes a file", hint=f"{option} page.html")
    if page is not None and page.suffix.lower() not in ("", ".html", ".htm", ".xhtml"):
        raise UsageError(
            f"{option} {page}: the page is HTML, but this name ends in {page.suffix}",
            hint=f"{option} {str(page).removesuffix(page.suffix)}.html",
        )


SourceFileOption = Annotated[
    Path, typer.Option("--source", help="A text file, one sentence per line; - is standard input.")
]
TargetFileOption = Annotated[
    Path, typer.Option("--target", help="Its translations: line N belongs to line N of --source.")
]
