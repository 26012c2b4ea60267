"""The arguments and options of `tfm data` and its subcommands. As in `cli.py`, the work is imported only when it is done."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import CarefulCommand, CarefulGroup
from transformer_cli.commands.options import (
    ConfigOption,
    DebugOption,
    JsonOption,
    Overrides,
    set_option,
)
from transformer_cli.process.errors import UsageError

data = typer.Typer(
    cls=CarefulGroup,
    invoke_without_command=True,
    rich_markup_mode=None,
    help="Preview a corpus, check it, clean it or get one. Shows sentence pairs, what cleaning drops, and tokenizer statistics.",
    epilog="Example: tfm data --config en-it.yaml --split test, or: tfm data check train.en train.it",
)
OptionalConfig = Annotated[str | None, *ConfigOption.__metadata__]
Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="Two text files, source and target; or one table (TSV, CSV, JSON Lines, Parquet); or a folder.",
    ),
]
SourceLanguage = Annotated[
    str | None,
    typer.Option(
        "--source-language", help="Language of the source, such as en. Default: found out."
    ),
]
TargetLanguage = Annotated[
    str | None,
    typer.Option(
        "--target-language", help="Language of the target, such as it. Default: found out."
    ),
]

EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the files, such as windows-1252 or utf-16. Default: UTF-8, or found out.",
    ),
]
DroppedShareOption = Annotated[
    float,
    typer.Option(
        "--max-dropped-share",
        min=0.0,
        max=1.0,
        help="Write nothing if a larger share of the pairs is damaged, such as bytes that are no text.",
    ),
]


@data.callback()
def preview(
    context: typer.Context,
    config: OptionalConfig = None,
    overrides: Annotated[
        Overrides, set_option("tokenizer.vocab_size=4000", completion.settings)
    ] = None,
    split: Annotated[
        Literal["train", "validation", "test"],
        typer.Option("--split", help="Which part of the corpus: train, validation or test."),
    ] = "train",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Preview a corpus, check it, clean it or get one. Shows sentence pairs, what cleaning drops, and tokenizer statistics."""
    if context.invoked_subcommand is not None:
        return
    if config is None:
        raise UsageError(
            "Missing option '--config' / '-c'",
            hint="such as tfm data --config en-it.yaml; or one of the commands check, clean, import, get",
        )
    _set_up_logging(debug)
    from transformer_cli.commands.data import show_data

    show_data(config, overrides or [], split=split, as_json=as_json)


@data.command(
    cls=CarefulCommand,
    epilog="Example: tfm data check train.en train.it, or: tfm data check --config mine.yaml --json",
)
def check(
    files: Files = None,
    config: OptionalConfig = None,
    overrides: Annotated[
        Overrides, set_option("data.cleaning.max_length_ratio=2.0", completion.settings)
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    encoding: EncodingOption = None,
    all_languages: Annotated[
        bool,
        typer.Option(
            "--all-languages",
            help="Recognise the languages of all pairs. Default: of 20,000, then of every tenth.",
        ),
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Find what ruins a training in a corpus. The exit code is 65 if something does."""
    _set_up_logging(debug)
    from transformer_cli.extensions.corpora.commands.check import check_corpus
    from transformer_cli.extensions.corpora.commands.given_corpus import given_corpus

    corpus = given_corpus(
        files or [],
        config,
        overrides or [],
        languages=(source_language, target_language),
        encoding=encoding,
    )
    check_corpus(corpus, all_languages=all_languages, as_json=as_json)


@data.command(
    cls=CarefulCommand,
    epilog="Example: tfm data clean train.en train.it --output clean --set drop_near_duplicates=false",
)
def clean(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A new folder for the corpus that is left."),
    ],
    files: Files = None,
    config: OptionalConfig = None,
    overrides: Annotated[
        Overrides,
        typer.Option(
            "--set",
            metavar="RULE=VALUE",
            help="Change a rule, such as max_length_ratio=2.0 or drop_equal=false; may be repeated.",
            autocompletion=completion.cleaning_rules,
        ),
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    encoding: EncodingOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the folder of an earlier cleaning.")
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a corpus without the pairs that harm a training. List what was removed and why."""
    _set_up_logging(debug)
    from transformer_cli.extensions.corpora.commands.clean import write_cleaned
    from transformer_cli.extensions.corpora.commands.given_corpus import given_corpus

    languages = source_language, target_language
    corpus = given_corpus(files or [], config, [], languages=languages, encoding=encoding)
    write_cleaned(corpus, overrides or [], output, force=force, as_json=as_json)


@data.command(
    name="import",
    cls=CarefulCommand,
    epilog="Example: tfm data import memory.tmx --output corpus --source-language en --target-language it",
)
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="TMX, XLIFF 1.2, XLSX, TSV, CSV or another table, a zip of such files; or two text files.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write: NAME makes NAME.en and NAME.it; NAME.tsv makes one table.",
        ),
    ],
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    source_field: Annotated[
        str | None,
        typer.Option("--source-field", help="Column of the source: a name, or a number from 0."),
    ] = None,
    target_field: Annotated[
        str | None, typer.Option("--target-field", help="Column of the target.")
    ] = None,
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", help="Sheet of a spreadsheet, by its name. Default: the first."),
    ] = None,
    encoding: EncodingOption = None,
    max_dropped_share: DroppedShareOption = 0.05,
    force: Annotated[bool, typer.Option("--force", help="Replace the output.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Turn a translation memory or a table into text files. Spreadsheets and archives, too; a config reads the files."""
    _set_up_logging(debug)
    from transformer_cli.data.survey import Wishes
    from transformer_cli.extensions.corpora.commands.import_pairs import import_corpus

    wishes = Wishes(source_field, target_field, source_language, target_language, encoding)
    import_corpus(
        files,
        wishes,
        output,
        sheet=sheet,
        max_dropped_share=max_dropped_share,
        force=force,
        as_json=as_json,
    )


@data.command(
    cls=CarefulCommand,
    epilog="Example: tfm data get --list tatoeba --source-language en --target-language it",
)
def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Names of corpora; none: all of the lock file. With --list: words in their names.",
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the corpora and their lock file.")
    ] = Path("corpora"),
    lists: Annotated[
        bool, typer.Option("--list", help="List names of corpora, and fetch nothing.")
    ] = False,
    catalogue: Annotated[
        Path | None,
        typer.Option(
            "--catalogue",
            help="A list of corpora of your own (JSON Lines). Default: the list of mtdata.",
        ),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option("--source-language", help="Only corpora with this source.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option("--target-language", help="Only corpora with this target.")
    ] = None,
    accept_change: Annotated[
        bool,
        typer.Option(
            "--accept-data-change", help="Take a remote file that has changed since it was fetched."
        ),
    ] = False,
    max_dropped_share: DroppedShareOption = 0.05,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Fetch public corpora by name. Licences, citations and checksums go into a lock file."""
    _set_up_logging(debug)
    from transformer_cli.extensions.corpora.commands.get import Request, get_corpora, list_corpora

    request = Request(names or [], folder, catalogue, (source_language, target_language))
    if lists:
        list_corpora(request, as_json=as_json)
    else:
        get_corpora(
            request,
            accept_change=accept_change,
            max_dropped_share=max_dropped_share,
            as_json=as_json,
        )


def _set_up_logging(debug: bool) -> None:
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
