"""Sentence pairs: the type, a digest to compare them by, a report on reading them, and their text."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.process.messages import on_one_line
from transformer_cli.text.normalization import compose


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str
    corpus: int = 0
    """Index into `data.corpora`."""
    direction: int = 0
    """Index into `data.directions`."""
    links: str = ""
    """The word alignment as `data/alignments.py` stores it; empty: there is none."""


PairRows = Any
"""Pairs as a record batch of pyarrow, with a column for each field of `SentencePair`."""


def rows_of_pairs(pairs: Sequence[SentencePair]) -> PairRows:
    """The pairs as rows. Their texts have no lone surrogates, which UTF-8 cannot express."""
    import pyarrow as pa

    # Not at the top: with it comes numpy, and a sentence that another library translates needs none.
    from transformer_cli.text.token_ids import number_column, text_column

    sources, targets, *numbers, links = zip(*pairs, strict=True) if pairs else [()] * 5
    columns = [
        *map(text_column, (sources, targets)),
        *(number_column(column, pa.uint16()) for column in numbers),
        text_column(links),
    ]
    return pa.record_batch(columns, names=list(SentencePair._fields))


def pairs_of_rows(rows: PairRows) -> list[SentencePair]:
    """The pairs of rows."""
    columns = (column.to_pylist() for column in rows.columns)
    return list(map(SentencePair._make, zip(*columns, strict=True)))


def pair_digest(pair: SentencePair) -> bytes:
    """A hash of 16 bytes; pairs with the same texts in Unicode NFC have the same hash, in any corpus."""
    source = compose(pair.source).encode("utf-8", "surrogatepass")
    target = compose(pair.target).encode("utf-8", "surrogatepass")
    # With the length, ("ab", "c") and ("a", "bc") have different hashes.
    return blake2b(b"%d:%b%b" % (len(source), source, target), digest_size=16).digest()


ReportRow = tuple[str, int, str]
"""A row of a table for people: what was counted, number of pairs, an example."""


@dataclass(slots=True)
class Finding:
    """A number of pairs, and an example: the place or the text of the first of them."""

    count: int = 0
    example: str = ""


def finding_rows(title: str, findings: Mapping[str, Finding]) -> list[ReportRow]:
    """One row for each kind of finding."""
    return [(f"{title}: {what}", one.count, one.example) for what, one in findings.items()]


def table_lines(rows: Sequence[ReportRow]) -> list[str]:
    """The rows as lines of text, in columns."""
    width = max((len(what) for what, _, _ in rows), default=0)
    return [f"  {what:{width}} {count:>10,}  {on_one_line(example)}".rstrip() for what, count, example in rows]


@dataclass(slots=True)
class ReadingReport:
    """Counts the pairs that are read; a corpus without `split` is read and counted as a whole."""

    split: str = "train"
    """The split whose pairs are returned."""
    num_rows: int = 0
    """Pairs in the files, of all splits together."""
    num_usable: Counter[str] = field(default_factory=Counter)
    """Split -> number of pairs that belong to it; only those of `split` are returned."""
    skipped: dict[str, Finding] = field(default_factory=dict)
    """Reason why pairs were not returned -> their number, and the place of the first."""
    unusual: dict[str, Finding] = field(default_factory=dict)
    """Unusual property of returned pairs -> their number, and the place of the first."""

    @property
    def num_read(self) -> int:
        """Pairs that are returned: those of `split`."""
        return self.num_usable[self.split]

    @property
    def num_skipped(self) -> int:
        return sum(finding.count for finding in self.skipped.values())

    def skip(self, reason: str, place: str) -> None:
        self.skipped.setdefault(reason, Finding(example=place)).count += 1

    def notice(self, what: str, place: str) -> None:
        self.unusual.setdefault(what, Finding(example=place)).count += 1

    def add(self, other: "ReadingReport") -> None:
        """Add the counts of another corpus, which was read after those that are counted here."""
        self.num_rows += other.num_rows
        self.num_usable.update(other.num_usable)
        for mine, more in ((self.skipped, other.skipped), (self.unusual, other.unusual)):
            for what, finding in more.items():
                mine.setdefault(what, Finding(example=finding.example)).count += finding.count

    def table(self) -> list[ReportRow]:
        """How many rows were read, skipped, drawn or kept; with the first place of each."""
        return [
            ("rows read", self.num_rows, ""),
            *finding_rows("skipped", self.skipped),
            *(
                (f"drawn for {split}", count, "")
                for split, count in sorted(self.num_usable.items(), reverse=True)
                if split != self.split
            ),
            *finding_rows("kept", self.unusual),
        ]


@dataclass(slots=True)
class CleaningReport:
    """Counts the pairs that each rule dropped or altered, in the order of the rules."""

    num_read: int = 0
    num_kept: int = 0
    dropped: dict[str, Finding] = field(default_factory=dict)
    """Rule -> number of pairs that it dropped, and the first; a pair counts for its first rule only."""
    altered: dict[str, Finding] = field(default_factory=dict)
    """Rule -> number of pairs whose text it changed, and the first, before the change."""

    def table(self) -> list[ReportRow]:
        """How many pairs each rule altered or dropped; the first."""
        return [
            ("pairs read", self.num_read, ""),
            *finding_rows("altered", self.altered),
            *finding_rows("dropped", self.dropped),
            ("pairs kept", self.num_kept, ""),
        ]


# Sentence pairs as text.
#
# The cleaned training pairs are read several times while the tokenizers are trained and the ids are made: those of a small corpus
# lie in memory, the rest of a large one in an Arrow file. The validation pairs stay with the run, one JSON list per line.


PAIRS_AT_ONCE = 10_000
MOST_BYTES_IN_MEMORY = 64 << 20


@dataclass(frozen=True, slots=True)
class TrainingText:
    """Pairs as rows, 10,000 at a time, which can be read several times; only the first ones lie in memory."""

    kept: Sequence[PairRows]
    num_pairs: int
    rest: Path | None
    """An Arrow file; None if all pairs are in memory."""

    def __iter__(self) -> Iterator[PairRows]:
        yield from self.kept
        if self.rest is not None:
            import pyarrow as pa

            with pa.memory_map(str(self.rest)) as file, pa.ipc.open_stream(file) as reader:
                yield from reader

    @classmethod
    def of(cls, pairs: Iterable[SentencePair], path: Path) -> "TrainingText":
        """The pairs; those that are too many for memory are written to a file at this path."""
        import pyarrow as pa

        remaining, num_pairs, num_bytes = iter(pairs), 0, 0
        batches = map(rows_of_pairs, iter(lambda: list(islice(remaining, PAIRS_AT_ONCE)), []))
        kept: list[PairRows] = []
        for rows in batches:
            kept.append(rows)
            num_pairs += rows.num_rows
            num_bytes += rows.nbytes
            if num_bytes >= MOST_BYTES_IN_MEMORY:
                break
        if (next_rows := next(batches, None)) is None:
            return cls(kept, num_pairs, None)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, next_rows.schema) as writer:
            for rows in chain([next_rows], batches):
                writer.write_batch(rows)
                num_pairs += rows.num_rows
        return cls(kept, num_pairs, path)


@dataclass(frozen=True, slots=True)
class ReversedText:
    """The pairs of a text the other way round, each in the corpus of its own number plus the number of corpora."""

    text: TrainingText
    num_corpora: int

    def __iter__(self) -> Iterator[PairRows]:
        import pyarrow as pa
        from pyarrow import compute

        for rows in self.text:
            source, target, corpus, *rest = rows.columns
            numbers = compute.add(corpus, pa.scalar(self.num_corpora, pa.uint16()))
            yield pa.record_batch([target, source, numbers, *rest], schema=rows.schema)


@dataclass(frozen=True, slots=True)
class SideTexts:
    """The sentences of a text, which can be read several times."""

    text: TrainingText
    sides: tuple[str, ...]
    """The sides that are read, one after the other: `source`, `target`, or both."""

    def __iter__(self) -> Iterator[str]:
        for side in self.sides:
            for rows in self.text:
                yield from rows.column(side).to_pylist()


def write_validation_pairs(path: Path, pairs: Iterable[SentencePair]) -> None:
    """Write one JSON list per line: source, target, number of the corpus, number of the direction."""
    # Without links, which are for training.
    lines = (json.dumps(pair[:4], ensure_ascii=False) + "\n" for pair in pairs)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def read_validation_pairs(path: Path) -> list[SentencePair]:
    """All pairs of a file of `write_validation_pairs`; a bad line raises an error."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [SentencePair(*json.loads(line)) for line in lines]
