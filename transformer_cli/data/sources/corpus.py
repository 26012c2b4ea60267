"""Reads the sentence pairs of a split from the source that the config names; the corpora that are built in; splits drawn by a hash; streams that can stop and go on."""

import lzma
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from io import TextIOWrapper
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import NamedTuple, TypeGuard

from transformer_cli.config import DataConfig, FilesData, HubData, PhrasebookData, SequencesData, SplitName
from transformer_cli.data.alignments import AlignmentFile, reversed_links
from transformer_cli.data.pairs import (
    PAIRS_AT_ONCE,
    CleaningReport,
    PairRows,
    ReadingReport,
    ReportRow,
    SentencePair,
    pair_digest,
    pairs_of_rows,
    rows_of_pairs,
)
from transformer_cli.data.sources.hub import fingerprint_hub, hub_files, read_hub
from transformer_cli.data.sources.local_files import (
    WHOLE,
    CorpusPart,
    alignment_path,
    find_files,
    fingerprint_files,
    is_streamed,
    read_file,
    read_pair_files,
    stored_files,
)
from transformer_cli.data.sources.watching import watched
from transformer_cli.process.errors import ConfigError, DataError


def read_pairs(
    data: DataConfig,
    split: SplitName,
    *,
    seed: int,
    report: ReadingReport | None = None,
    kept: "KeptPairs | None" = None,
) -> Iterator[SentencePair]:
    """Yield the pairs of one split in the order of the corpora, not cleaned.

    Args:
        seed: random seed of generated sequences; the other corpora do not use it.
        report: counts the pairs that are read, skipped or unusual.
        kept: training pairs that `read_held_out` has kept; their corpora are not read again.

    Raises:
        MissingInputError: a file or data set does not exist, or the hub cannot be reached.
        ConfigError: the built-in corpus has fewer pairs than `data.num_pairs`.
        DataError: the config has no such split, or a corpus is empty or cannot be read.
    """
    if not has_split(data, split):
        share = f"data.{split}_share above 0 to draw pairs from corpora without split"
        more = "" if split == "train" else f", or set {share}"
        raise DataError(
            f"the config has no {split} split", hint=f"add a corpus with split: {split} under data.corpora{more}"
        )
    report = ReadingReport() if report is None else report
    report.split = split
    if isinstance(data, SequencesData):
        for pair in generate_sequences(data, split, seed=seed):
            report.num_usable[split] += 1
            yield pair
        return
    if isinstance(data, PhrasebookData):
        directions = range(len(data.directions))
        for pair in read_phrasebook(split, data.num_pairs):
            report.num_usable[split] += 1
            yield from in_directions((pair.source, pair.target), 0, directions)
        return
    for index in range(len(data.corpora)):
        if split == "train" and kept is not None and index in kept.readings:
            yield from kept.take(index, report)
        elif is_read_for(data, index, split):
            pairs = corpus_pairs(data, index, report)
            yield from (pair for drawn, pair in pairs if drawn == split)


class KeptPairs:
    """The training pairs of corpora without `split`, kept while their held-out pairs are read: their files are read once.

    A corpus whose pairs do not fit into `max_bytes`, together with those before it, is not kept and is read again.
    """

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self.readings: dict[int, ReadingReport] = {}
        """Index into `data.corpora` -> the report on reading the whole corpus."""
        self._rows: dict[int, list[PairRows]] = {}
        self._room = max_bytes

    def passing(
        self, index: int, pairs: Iterator[tuple[SplitName, SentencePair]], reading: ReadingReport
    ) -> Iterator[tuple[SplitName, SentencePair]]:
        """Yield all pairs of a corpus, and keep those of the training split."""
        kept: list[PairRows] | None = []
        room, waiting = self._room, list[SentencePair]()
        for split, pair in pairs:
            if split == "train" and kept is not None:
                waiting.append(pair)
                if len(waiting) == PAIRS_AT_ONCE:
                    kept, room = _with_rows(kept, waiting, room)
            yield split, pair
        if kept is not None:
            kept, room = _with_rows(kept, waiting, room)
        if kept is not None:
            self._rows[index], self._room, self.readings[index] = kept, room, reading

    def take(self, index: int, report: ReadingReport) -> Iterator[SentencePair]:
        """Yield the training pairs of a corpus, and forget them."""
        report.add(self.readings.pop(index))
        for rows in self._rows.pop(index):
            yield from pairs_of_rows(rows)


