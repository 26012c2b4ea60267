"""Sentence pairs: the type, a digest to compare them by, and a report on reading them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from transformer_cli.text.normalization import compose


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str
    corpus: int = 0
    """Index into `data.corpora`."""


def pair_digest(pair: SentencePair) -> bytes:
    """A hash of 16 bytes; pairs with the same texts in Unicode NFC have the same hash, in any corpus."""
    source = compose(pair.source).encode("utf-8", "surrogatepass")
    target = compose(pair.target).encode("utf-8", "surrogatepass")
    # With the length, ("ab", "c") and ("a", "bc") have different hashes.
    return blake2b(b"%d:%b%b" % (len(source), source, target), digest_size=16).digest()


@dataclass(slots=True)
class Finding:
    """A number of pairs, and an example: the place or the text of the first of them."""

    count: int = 0
    example: str = ""


@dataclass(slots=True)
class ReadingReport:
    """Counts pairs while corpora are read; to draw a split, its whole corpus is read and counted."""

    num_rows: int = 0
    """Pairs in the files, of all splits together."""
    num_read: int = 0
    """Pairs returned: those of the requested split."""
    drawn: dict[str, int] = field(default_factory=dict)
    """Other split -> number of pairs that were drawn for it, and so not returned."""
    skipped: dict[str, Finding] = field(default_factory=dict)
    """Reason why pairs were not returned -> their number, and the place of the first."""
    noticed: dict[str, Finding] = field(default_factory=dict)
    """Unusual property of returned pairs -> their number, and the place of the first."""

    @property
    def num_skipped(self) -> int:
        return sum(finding.count for finding in self.skipped.values())

    def skip(self, reason: str, place: str) -> None:
        _add(self.skipped, reason, place)

    def leave_to(self, split: str) -> None:
        """Count a pair that was drawn for another split."""
        self.drawn[split] = self.drawn.get(split, 0) + 1

    def notice(self, what: str, place: str) -> None:
        _add(self.noticed, what, place)

    def table(self) -> list[tuple[str, int, str]]:
        """Rows of a table for people: what was counted, number of pairs, place of the first."""
        return [
            ("rows read", self.num_rows, ""),
            *(
                (f"skipped: {what}", found.count, found.example)
                for what, found in self.skipped.items()
            ),
            *(
                (f"drawn for {split}", count, "")
                for split, count in sorted(self.drawn.items(), reverse=True)
            ),
            *(
                (f"kept: {what}", found.count, found.example)
                for what, found in self.noticed.items()
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        """The report as a dictionary for a JSON file."""
        return {
            "num_rows": self.num_rows,
            "num_read": self.num_read,
            "skipped": dict(_plain(self.skipped)),
            "drawn": dict(self.drawn),
            "noticed": dict(_plain(self.noticed)),
        }


def _add(findings: dict[str, Finding], what: str, place: str) -> None:
    finding = findings.setdefault(what, Finding(example=place))
    finding.count += 1


def _plain(findings: dict[str, Finding]) -> Iterator[tuple[str, dict[str, Any]]]:
    for what, finding in findings.items():
        yield what, {"count": finding.count, "example": finding.example}
