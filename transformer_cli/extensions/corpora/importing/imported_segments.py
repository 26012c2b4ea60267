"""Segments of imported files: the type, the counts, and text that fits on one line."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from transformer_cli.data.pairs import Finding
from transformer_cli.text.languages import primary_language

_WHITE_SPACE = re.compile(r"[\s\x1c-\x1f\x85\u2028\u2029]+")


class Segment(NamedTuple):
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


def same_language(code: str, other: str) -> bool:
    """Whether two codes are equal, apart from case and from - or _."""
    return _plain(code) == _plain(other)


def best_match(wanted: str, codes: list[str]) -> int | None:
    """The index of the code for a language: an equal one, else one without regard to region and script."""
    for index, code in enumerate(codes):
        if same_language(code, wanted):
            return index
    for index, code in enumerate(codes):
        if primary_language(code) == primary_language(wanted):
            return index
    return None


def _plain(code: str) -> str:
    return code.strip().lower().replace("_", "-")