def _with_rows(kept: list[PairRows], waiting: list[SentencePair], room: int) -> tuple[list[PairRows] | None, int]:
    """The rows kept so far with those that wait, and the bytes that are left; None where there are too few."""
    rows = rows_of_pairs(waiting)
    waiting.clear()
    if rows.nbytes > room:
        return None, room
    kept.append(rows)
    return kept, room - rows.nbytes


@dataclass(frozen=True, slots=True)
class HeldOutSplit:
    """The pairs of a split, and reports on the pairs that were skipped, dropped or altered."""

    pairs: list[SentencePair]
    reading: ReadingReport
    """For corpora whose `split` names this split."""
    drawn_reading: ReadingReport
    """For corpora without `split`, whose splits are drawn; it counts the rows of all splits."""
    cleaning: CleaningReport

    def table(self) -> list[ReportRow]:
        """Counts of the pairs.

        `drawn_reading` is left out: the training split reads the same rows, and its table has them.
        """
        return [*self.reading.table()[1:], *self.cleaning.table()[1:-1]]


HeldOutSplits = dict[SplitName, HeldOutSplit]


def read_held_out(
    data: DataConfig, splits: Sequence[SplitName], *, seed: int, kept: KeptPairs | None = None
) -> HeldOutSplits:
    """The pairs of the given splits, not cleaned, in the order of the corpora; each corpus is read once for all of them.

    Args:
        kept: keeps the training pairs of the corpora that are read.

    Raises: as `read_pairs`, but a split that the config does not have is empty.
    """
    found: HeldOutSplits = {
        split: HeldOutSplit([], ReadingReport(split), ReadingReport(split), CleaningReport()) for split in splits
    }
    if isinstance(data, PhrasebookData | SequencesData):
        for split, held_out in found.items():
            held_out.pairs.extend(read_pairs(data, split, seed=seed, report=held_out.reading))
        return found
    for index, corpus in enumerate(data.corpora):
        wanted = [split for split in splits if is_read_for(data, index, split)]
        if not wanted:
            continue
        reading = found[wanted[0]].reading if corpus.split else ReadingReport()
        pairs = corpus_pairs(data, index, reading)
        if corpus.split is None and kept is not None:
            pairs = kept.passing(index, pairs, reading)
        for split, pair in pairs:
            if split in wanted:
                found[split].pairs.append(pair)
        if corpus.split is None:
            for split in wanted:
                found[split].drawn_reading.add(reading)
    return found


def has_split(data: DataConfig, split: SplitName) -> bool:
    """Whether the config has a source of pairs for this split."""
    if isinstance(data, PhrasebookData | SequencesData):
        return True
    return any(is_read_for(data, index, split) for index in range(len(data.corpora)))


def is_read_for(data: FilesData | HubData, index: int, split: SplitName) -> bool:
    """Whether pairs of a corpus belong to a split: all of them, or a share that is drawn."""
    # Training gets the rest of each corpus without `split`.
    shares = {"train": 1.0, "validation": data.validation_share, "test": data.test_share}
    given = data.corpora[index].split
    return given == split or (given is None and shares[split] > 0)


def source_digests(data: DataConfig, *, seed: int, split: SplitName | None = None) -> dict[str, str]:
    """Name -> SHA-256 of each source of the pairs, so that a resumed run notices a change.

    Names of files are relative to `data.root`, so the folder of a corpus may move.

    Args:
        split: only the sources of the pairs of this split; None: all.
    """
    if isinstance(data, PhrasebookData):
        # Its other splits are the same for every run.
        return {"phrasebook": phrasebook_fingerprint(data.num_pairs)} if split in (None, "train") else {}
    if isinstance(data, SequencesData):
        text = f"{_VERSION} {data.num_pairs} {_seed(data, 'train', seed)}"
        return {f"sequences: {data.task}": sha256(text.encode()).hexdigest()}
    digests: dict[str, str] = {}
    for index in range(len(data.corpora)):
        if split is not None and not is_read_for(data, index, split):
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


