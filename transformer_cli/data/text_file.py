"""Sentence pairs as text on disk.

The cleaned training pairs lie in an Arrow file while the tokenizers are trained and the ids are made. The
validation pairs stay with the run, one JSON list per line.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from transformer_cli.data.pairs import Rows, SentencePair, rows_of

PAIRS_AT_ONCE = 10_000


def write_text(path: Path, pairs: Iterable[SentencePair]) -> int:
    """Write pairs to an Arrow file, 10,000 at a time; returns their number."""
    import pyarrow as pa

    remaining, num_pairs = iter(pairs), 0
    schema = rows_of([]).schema
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        while chunk := list(islice(remaining, PAIRS_AT_ONCE)):
            writer.write_batch(rows_of(chunk))
            num_pairs += len(chunk)
    return num_pairs


@dataclass(frozen=True, slots=True)
class StoredText:
    """The texts of an Arrow file, which can be read several times without lying in memory."""

    path: Path
    sides: tuple[str, ...]
    """The sides that are read, one after the other: `source`, `target`, or both."""

    def __iter__(self) -> Iterator[str]:
        for side in self.sides:
            for rows in read_rows(self.path):
                yield from rows.column(side).to_pylist()


def read_rows(path: Path) -> Iterator[Rows]:
    """The pairs of an Arrow file, 10,000 at a time."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def write_validation_pairs(path: Path, pairs: Iterable[SentencePair]) -> None:
    """Write one JSON list per line: source, target, number of the corpus, number of the direction."""
    lines = (json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def read_validation_pairs(path: Path) -> list[SentencePair]:
    """All pairs of a file of `write_validation_pairs`; a bad line raises an error."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [SentencePair(*json.loads(line)) for line in lines]
