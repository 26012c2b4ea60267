"""The split of its corpus on which a run is validated."""

import logging

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import DataConfig, FilesData, HubData, SplitName
from transformer_cli.config.data import FileCorpus
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import changes, fingerprint
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.data.sources.corpus import has_split
from transformer_cli.decoding.loading import LoadedRun
from transformer_cli.process.errors import DataError

logger = logging.getLogger(__name__)


def pairs_of_split(loaded: LoadedRun, split: SplitName) -> list[SentencePair]:
    """All pairs of a split, in all directions; warns if its files have changed since the training.

    Raises:
        DataError: the run has no such split.
    """
    if not has_split(loaded.config.data, split):
        raise DataError(
            f"the config of this run names no {split} split",
            hint=f"train with a corpus of split: {split} or a data.{split}_share, "
            "or score two files: --source FILE --reference FILE",
        )
    _warn_of_other_data(loaded, split)
    return held_out_pairs(loaded.config, split)


def _warn_of_other_data(loaded: LoadedRun, split: SplitName) -> None:
    """Warn if the files of the split have changed since the training: scores cannot be compared with earlier ones."""
    run_folder = RunFolder.of_checkpoint(loaded.trained.folder)
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
