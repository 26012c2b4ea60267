"""Blocks that extensions of Markdown know and CommonMark does not: footnotes, definitions, boxes, directives, formulas.

CommonMark would read them as parts of a paragraph, and the translation would join their lines.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

Lines = list[str]

_FOOTNOTE = re.compile(r" {0,3}\[\^[^\]\s]+\]:[ \t]*")
_DEFINITION = re.compile(r" {0,3}:[ \t]+(?=\S)")
# A box of MkDocs: !!! note "Title", ??? tip, === "Tab"; its text is indented.
_BOX = re.compile(r" {0,3}(?:!!!|\?\?\?\+?|===)[ \t]+[\w\"'].*")
# Directives (:::), commands of Hugo and Jekyll on a line of their own, attributes, a table of contents, abbreviations.
_KEPT = re.compile(
    r" {0,3}(?::{3,}.*|\{\{[<%].*[%>]\}\}[ \t]*|\{%.*%\}[ \t]*|\{:.*\}[ \t]*|\[\[?_?TOC_?\]?\][ \t]*|\*\[[^\]]+\]:.*)",
    re.IGNORECASE,
)
_FORMULA = re.compile(r" {0,3}\$\$")
_ANY = re.compile(r" {0,3}(?:\[[\^\[T_]|:|!!!|\?\?\?|===|\{|\*\[|\$\$)", re.IGNORECASE)
_MAX_FORMULA = 200  # lines
_INDENTED = re.compile(r" {4}| {0,3}\t")


@dataclass(slots=True)
class DividedLines:
    """The lines of a text, as documents of CommonMark; each has all rows, and a row of another document is blank."""

    plain: Lines
    """Without the extensions."""
    inner: tuple[Lines, ...] = ()
    """The texts inside footnotes, definitions and boxes, without their indentation."""


@dataclass(slots=True)
class _Container:
    """A block whose lines behind the first are indented."""

    row: int
    text: str
    """What stands behind the mark in the first row."""
    is_lazy: bool
    """Whether lines without indentation go on with a paragraph in it."""
    lines: dict[int, str] = field(default_factory=dict)
    """The other rows, without their indentation."""


def may_begin_extension(line: str) -> bool:
    """Whether a line looks like the beginning of one of these blocks."""
    return _ANY.match(line) is not None


def divided_lines(lines: Sequence[str], code_rows: Collection[int]) -> DividedLines:
    """Take the extensions out of a Markdown text.

    Args:
        lines: without their line ends.
        code_rows: the rows in blocks of code and of HTML, in which nothing begins.
    """
    plain = list(lines)
    found: list[_Container] = []
    for row in _starts(lines, code_rows):
        if row < _end(found):
            continue
        container = _container_at(lines, row)
        if container is None:
            plain[row] = ""
            continue
        _read_rows(container, lines, code_rows)
        found.append(container)
        for taken in (row, *container.lines):
            plain[taken] = ""
    # Neighbours come into different documents, so that their paragraphs are not joined.
    inner = [[""] * len(lines) for _ in range(min(2, len(found)))]
    for number, container in enumerate(found):
        document = inner[number % 2]
        document[container.row] = container.text
        for row, line in container.lines.items():
            document[row] = line
    return DividedLines(plain, tuple(inner))


def _end(found: Sequence[_Container]) -> int:
    if not found:
        return 0
    return next(reversed(found[-1].lines), found[-1].row) + 1


def _starts(lines: Sequence[str], code_rows: Collection[int]) -> Iterator[int]:
    """The rows that are kept as they are, or in which a container begins."""
    is_formula = False
    for row, line in enumerate(lines):
        if is_formula:
            yield row
            is_formula = not line.rstrip().endswith("$$")
        elif row in code_rows:
            continue
        elif _FORMULA.match(line):
            yield row
            inside = line.strip().removeprefix("$$")
            is_formula = "$$" not in inside and _has_end_of_formula(lines, row)
        elif _KEPT.fullmatch(line) or _container_at(lines, row) is not None:
            yield row


def _has_end_of_formula(lines: Sequence[str], row: int) -> bool:
    """Whether a formula ends before the next blank line."""
    for line in lines[row + 1 : row + _MAX_FORMULA]:
        if not line.strip():
            return False
        if line.rstrip().endswith("$$"):
            return True
    return False


def _container_at(lines: Sequence[str], row: int) -> _Container | None:
    line = lines[row]
    if match := _FOOTNOTE.match(line):
        return _Container(row, line[match.end() :], is_lazy=True)
    if _BOX.fullmatch(line):
        return _Container(row, "", is_lazy=False)
    is_behind_term = any(lines[before].strip() for before in range(max(0, row - 2), row))
    match = _DEFINITION.match(line)
    return _Container(row, line[match.end() :], is_lazy=True) if match and is_behind_term else None


def _read_rows(container: _Container, lines: Sequence[str], code_rows: Collection[int]) -> None:
    """Read the rows behind the first that belong to a container."""
    blank: list[int] = []
    for row in range(container.row + 1, len(lines)):
        line = lines[row]
        if not line.strip():
            blank.append(row)
            continue
        indentation = _INDENTED.match(line)
        is_lazy = container.is_lazy and not blank and row not in code_rows
        if indentation is None and (not is_lazy or _KEPT.fullmatch(line) or _container_at(lines, row)):  # fmt: skip
            return
        container.lines |= dict.fromkeys(blank, "")
        container.lines[row] = line[indentation.end() :] if indentation else line
        blank = []
