"""Where sentence pairs come from: the built-in corpus, synthetic tasks, local files, the hub."""

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
from transformer_cli.data.selection.splits import draw_split
from transformer_cli.data.sources import sequences
from transformer_cli.errors import ConfigError, DataError

__all__ = ["ReadingReport", "SentencePair", "fingerprint", "has_split", "may_leak", "read_pairs"]


def read_pairs(
    data: DataConfig,
    split: SplitName,
    *,
    seed: int,
    report: ReadingReport | None = None,
    report_of_drawn: ReadingReport | None = None,
) -> Iterator[SentencePair]:
    """The pairs of one split as they stand in the corpus, one after the other, not cleaned.

    Args:
        seed: of what is generated; files and the hub do not depend on it.
        report: collects what was skipped and what is unusual.
        report_of_drawn: collects it for corpora whose splits are drawn, which are read for each split;
            absent: `report` does.

    Raises:
        MissingInputError: a file or data set is not there.
        ConfigError: the built-in corpus has not so many pairs.
        DataError: there is no such split, or a corpus cannot be used or is empty.
    """
    if not has_split(data, split):
        raise DataError(
            f"the config has no {split} split",
            hint=f"give a corpus with split: {split} under data.corpora"
            + (
                ""
                if split == "train"
                else f", or let data.{split}_share of those without split be drawn"
            ),
        )
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
    """Whether the config says where pairs of this split come from."""
    if isinstance(data, PhrasebookData | SequencesData):
        return True
    shares = {"train": 1.0, "validation": data.validation_share, "test": data.test_share}
    return any(
        corpus.split == split or (corpus.split is None and shares[split] > 0)
        for corpus in data.corpora
    )


def may_leak(data: DataConfig) -> bool:
    """Whether held-out pairs must be looked for in the training pairs.

    Not where the generator keeps the splits apart, or where a task is to memorise.
    """
    return not isinstance(data, SequencesData)


def fingerprint(data: DataConfig, *, seed: int) -> dict[str, str]:
    """SHA-256 of everything that the pairs come from, so that a resumed run notices a change.

    Files are named as the config names them: a corpus may move with `data.root`.
    """
    if isinstance(data, PhrasebookData):
        from transformer_cli import phrasebook

        text = f"{phrasebook.fingerprint()} {data.num_pairs} {seed}"
        return {"phrasebook": sha256(text.encode()).hexdigest()}
    if isinstance(data, SequencesData):
        return {f"sequences: {data.task}": sequences.fingerprint(data, seed=seed)}
    if isinstance(data, FilesData):
        from transformer_cli.data.sources.local_files import fingerprint_files

        return {
            name: digest
            for index in range(len(data.corpora))
            for name, digest in fingerprint_files(data, index).items()
        }
    from transformer_cli.data.sources.hub import fingerprint_hub

    return {
        name: digest
        for index in range(len(data.corpora))
        for name, digest in fingerprint_hub(data, index).items()
    }


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
    from transformer_cli.data.sources.hub import read_hub
    from transformer_cli.data.sources.local_files import read_files

    if isinstance(data, FilesData):
        rows = read_files(data, index, report)
    else:
        rows = read_hub(data, index, report)
    is_given = data.corpora[index].split is not None
    for source, target in rows:
        pair = SentencePair(source, target, index)
        drawn = (
            split
            if is_given
            else draw_split(
                pair, validation_share=data.validation_share, test_share=data.test_share
            )
        )
        if drawn == split:
            report.num_read += 1
            yield pair
        else:
            report.leave_to(drawn)