def corpus_pairs(
    data: FilesData | HubData, index: int, report: ReadingReport
) -> Iterator[tuple[SplitName, SentencePair]]:
    """All pairs of a corpus with their splits; `report` counts the rows of each split when they have been read."""
    rows = read_pair_files(data, index, report) if isinstance(data, FilesData) else read_hub(data, index, report)
    given, directions = data.corpora[index].split, data.directions
    numbers = direction_numbers(data, index)
    # A pair and its reverse belong to one split, so all corpora of two languages are hashed in one direction.
    is_turned = directions[numbers[0]].reverse in directions[: numbers[0]]
    path = alignment_path(data, index)
    alignments = None if path is None else AlignmentFile(path)
    num_before = report.num_rows
    for source, target in watched(rows, data, index):
        links = ""
        if alignments is not None:
            links = alignments.links_of_row(report.num_rows - num_before, source, target)
        pairs = in_directions((source, target), index, numbers, links)
        split = given or draw_split(
            SentencePair(target, source) if is_turned else pairs[0],
            validation_share=data.validation_share,
            test_share=data.test_share,
        )
        report.num_usable[split] += 1
        for pair in pairs:
            yield split, pair
    if alignments is not None:
        alignments.require_end_after(report.num_rows - num_before)


def direction_numbers(data: FilesData | HubData, index: int) -> list[int]:
    """The directions in which the pairs of `data.corpora[index]` are read: indices into `data.directions`."""
    return [data.directions.index(direction) for direction in data.directions_of(index)]


def in_directions(row: tuple[str, str], corpus: int, directions: Sequence[int], links: str = "") -> list[SentencePair]:
    """The pair of a row in its written direction, and then in the reverse one if that is given too.

    Args:
        links: as in `SentencePair.links`, of the written direction.
    """
    source, target = row
    pairs = [SentencePair(source, target, corpus, directions[0], links)]
    for direction in directions[1:]:
        pairs.append(SentencePair(target, source, corpus, direction, reversed_links(links)))
    return pairs


# Splits drawn by the hash of a pair, where its corpus has no `split`.


def draw_split(pair: SentencePair, *, validation_share: float, test_share: float) -> SplitName:
    """The split of a pair, from a hash of its text; adding pairs to a corpus moves no other pair.

    Equal pairs get the same split. The smallest hashes go to test and the largest to validation, so
    changing the share of one moves no pair into or out of the other.
    """
    position = int.from_bytes(pair_digest(pair)[:8], "big") / 2**64
    if position < test_share:
        return "test"
    return "validation" if position >= 1.0 - validation_share else "train"


# Training pairs that are read while the model trains, and the place up to which they were read.


class Place(NamedTuple):
    """Where reading a corpus goes on."""

    file: int = 0
    """The number of the file, in the order of reading; a data set of the hub counts as one file."""
    row: int = 0
    """Rows of this file, or of the part of it that is read, that were read already."""


