"""CSV and TSV: the cells of chosen columns are translated; the dialect, quotes and line ends of all others stay."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from transformer_cli.extensions.documents.character_encoding import decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.segments import (
    LineNumbers,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    has_letter,
)
from transformer_cli.extensions.documents.strings import string_of, tagged_segment
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import on_one_line

_DELIMITERS = ",;\t|"
_NAMED_DELIMITER = re.compile(r'"?sep=([,;\t|])"?(?:\r\n|\r|\n)', re.IGNORECASE)
# Of a spreadsheet: =SUM(A1:A9), =B2*1.2, =A1&" x"
_FORMULA = re.compile(
    r"=\s*(?:[+-]\s*)?(?:[A-Z][A-Z0-9.]*\(|'?[^'\s=]{0,100}'?!|\$?[A-Z]{1,3}\$?\d)"
)
_SAMPLE = 100_000
_MOST_NAMES = 30


class Cell(NamedTuple):
    """A cell of a table: text[start:end], with its quotation marks."""

    start: int
    end: int
    value: str
    is_quoted: bool


def read_csv(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A table whose cells are separated by commas, semicolons, tabs or bars, whichever its first row has."""
    return _read_table(data, options, _delimiter)


def read_tsv(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A table whose cells are separated by tabs."""
    return _read_table(data, options, lambda text: "\t")


def _read_table(
    data: bytes, options: ReadingOptions, delimiter_of: Callable[[str], str]
) -> SplicedDocument:
    content = decoded(data, given=options.encoding)
    text = content.text
    # Excel writes the delimiter on a line of its own: sep=;
    named = _NAMED_DELIMITER.match(text)
    delimiter = named[1] if named else delimiter_of(text)
    rows = [
        row
        for row in rows_of_table(text, delimiter, options.watch, start=named.end() if named else 0)
        if len(row) > 1 or row[0].value
    ]
    if not rows:
        return SplicedDocument(content, ())
    names = [cell.value.strip() for cell in rows[0]]
    columns = _chosen(names, options.columns)
    # Columns with names have a first row that is not translated.
    has_names = any(not wanted.isdecimal() for wanted in options.columns)
    lines = LineNumbers(text)
    slots = []
    for row in rows[has_names:]:
        for number in columns:
            if number >= len(row) or not has_letter(row[number].value):
                continue
            if _FORMULA.match(row[number].value):
                continue
            cell = row[number]
            place = f"line {lines.number_at(cell.start)}, column {number + 1}"
            segment = replace(tagged_segment(cell.value, place), is_label=False)
            options.watch.counted(segment)
            slots.append(Slot(cell.start, cell.end, segment, partial(_written, cell, delimiter)))
    return SplicedDocument(content, tuple(slots))


def rows_of_table(
    text: str, delimiter: str, watch: ReadingWatch, *, start: int = 0
) -> Iterator[list[Cell]]:
    """The rows of a table; a quotation mark inside a quoted cell is doubled.

    Raises:
        DataError: a quoted cell never ends.
    """
    place, row = start, []
    while place < len(text):
        watch.look()
        cell = _cell_at(text, place, delimiter)
        row.append(cell)
        place = cell.end
        if text.startswith(delimiter, place):
            place += 1
            if place == len(text):
                row.append(Cell(place, place, "", is_quoted=False))
            continue
        yield row
        row = []
        place += 2 if text.startswith("\r\n", place) else 1
    if row:
        yield row


def _cell_at(text: str, start: int, delimiter: str) -> Cell:
    if not text.startswith('"', start):
        end = start
        while end < len(text) and text[end] not in (delimiter, "\r", "\n"):
            end += 1
        return Cell(start, end, text[start:end], is_quoted=False)
    place = start + 1
    while True:
        place = text.find('"', place)
        if place < 0:
            line = LineNumbers(text).number_at(start)
            raise DataError(f"line {line}: a quotation mark opens a cell and is never closed")
        if not text.startswith('""', place):
            break
        place += 2
    end = place + 1
    while end < len(text) and text[end] not in (delimiter, "\r", "\n"):
        end += (
            1  # what stands behind the closing mark belongs to the cell, as Python's csv reads it
        )
    value = text[start + 1 : place].replace('""', '"') + text[place + 1 : end]
    return Cell(start, end, value, is_quoted=True)


def _delimiter(text: str) -> str:
    """The sign that separates the cells of the first row; of several, the one that stands there most often."""
    try:
        dialect = csv.Sniffer().sniff(text[:_SAMPLE].split("\n", 1)[0], _DELIMITERS)
    except csv.Error:
        return ","
    return dialect.delimiter


def _chosen(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The indices of the wanted columns, each once; of a name that several have, all of them.

    Raises:
        UsageError: no column is wanted, or there is none of this name or number.
    """
    shown = ", ".join(on_one_line(name, 40) or "(no name)" for name in names[:_MOST_NAMES])
    has_all = f"the table has {len(names)} columns: {shown}"
    if not wanted:
        raise UsageError(
            "which columns are to be translated?",
            hint=f"{has_all}; name one or more: --columns NAME, or --columns NUMBER",
        )
    columns: list[int] = []
    numbers = {str(number): number for number in range(1, len(names) + 1)}
    for name in wanted:
        if name in names:
            columns += [at for at, given in enumerate(names) if given == name]
        elif name in numbers:
            columns.append(numbers[name] - 1)
        else:
            raise UsageError(f"there is no column {on_one_line(name, 40)}", hint=has_all)
    return list(dict.fromkeys(columns))


def _written(cell: Cell, delimiter: str, translation: TranslatedSegment) -> str:
    """A cell with another text; it is quoted if it was, or must be."""
    text = string_of(translation)
    # A mark inside a cell without marks around it is plain text, also in the translation.
    needs_marks = ["\r", "\n", delimiter] if '"' in cell.value else ["\r", "\n", delimiter, '"']
    if cell.is_quoted or text.startswith('"') or any(sign in text for sign in needs_marks):
        return '"' + text.replace('"', '""') + '"'
    return text
