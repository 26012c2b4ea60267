"""The corpus that a command line names, by a config or by its files; and the options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from transformer_cli.config import FilesData, load_config
from transformer_cli.config.schema import DataConfig
from transformer_cli.data.unknown_files import GivenFacts, find_corpus, require_no_config
from transformer_cli.process.errors import UsageError

FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="Two text files, source and target; or one table (TSV, CSV, JSON Lines, Parquet); or a folder.",
    ),
]
SourceLanguageOption = Annotated[
    str | None,
    typer.Option("--source-language", help="Language of the source, such as en. Default: found out."),
]
TargetLanguageOption = Annotated[
    str | None,
    typer.Option("--target-language", help="Language of the target, such as it. Default: found out."),
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


class GivenCorpus(NamedTuple):
    """How to read a corpus, and the seed of one that is generated."""

    data: DataConfig
    seed: int
    doubts: list[str]
    """What is odd about files whose format was found out."""


def given_corpus(
    files: Sequence[str],
    config: str | None,
    overrides: Sequence[str],
    *,
    languages: tuple[str | None, str | None],
    encoding: str | None = None,
) -> GivenCorpus:
    """The corpus of a config, or of files.

    Raises:
        UsageError: both are given, or neither is.
        MissingInputError: a config or file does not exist.
        DataError: the files are no corpus.
    """
    if bool(files) == (config is not None):
        raise UsageError(
            "give either files or --config",
            hint="such as the files train.en and train.it, or --config mine.yaml",
        )
    if config is not None:
        if any(languages):
            raise UsageError(
                "--source-language and --target-language are for files; a config names its languages",
                hint="such as source_language: en under data",
            )
        if encoding is not None:
            raise UsageError(
                "--encoding is for files; a config names the encoding of each corpus",
                hint="such as encoding: windows-1252 under data.corpora",
            )
        loaded = load_config(config, overrides)
        return GivenCorpus(loaded.data, loaded.seed, [])
    if len(files) > 2:
        raise UsageError("give one file or folder, or two text files")
    require_no_config(files)
    if overrides:
        raise UsageError(
            "--set changes settings of a config, and none is given", hint="name one with --config in place of the files"
        )
    found = find_corpus(files, GivenFacts(None, None, *languages, encoding))
    assert isinstance(found.data, FilesData)
    # Files alone have no drawn splits: all of them may become training pairs.
    whole = found.data.model_copy(update={"validation_share": 0.0, "test_share": 0.0})
    return GivenCorpus(whole, 0, found.doubts)
