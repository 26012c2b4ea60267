"""The corpus that a command line names: by a config, or by its files."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_cli.config import FilesData, load_config
from transformer_cli.config.tree import DataConfig
from transformer_cli.data.survey import Wishes
from transformer_cli.data.unknown_files import find_corpus
from transformer_cli.process.errors import UsageError


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
            hint="such as tfm data check train.en train.it, or tfm data check --config mine.yaml",
        )
    if config is not None:
        if any(languages):
            raise UsageError(
                "--source-language and --target-language are for files; a config names its languages",
                hint="such as --set data.source_language=en",
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
    if overrides:
        raise UsageError("--set changes settings of a config, and none is given")
    found = find_corpus(files, Wishes(None, None, *languages, encoding))
    assert isinstance(found.data, FilesData)
    # Files alone have no drawn splits: all of them may become training pairs.
    whole = found.data.model_copy(update={"validation_share": 0.0, "test_share": 0.0})
    return GivenCorpus(whole, 0, found.doubts)
