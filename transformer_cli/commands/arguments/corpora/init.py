"""The arguments and options of `tfm init`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.process.errors import UsageError


def init(
    corpus: Annotated[
        list[str],
        typer.Argument(
            help="A CSV, TSV, JSON Lines, Parquet or XLSX file; or a folder; or two text files, source and target."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The config to write. Default: NAME.yaml."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a config that exists already.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the run. Default: from the file name.")
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option("--source-language", help="Translate from this language, such as en."),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option("--target-language", help="Translate into this language, such as it."),
    ] = None,
    source_field: Annotated[
        str | None,
        typer.Option("--source-field", help="Column of the source: a name, or a number from 0."),
    ] = None,
    target_field: Annotated[
        str | None, typer.Option("--target-field", help="Column of the target.")
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="Encoding of the files, such as windows-1252 or utf-16. Default: UTF-8, or found out.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Write a config for a corpus of your own. It has comments, and settings that fit the corpus."""
    if len(corpus) > 2:
        raise UsageError("give one file or folder, or two text files")
    if output == Path("-"):
        raise UsageError("--output -: tfm init writes a file", hint="--output mine.yaml")
    from transformer_cli.commands.new_config import write_config
    from transformer_cli.data.survey import Wishes
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    wishes = Wishes(source_field, target_field, source_language, target_language, encoding)
    write_config(corpus, wishes, name=name, output=output, force=force)
