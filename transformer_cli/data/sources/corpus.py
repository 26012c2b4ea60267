"""Reads the sentence pairs of a split from the source that the config names."""

import logging
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from transformer_cli.config import (
    DataConfig,
    FilesData,
    HubCorpus,
    HubData,
    PhrasebookData,
    SequencesData,
    SplitName,
)
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources import phrasebook, sequences
from transformer_cli.data.sources.hub import fingerprint_hub, hub_files, read_hub
from transformer_cli.data.sources.local_files import (
    fingerprint_files,
    read_files,
    stored_files,
)
from transformer_cli.data.sources.splits import draw_split
from transformer_cli.process.errors import DataError

logger = logging.getLogger(__name__)

_NUM_WATCHED = 100
_MIN_NUMBERS = 4


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
        seed: random seed of generated sequences; the other corpora do not use it.
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
        _, *reverse = range(len(data.directions))
        built_in = (
            phrasebook.read_phrasebook(split, data.num_pairs)
            if isinstance(data, PhrasebookData)
            else sequences.generate_sequences(data, split, seed=seed)
        )
        for pair in built_in:
            report.num_read += 1
            yield pair
            yield from _reversed(pair, reverse)
        return
    for index in range(len(data.corpora)):
        if _is_read_for(data, index, split):
            is_drawn = data.corpora[index].split is None
            used = report_of_drawn if is_drawn and report_of_drawn is not None else report
            yield from _corpus_pairs(data, index, split, used)


def has_split(data: DataConfig, split: SplitName) -> bool:
    """Whether the config has a source of pairs for this split."""
    if isinstance(data, PhrasebookData | SequencesData):
        return True
    return any(_is_read_for(data, index, split) for index in range(len(data.corpora)))


def _is_read_for(data: FilesData | HubData, index: int, split: SplitName) -> bool:
    """Whether pairs of a corpus belong to a split: all of them, or a share that is drawn."""
    # Training gets the rest of each corpus without `split`.
    shares = {"train": 1.0, "validation": data.validation_share, "test": data.test_share}
    given = data.corpora[index].split
    return given == split or (given is None and shares[split] > 0)


def fingerprint(data: DataConfig, *, seed: int, split: SplitName | None = None) -> dict[str, str]:
    """Name -> SHA-256 of each source of the pairs, so that a resumed run notices a change.

    Names of files are relative to `data.root`, so the folder of a corpus may move.

    Args:
        split: only the sources of the pairs of this split; None: all.
    """
    if isinstance(data, PhrasebookData):
        # Its other splits are the same for every run.
        return (
            {"phrasebook": phrasebook.fingerprint(data.num_pairs)}
            if split in (None, "train")
            else {}
        )
    if isinstance(data, SequencesData):
        return {f"sequences: {data.task}": sequences.fingerprint(data, seed=seed)}
    digests: dict[str, str] = {}
    for index in range(len(data.corpora)):
        if split is not None and not _is_read_for(data, index, split):
            continue
        if isinstance(data, FilesData):
            digests |= fingerprint_files(data, index)
        else:
            digests |= fingerprint_hub(data, index)
    return digests


def local_files(data: DataConfig) -> dict[str, Path]:
    """Name in the fingerprint -> path, for each file on this machine from which pairs are read."""
    if isinstance(data, PhrasebookData | SequencesData):
        return {}
    files: dict[str, Path] = {}
    for index in range(len(data.corpora)):
        if isinstance(data, FilesData):
            files |= stored_files(data, index)
        else:
            files |= hub_files(data, index)
    return files


def _corpus_pairs(
    data: FilesData | HubData, index: int, split: SplitName, report: ReadingReport
) -> Iterator[SentencePair]:
    if isinstance(data, FilesData):
        rows = read_files(data, index, report)
    else:
        rows = read_hub(data, index, report)
    given, directions = data.corpora[index].split, data.directions
    direction, *reverse = direction_numbers(data, index)
    # A pair and its reverse belong to one split, so all corpora of two languages are hashed in one direction.
    is_turned = directions[direction].reverse in directions[:direction]
    for source, target in _watched_for_numbers(rows, data, index):
        pair = SentencePair(source, target, index, direction)
        drawn = given or draw_split(
            SentencePair(target, source) if is_turned else pair,
            validation_share=data.validation_share,
            test_share=data.test_share,
        )
        if drawn == split:
            report.num_read += 1
            yield pair
            yield from _reversed(pair, reverse)
        else:
            report.count_other_split(drawn)


def direction_numbers(data: FilesData | HubData, index: int) -> list[int]:
    """The directions in which the pairs of `data.corpora[index]` are read: indices into `data.directions`."""
    return [data.directions.index(direction) for direction in data.directions_of(index)]


def in_directions(
    row: tuple[str, str], corpus: int, directions: Sequence[int]
) -> Iterator[SentencePair]:
    """The pair of a row in its written direction, and then in the reverse one if that is given too."""
    direction, *reverse = directions
    pair = SentencePair(*row, corpus, direction)
    yield pair
    yield from _reversed(pair, reverse)


def _reversed(pair: SentencePair, directions: Sequence[int]) -> Iterator[SentencePair]:
    """The pair the other way round, in the reverse direction; none if the config wants one direction only."""
    for direction in directions:
        yield SentencePair(pair.target, pair.source, pair.corpus, direction)


def _watched_for_numbers(
    rows: Iterator[tuple[str, str]], data: FilesData | HubData, index: int
) -> Iterator[tuple[str, str]]:
    """The rows; a warning is logged if most of the first ones are numbers on one side, as ids are."""
    first: list[tuple[str, str]] = []
    for row in islice(rows, _NUM_WATCHED):
        first.append(row)
        yield row
    for side, name in enumerate(("source", "target")):
        numbers = [row[side] for row in first if _is_number(row[side])]
        if len(numbers) > max(_MIN_NUMBERS, len(first) // 2):
            _warn_of_numbers(_place_of(data, index), name, len(numbers), len(first), numbers[0])
    yield from rows


def _is_number(text: str) -> bool:
    return any(map(str.isdecimal, text)) and not any(map(str.isalpha, text))


def _place_of(data: FilesData | HubData, index: int) -> str:
    corpus = data.corpora[index]
    if isinstance(corpus, HubCorpus):
        return f"data.corpora.{index} ({corpus.dataset})"
    return f"data.corpora.{index} ({corpus.path or corpus.source_path})"


@cache  # one warning is enough, although a corpus is read once for each split
def _warn_of_numbers(place: str, side: str, count: int, total: int, example: str) -> None:
    logger.warning(
        "%s: the %s is a number in %d of the first %d pairs, such as %r; if these are ids and no sentences, "
        "set source_field and target_field to the columns of the sentences",
        place,
        side,
        count,
        total,
        example,
    )
