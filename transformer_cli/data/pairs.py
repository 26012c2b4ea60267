"""What a sentence pair is, what identifies it, and what is noticed while pairs are read."""

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
    """16 bytes, equal for pairs whose texts are equal in Unicode NFC, whatever their corpus."""
    source = compose(pair.source).encode("utf-8", "surrogatepass")
    target = compose(pair.target).encode("utf-8", "surrogatepass")
    # The length keeps ("ab", "c") and ("a", "bc") apart.
    return blake2b(b"%d:%b%b" % (len(source), source, target), digest_size=16).digest()


@dataclass(slots=True)
class Finding:
    """How often something was met, and where first."""

    count: int = 0
    example: str = ""


@dataclass(slots=True)
class ReadingReport:
    """Collects what reading did to corpora; a drawn split reads, and reports on, all of its corpus."""

    num_rows: int = 0
    """Pairs found in the files, whichever split they belong to."""
    num_read: int = 0
    """Pairs handed on: those of the split asked for."""
    drawn: dict[str, int] = field(default_factory=dict)
    """Other split -> pairs that were drawn for it, and so not handed on."""
    skipped: dict[str, Finding] = field(default_factory=dict)
    """Reason why pairs were not handed on -> how many, and the place of the first."""
    noticed: dict[str, Finding] = field(default_factory=dict)
    """What is unusual in pairs that were handed on -> how many, and the place of the first."""

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
        """Rows for people: what, how many pairs, where first."""
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
        """Plain values, for a file."""
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
