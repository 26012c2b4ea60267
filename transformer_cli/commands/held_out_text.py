"""The text on which `tfm validate` measures a run: a split of its corpus, or two given files."""

import json
import logging
from pathlib import Path
from typing import NamedTuple

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.streams.pair_streams import is_stream, pairs_of_streams
from transformer_cli.config import DataConfig, FilesData, HubData, SplitName
from transformer_cli.config.data import FileCorpus
from transformer_cli.data.fingerprint import changes, fingerprint
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.selection import first_pairs, held_out_pairs
from transformer_cli.data.sources.corpus import has_split, read_pairs
from transformer_cli.data.sources.lines import HOW_TO_CONVERT, NotUtf8Error
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import LoadedRun
from transformer_cli.process.errors import DataError
from transformer_cli.storage import require_name_in_utf8

logger = logging.getLogger(__name__)


class HeldOut(NamedTuple):
    """The text on which a run is validated."""

    split: SplitName = "validation"
    files: tuple[Path, Path] | None = None
    """A source text and its references, instead of a split."""
    languages: tuple[str | None, str | None] = (None, None)
    """The target and the source language. If both are None, a split is measured in all its directions, and files in
    the only direction of the model."""

    @property
    def name(self) -> str:
        """The split, or both files."""
        return f"{self.files[0]} / {self.files[1]}" if self.files else self.split


def pairs_of(loaded: LoadedRun, translator: Translator, held_out: HeldOut) -> list[SentencePair]:
    """The pairs that are validated, in the directions of the translator.

    Raises:
        DataError: the run has no such split, or the files do not fit together.
    """
    pairs = (
        _pairs_of_files(*held_out.files)
        if held_out.files
        else _pairs_of_split(loaded, held_out.split)
    )
    if any(held_out.languages) and not held_out.files:
        pairs = [pair for pair in pairs if pair.direction == translator.pipeline.direction]
    if "validation.max_sentences" in loaded.overridden:
        pairs = first_pairs(pairs, loaded.config.validation.max_sentences)
    return pairs


def corpus_name(data: DataConfig, index: int) -> str:
    """The name of `data.corpora[index]`: its file, its folder, or its data set."""
    corpus = data.corpora[index] if isinstance(data, FilesData | HubData) else None
    if isinstance(corpus, FileCorpus):
        return str(corpus.path or corpus.source_path)
    return (
        f"corpora.{index}"
        if corpus is None
        else " ".join(filter(None, (corpus.dataset, corpus.config)))
    )


def _pairs_of_split(loaded: LoadedRun, split: SplitName) -> list[SentencePair]:
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
    try:
        trained_on = dict(json.loads(run_folder.environment_file.read_bytes())["data"])
    except (OSError, ValueError, KeyError, TypeError):
        return  # without this file, or with a damaged one, the run can still be validated
    now = fingerprint(loaded.config, split=split)
    before = {name: trained_on[name] for name in now if name in trained_on}
    if changed := changes(before, now):
        logger.warning("the data has changed since the training: %s", "; ".join(changed))


def _pairs_of_files(source: Path, reference: Path) -> list[SentencePair]:
    report = ReadingReport()
    try:
        pairs = _read_pairs_of_files(source, reference, report)
    except (
        NotUtf8Error
    ) as error:  # its hint names a setting of corpora, which these files do not have
        raise DataError(error.message, hint=HOW_TO_CONVERT) from error
    for reason, finding in report.skipped.items():
        logger.warning(
            "skipped pairs: %d, reason: %s, first: %s", finding.count, reason, finding.example
        )
    return pairs


def _read_pairs_of_files(
    source: Path, reference: Path, report: ReadingReport
) -> list[SentencePair]:
    if is_stream(source) or is_stream(reference):
        return pairs_of_streams(source, reference, report)
    of_source, of_target = str(source.absolute()), str(reference.absolute())
    for path in (of_source, of_target):
        require_name_in_utf8(path)
    corpus = FileCorpus(source_path=of_source, target_path=of_target, split="test", format="text")
    data = FilesData(source="files", corpora=(corpus,))
    return list(read_pairs(data, "test", seed=0, report=report))
