"""Reads the sentence pairs of a split from the source that the config names."""

from collections.abc import Iterator
from hashlib import sha256

from transformer_cli.config import (
    DataConfig,
    FilesData,
    HubData,
    PhrasebookData,
    SequencesData,
    SplitName,
)
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources import sequences
from transformer_cli.data.sources.hub import fingerprint_hub, read_hub
from transformer_cli.data.sources.local_files import fingerprint_files, read_files
from transformer_cli.data.sources.splits import draw_split
from transformer_cli.errors import ConfigError, DataError


def read_pairs(
    data: DataConfig,
    split: SplitName,
    *,
    seed: int,
    report: ReadingReport | None = None,
    report_of_drawn: ReadingReport | None = None,
) -> Iterator[SentencePair]:
    """Yield the pairs of one split in the order of the corpora, not cleaned.

    Args:
        seed: random seed of generated corpora; files and the hub do not use it.
        report: counts the pairs that are read, skipped or unusual.
        report_of_drawn: the same for corpora without `split`, which are read for every split; None:
            `report` counts them too.

    Raises:
        MissingInputError: a file or data set does not exist, or the hub cannot be reached.
        ConfigError: the built-in corpus has fewer pairs than `data.num_pairs`.
        DataError: the config has no such split, or a corpus is empty or cannot be read.
    """
    if not has_split(data, split):
        hint = f"add a corpus with split: {split} under data.corpora"
        if split != "train":
            hint += f", or set data.{split}_share above 0 to draw pairs from corpora without split"
        raise DataError(f"the config has no {split} split", hint=hint)
    report = ReadingReport() if report is None else report
    if isinstance(data, PhrasebookData | SequencesData):
        for pair in _generated_pairs(data, split, seed):
            report.num_read += 1
            yield pair
        return
    for index, corpus in enumerate(data.corpora):
        if corpus.split == split:
            yield from _corpus_pairs(data, index, split, report)
        elif corpus.split is None:
            yield from _corpus_pairs(data, index, split, report_of_drawn or report)


def has_split(data: DataConfig, split: SplitName) -> bool:
    """Whether the config has a source of pairs for this split."""
    if isinstance(data, PhrasebookData | SequencesData):
        return True
    shares = {"train": 1.0, "validation": data.validation_share, "test": data.test_share}
    return any(
        corpus.split == split or (corpus.split is None and shares[split] > 0)
        for corpus in data.corpora
    )


def fingerprint(data: DataConfig, *, seed: int) -> dict[str, str]:
    """Name -> SHA-256 of each source of the pairs, so that a resumed run notices a change.

    Names of files are relative to `data.root`, so the folder of a corpus may move.
    """
    if isinstance(data, PhrasebookData):
        from transformer_cli import phrasebook

        text = f"{phrasebook.fingerprint()} {data.num_pairs} {seed}"
        return {"phrasebook": sha256(text.encode()).hexdigest()}
    if isinstance(data, SequencesData):
        return {f"sequences: {data.task}": sequences.fingerprint(data, seed=seed)}
    digests: dict[str, str] = {}
    for index in range(len(data.corpora)):
        if isinstance(data, FilesData):
            digests |= fingerprint_files(data, index)
        else:
            digests |= fingerprint_hub(data, index)
    return digests


def _generated_pairs(
    data: PhrasebookData | SequencesData, split: SplitName, seed: int
) -> Iterator[SentencePair]:
    if isinstance(data, SequencesData):
        yield from sequences.generate_sequences(data, split, seed=seed)
        return
    from transformer_cli.phrasebook import generate_split

    try:
        for generated in generate_split(split, num_pairs=data.num_pairs, seed=seed):
            yield SentencePair(generated.source, generated.target)
    except ValueError as error:
        raise ConfigError(f"data.num_pairs: {error}") from error


def _corpus_pairs(
    data: FilesData | HubData, index: int, split: SplitName, report: ReadingReport
) -> Iterator[SentencePair]:
    if isinstance(data, FilesData):
        rows = read_files(data, index, report)
    else:
        rows = read_hub(data, index, report)
    given = data.corpora[index].split
    for source, target in rows:
        pair = SentencePair(source, target, index)
        drawn = given or draw_split(
            pair, validation_share=data.validation_share, test_share=data.test_share
        )
        if drawn == split:
            report.num_read += 1
            yield pair
        else:
            report.count_other_split(drawn)
