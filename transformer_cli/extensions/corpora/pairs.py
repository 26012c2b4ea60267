"""The pairs of corpora: with the place of each in its files, as they are read, fetched and imported."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from transformer_cli.config import Direction, FilesData, HubData, SplitName
from transformer_cli.config.schema import DataConfig
from transformer_cli.data.pairs import Finding, ReadingReport, SentencePair
from transformer_cli.data.sources.corpus import corpus_pairs, is_read_for, read_pairs
from transformer_cli.data.sources.lines import TOO_LONG, RawPair, UnequalLinesError, read_lines
from transformer_cli.data.sources.local_files import CorpusFiles, find_files, raw_pairs

NOT_UTF_8 = "not UTF-8"
"""Also of bytes that are no text in the encoding that a corpus names."""
NUL_BYTE = "a NUL byte"
NO_SOURCE, NO_TARGET = "no line of the source", "no line of the target"
"""Of the lines behind the end of the shorter side: which side has ended."""


class NumberedPair(NamedTuple):
    """A sentence pair and its place in the files of its corpus."""

    line: int
    """The number of the line or row of its source, from 1."""
    source: str
    target: str
    damage: str = ""
    """Why the files do not hold a pair here: `NOT_UTF_8`, `NUL_BYTE`, `TOO_LONG`, `NO_SOURCE` or `NO_TARGET`; empty for ordinary text."""
    offset: int = 0
    """Its target stands so many lines after the line of the same number; 0 in a corpus as it was read."""

    @property
    def target_line(self) -> int:
        return self.line + self.offset


@dataclass(frozen=True, slots=True)
class NumberedPart:
    """Two text files, one table, or another source of pairs, read in one piece."""

    split: SplitName | None
    """The split of its pairs; None: drawn for each pair."""
    source_name: str
    target_name: str
    direction: Direction
    files: CorpusFiles | None
    """None: the pairs come from the hub, or are generated."""
    index: int
    """Index into `data.corpora`."""

    @property
    def name(self) -> str:
        """The names of its files, for people."""
        both = dict.fromkeys((self.source_name, self.target_name))
        return " and ".join(both)

    def place(self, line: int, *, is_target: bool = False) -> str:
        """A line of one side, such as train.en:17."""
        return f"{self.target_name if is_target else self.source_name}:{line}"


_SPLITS: tuple[SplitName, ...] = ("validation", "test", "train")


def corpus_parts(data: DataConfig) -> list[NumberedPart]:
    """The parts of a corpus: the validation split first, then test, then the rest.

    Held-out pairs come first, so that training pairs can be compared with them.

    Raises:
        MissingInputError: a file does not exist.
        DataError: source and target files do not match, or a file has an unknown format.
    """
    parts: list[NumberedPart] = []
    if isinstance(data, FilesData):
        for index, corpus in enumerate(data.corpora):
            direction = data.directions_of(index)[0]
            for files in find_files(data, index):
                parts.append(NumberedPart(corpus.split, str(files.source), str(files.target), direction, files, index))
    elif isinstance(data, HubData):
        for index, hub_corpus in enumerate(data.corpora):
            direction = data.directions_of(index)[0]
            for split in _SPLITS:
                if is_read_for(data, index, split):
                    label = f"{hub_corpus.dataset}, {split}"
                    parts.append(NumberedPart(split, label, label, direction, None, index))
    else:
        for split in _SPLITS:
            label = f"{data.source}, {split}"
            parts.append(NumberedPart(split, label, label, data.directions[0], None, 0))
    order = ("validation", "test", None, "train")
    return sorted(parts, key=lambda part: order.index(part.split))


class NumberedPairs:
    """The pairs of a part, in order.

    `unequal` is the error about different numbers of lines, if there was one; it is known at the end.

    Args:
        has_surplus: whether the lines behind the end of the shorter side follow, each with an empty other side.
    """

    def __init__(self, part: NumberedPart, data: DataConfig, *, seed: int = 0, has_surplus: bool = False) -> None:
        self.part, self._data, self._seed, self._has_surplus = part, data, seed, has_surplus
        self.unequal: UnequalLinesError | None = None

    def __iter__(self) -> Iterator[NumberedPair]:
        part, data = self.part, self._data
        if part.files is None or not isinstance(data, FilesData):
            assert part.split is not None
            direction = data.directions.index(part.direction)
            forward = (pair for pair in self._split_pairs(part.split) if pair.direction == direction)
            for number, pair in enumerate(forward, start=1):
                yield NumberedPair(number, pair.source, pair.target)
            return
        num_pairs = 0
        try:
            for raw in raw_pairs(part.files, data, part.index):
                num_pairs = raw.line_number
                yield decoded_pair(raw)
        except UnequalLinesError as error:
            self.unequal = error
            if self._has_surplus:
                yield from _surplus(part.files, data.corpora[part.index].encoding, num_pairs)

    def _split_pairs(self, split: SplitName) -> Iterator[SentencePair]:
        if not isinstance(self._data, HubData):
            return read_pairs(self._data, split, seed=self._seed)
        drawn = corpus_pairs(self._data, self.part.index, ReadingReport())
        return (pair for pair_split, pair in drawn if pair_split == split)


def _surplus(files: CorpusFiles, encoding: str | None, num_pairs: int) -> Iterator[NumberedPair]:
    """The lines of the longer side behind the pairs."""
    for path, missing in ((files.source, NO_TARGET), (files.target, NO_SOURCE)):
        lines = enumerate(read_lines(path, encoding), start=1)
        for number, line in islice(lines, num_pairs, None):
            raw = RawPair(number, line, b"") if missing == NO_TARGET else RawPair(number, b"", line)
            pair = decoded_pair(raw)
            yield pair._replace(damage=pair.damage or missing)


def decoded_pair(raw: RawPair) -> NumberedPair:
    """The pair as text, as `decode_pairs` reads it; bytes that are not UTF-8 become U+FFFD."""
    line, source, target = raw
    if source is None or target is None:
        return NumberedPair(line, "", "", TOO_LONG)
    source, target = source.rstrip(b"\r"), target.rstrip(b"\r")
    damage = NUL_BYTE if b"\0" in source or b"\0" in target else ""
    try:
        return NumberedPair(line, source.decode(), target.decode(), damage)
    except UnicodeDecodeError:
        read_source, read_target = (side.decode(errors="replace") for side in (source, target))
        return NumberedPair(line, read_source, read_target, damage or NOT_UTF_8)


_WHITE_SPACE = re.compile(r"[\s\x1c-\x1f\x85\u2028\u2029]+")


class ImportedPair(NamedTuple):
    """A source and its translation."""

    line: int
    """Where it stands: a line of the file, or a row."""
    source: str
    target: str


@dataclass(slots=True)
class ImportReport:
    """What an import read, and what it left out."""

    num_units: int = 0
    """Translation units, rows or lines."""
    num_written: int = 0
    skipped: dict[str, Finding] = field(default_factory=dict)
    """Reason -> the number of units without a pair, and the place of the first."""
    noticed: dict[str, Finding] = field(default_factory=dict)
    """Facts about pairs that were written."""
    doubts: list[str] = field(default_factory=list)
    """What was found out about the file and a person should check, such as its encoding."""

    def skip(self, reason: str, place: str) -> None:
        self.skipped.setdefault(reason, Finding(example=place)).count += 1

    def notice(self, what: str, place: str) -> None:
        self.noticed.setdefault(what, Finding(example=place)).count += 1


def one_line(text: str) -> str:
    """The text with single spaces in place of line ends, tabs and other white space."""
    return _WHITE_SPACE.sub(" ", text).strip()