class StreamedCorpora:
    """A part of the training corpora, each read once from its place to its end.

    Args:
        data: a data section with `streaming`.
        places: one for each training corpus, within the part.
        part: which of the `data.stream_parts` parts is read.
    """

    def __init__(self, data: FilesData | HubData, places: list[Place], part: CorpusPart = WHOLE) -> None:
        self._data = data
        self._part = part
        self._corpora = training_corpora(data)
        self.places = list(places)
        both = zip(self._corpora, places, strict=True)
        self._rows = [self._rows_from(index, place) for index, place in both]

    def take(self, num_pairs: int) -> list[SentencePair]:
        """The next pairs: of each corpus an equal part of this number, or the pairs that it still has.

        With `data.both_directions` each of them is followed by its reverse, which the number does not count.
        """
        share = -(-num_pairs // len(self._corpora))
        taken: list[SentencePair] = []
        for number, index in enumerate(self._corpora):
            directions = direction_numbers(self._data, index)
            for row, place in islice(self._rows[number], share):
                taken += in_directions(row, index, directions)
                self.places[number] = place
        return taken

    def _rows_from(self, index: int, start: Place) -> Iterator[tuple[tuple[str, str], Place]]:
        data, part = self._data, self._part
        if isinstance(data, HubData):
            yield from _placed(lambda report, first: read_hub(data, index, report, first=first, part=part), start)
            return
        all_files = find_files(data, index)
        own_files = part.files(all_files, [files.num_bytes for files in all_files])
        part_of_file = part if own_files is None else WHOLE
        for number, files in enumerate(all_files if own_files is None else own_files):
            if number >= start.file:
                yield from _placed(
                    lambda report, first, files=files: read_file(  # type: ignore[misc]
                        files, data, index, report, first=first, part=part_of_file
                    ),
                    start if number == start.file else Place(number),
                )


def _placed(
    read: Callable[[ReadingReport, int], Iterator[tuple[str, str]]], start: Place
) -> Iterator[tuple[tuple[str, str], Place]]:
    """Each row with the place after it; rows that reading skips are counted too."""
    report = ReadingReport()
    for row in read(report, start.row):
        yield row, Place(start.file, start.row + report.num_rows)


def first_of_each_corpus(data: FilesData | HubData, num_pairs: int, report: ReadingReport) -> Iterator[SentencePair]:
    """At most so many training pairs of each corpus, one corpus after the other.

    With `data.both_directions` each of them is followed by its reverse, which the number does not count.
    """
    for index in training_corpora(data):
        rows = read_hub(data, index, report) if isinstance(data, HubData) else read_pair_files(data, index, report)
        directions = direction_numbers(data, index)
        for row in islice(watched(rows, data, index), num_pairs):
            report.num_usable["train"] += 1
            yield from in_directions(row, index, directions)


def is_streaming(data: DataConfig) -> TypeGuard[FilesData | HubData]:
    """Whether the training pairs are read while the model trains."""
    return isinstance(data, FilesData | HubData) and data.streaming


def training_corpora(data: FilesData | HubData) -> list[int]:
    """The indices of the corpora that are streamed."""
    return [index for index in range(len(data.corpora)) if is_streamed(data, index)]


# The corpora that are built in: the phrasebook, and sequences of symbols.


# The built-in English-Italian corpus: a compressed table of sentence pairs in the package.
#
# A grammar made the table once; docs/phrasebook.md says how. Each row has the split, the English
# sentence and its Italian translation. The rows of a split stand together, in the order in which they are read.


NUM_TRAINING_PAIRS = 60_000

# SHA-256 of the grammar from which the table comes. It is part of the fingerprint of every run that was
# trained on these pairs, also of those for which the grammar still made them; another table needs another one.
_GRAMMAR = "4abe7e7fb529cfab68626bc59048d267b696c85092a7a6170d8de46d08d6415a"
_SEED = 1  # with which the grammar made the training pairs


def read_phrasebook(split: SplitName, num_pairs: int = NUM_TRAINING_PAIRS) -> Iterator[SentencePair]:
    """The pairs of a split, the same for every run.

    Args:
        num_pairs: size of the training split: its first pairs. The other splits have a fixed size.

    Raises:
        ConfigError: the table has fewer training pairs.
    """
    if split == "train":
        _require_pairs(num_pairs)
        return islice(_rows(split), num_pairs)
    return _rows(split)


def phrasebook_fingerprint(num_pairs: int) -> str:
    """SHA-256 that says which training pairs are read.

    Raises:
        ConfigError: the table has fewer training pairs.
    """
    _require_pairs(num_pairs)
    return sha256(f"{_GRAMMAR} {num_pairs} {_SEED}".encode()).hexdigest()


def _require_pairs(num_pairs: int) -> None:
    if num_pairs > NUM_TRAINING_PAIRS:
        raise ConfigError(
            f"data.num_pairs: the built-in corpus has {NUM_TRAINING_PAIRS:,} training pairs, found {num_pairs:,}",
            hint=f"set data.num_pairs to {NUM_TRAINING_PAIRS} or less, or train on a corpus of your own: "
            "tfm init FILE writes a config for it",
        )


def _rows(split: SplitName) -> Iterator[SentencePair]:
    table = resources.files("transformer_cli.data.sources").joinpath("phrasebook.tsv.xz")
    with table.open("rb") as file, lzma.open(file) as content:
        lines = TextIOWrapper(content, encoding="utf-8", newline="\n")
        rows = (line.rstrip("\n").split("\t") for line in lines)
        from_split = dropwhile(lambda row: row[0] != split, rows)
        for _, source, target in takewhile(lambda row: row[0] == split, from_split):
            yield SentencePair(source, target)


# Synthetic tasks, whose symbols are numbers.


NUM_HELD_OUT_PAIRS = 1000
NUM_PER_LENGTH = 100

_VERSION = 1  # to be raised when a seed gives other pairs than before
_TARGETS: dict[str, Callable[[list[str]], list[str]]] = {
    "copy": list,
    "drop-first": lambda symbols: symbols[1:],
    "reverse": lambda symbols: symbols[::-1],
    "sort": lambda symbols: sorted(symbols, key=int),
    "memorise": list,
}
# The hash of a sequence decides its split: of 20 shares, validation and test have one each.
_NUM_SHARES = 20
_SHARES = {"validation": range(1), "test": range(1, 2), "train": range(2, _NUM_SHARES)}


def generate_sequences(data: SequencesData, split: SplitName, *, seed: int) -> Iterator[SentencePair]:
    """Yield random sequences and their correct answers; the same seed gives the same pairs.

    The training split has no held-out sequence, unless there are too few different sequences. In
    drop-first every source begins with the symbol 1, as in the tutorial that defines the task.
    In memorise, all splits have the same pairs.
    """
    if data.task == "memorise":
        split = "train"
    numbers = random.Random(_seed(data, split, seed))
    lengths = range(data.min_length, data.max_length + 1)
    first = ["1"] if data.task == "drop-first" else []
    symbols = [str(symbol) for symbol in range(1 + len(first), data.num_symbols + 1)]
    # Whether there are enough different sequences for each split to have its own.
    num_different = len(symbols) ** (data.max_length - len(first))
    are_apart = data.task != "memorise" and num_different >= _NUM_SHARES * NUM_HELD_OUT_PAIRS
    share = _SHARES[split] if are_apart else range(_NUM_SHARES)
    for _ in range(data.num_pairs if split == "train" else NUM_HELD_OUT_PAIRS):
        while True:
            words = [*first, *numbers.choices(symbols, k=numbers.choice(lengths) - len(first))]
            source = " ".join(words)
            if int.from_bytes(sha256(source.encode()).digest()[:8], "big") % _NUM_SHARES in share:
                break
        yield SentencePair(source, " ".join(_TARGETS[data.task](words)))


def sequences_of_length(data: SequencesData, length: int, *, seed: int) -> list[SentencePair]:
    """100 test pairs with sources of `length` symbols; the same seed gives the same pairs.

    They do not occur in training, unless there are too few different sequences. In memorise, they
    are the training pairs of this length, however many these are.
    """
    if data.task == "memorise":
        pairs = generate_sequences(data, "train", seed=seed)
        return [pair for pair in pairs if len(pair.source.split()) == length]
    data_of_length = data.model_copy(update={"min_length": length, "max_length": length})
    return list(islice(generate_sequences(data_of_length, "test", seed=seed), NUM_PER_LENGTH))


def _seed(data: SequencesData, split: str, seed: int) -> int:
    settings = (data.task, data.num_symbols, data.min_length, data.max_length)
    digest = sha256(f"{seed} {split} {settings}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
