"""The split of its corpus on which a run is validated."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import DataConfig, FilesData, HubData, SplitName
from transformer_cli.config.data import FileCorpus
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import changes, fingerprint
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.data.sources.corpus import has_split
from transformer_cli.data.sources.local_files import MissingCorpusError
from transformer_cli.decoding.loading import LoadedRun
from transformer_cli.process.errors import DataError, MissingInputError

logger = logging.getLogger(__name__)

_TWO_FILES = "give two files, sentences and their right translations: --source FILE --reference FILE"


def pairs_of_split(loaded: LoadedRun, split: SplitName) -> list[SentencePair]:
    """All pairs of a split, in all directions; warns if its files have changed since the training.

    Raises:
        DataError: the run has no such split.
        MissingInputError: its files are not on this machine.
    """
    if not has_split(loaded.config.data, split):
        raise DataError(
            f"the config of this run names no {split} split",
            hint=f"{_TWO_FILES}; or train with a corpus of split: {split} or a data.{split}_share",
        )
    with corpus_needed(loaded, _TWO_FILES):
        _warn_of_other_data(loaded, split)
        return held_out_pairs(loaded.config, split)


@contextmanager
def corpus_needed(loaded: LoadedRun, instead: str) -> Iterator[None]:
    """A block that reads the corpus of a run; where it is not on this machine, the error says what can be given instead.

    Args:
        loaded: the run; it may have been trained on another machine.
        instead: the beginning of the hint.

    Raises:
        MissingInputError: a file of the corpus is missing.
    """
    try:
        yield
    except MissingCorpusError as error:
        if "data.root" in loaded.overridden:  # who names a folder reads what is missing there
            raise
        raise MissingInputError(
            f"{error.message}; {whose_data_are_missing(loaded)}",
            hint=instead + ("; if you have its data: --set data.root=FOLDER" if error.is_under_root else ""),
        ) from error


def whose_data_are_missing(loaded: LoadedRun) -> str:
    """A clause for an error: the data of a run are not on this machine."""
    if loaded.trained.is_demonstration:
        return "the data of the small model that comes with tfm do not come along"
    return "the data of this run are not where they were in its training"


def _warn_of_other_data(loaded: LoadedRun, split: SplitName) -> None:
    """Warn if the files of the split have changed since the training: scores cannot be compared with earlier ones."""
    run_folder = RunFolder.containing(loaded.trained.folder)
    if run_folder is None:
        return
    if (trained_on := run_folder.data_of_training()) is None:
        return
    now = fingerprint(loaded.config, split=split)
    before = {name: trained_on[name] for name in now if name in trained_on}
    if changed := changes(before, now):
        logger.warning("the data has changed since the training: %s", "; ".join(changed))


def corpus_name(data: DataConfig, index: int) -> str:
    """The name of `data.corpora[index]`: its file, its folder, or its data set."""
    corpus = data.corpora[index] if isinstance(data, FilesData | HubData) else None
    if isinstance(corpus, FileCorpus):
        return str(corpus.path or corpus.source_path)
    if corpus is None:
        return f"corpora.{index}"
    return " ".join(filter(None, (corpus.dataset, corpus.config)))
