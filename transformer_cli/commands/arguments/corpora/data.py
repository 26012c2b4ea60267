"""The arguments and options of `tfm data` and its subcommands. As in `cli.py`, the work is imported only when it is done."""

from typing import Annotated, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.arguments.options import (
    ConfigOption,
    DebugOption,
    JsonOption,
    Overrides,
    set_option,
)
from transformer_cli.commands.arguments.sentence_arguments import CarefulCommand
from transformer_cli.errors import UsageError

data = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    help="Preview a corpus: sentence pairs, what cleaning drops, and tokenizer statistics; trains no model.",
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
    """Preview a corpus: sentence pairs, what cleaning drops, and tokenizer statistics; trains no model."""
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
    """Find what ruins a training in a corpus; the exit code is 65 if something does."""
    _set_up_logging(debug)
    from transformer_cli.commands.corpora.check import check_corpus
    from transformer_cli.commands.corpora.given_corpus import given_corpus

    corpus = given_corpus(
        files or [], config, overrides or [], languages=(source_language, target_language)
    )
    check_corpus(corpus, all_languages=all_languages, as_json=as_json)


def _set_up_logging(debug: bool) -> None:
    from transformer_cli.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
