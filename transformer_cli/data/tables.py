"""Rows of TSV and CSV files, cut as bytes, so that damaged text cannot move a column."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from transformer_cli.data.fields import Fields, unknown_field
from transformer_cli.data.lines import MAX_LINE_BYTES, RawPair, read_lines
from transformer_cli.errors import DataError

_Row = tuple[int, list[bytes] | None]  # number of its first line; None: too long to be read
_DELIMITERS = {b"\t": "a tab", b";": "a semicolon", b",": "a comma"}
_NUM_SNIFFED_ROWS = 100
_SEPARATOR_LINE = re.compile(rb"sep=([,;\t])", re.IGNORECASE)  # Excel's own first line
# What follows an opening quote, up to the closing one; two quotes inside stand for one.
_QUOTED = re.compile(rb'[^"]*(?:""[^"]*)*')


def read_table(
    path: Path, kind: str, fields: Fields, *, has_header: bool | None
) -> Iterator[RawPair]:
    """The pairs of a TSV or CSV file, one a row.

    TSV: a tab ends a field, and quotes are text. CSV: commas, semicolons or tabs, whichever the file
    has; a field in quotes may hold them, line ends and doubled quotes.

    Raises:
        DataError: a column does not exist, or a row has more or fewer columns than the first.
    """
    delimiter = b"\t" if kind == "tsv" else _sniff_delimiter(path)
    rows = _tsv_rows(path) if kind == "tsv" else _csv_rows(path, delimiter)
    num_columns, source, target = 0, 0, 1
    for line, row in rows:
        if row is None:
            yield RawPair(line, None, None)
            continue
        if not num_columns:
            header, source, target = _find_columns(row, fields, has_header, str(path))
            num_columns = len(row)
            if header:
                continue
        if row == [b""]:
            yield RawPair(line, b"", b"")
            continue
        if len(row) != num_columns:
            raise DataError(
                f"{path}:{line}: {len(row)} columns, where the first row has {num_columns}",
                hint=f"{_DELIMITERS[delimiter]} inside a sentence? "
                + (
                    "if such fields stand in quotes, set format: csv"
                    if kind == "tsv"
                    else "a field that holds one must stand in quotes"
                ),
            )
        yield RawPair(line, row[source], row[target])


def _find_columns(
    first_row: Sequence[bytes], fields: Fields, has_header: bool | None, path: str
) -> tuple[bool, int, int]:
    """Whether the first row names the columns, and the numbers of the two columns."""
    cells = [cell.decode(errors="replace").strip() for cell in first_row]
    if len(cells) < 2:
        raise DataError(
            f"{path}: one column only, where two are needed; it begins with {cells[0][:60]!r}",
            hint="columns are divided by tabs in TSV, by commas, semicolons or tabs in CSV",
        )
    names = [cell.casefold() for cell in cells]
    languages = [fields.source_language.casefold(), fields.target_language.casefold()]
    given = [fields.source, fields.target]
    named = any(isinstance(side, str) for side in given)
    if has_header is None:
        has_header = named or (given == [None, None] and all(name in names for name in languages))
    if named and not has_header:
        raise DataError(
            f"{fields.setting}: columns are given by name, but has_header is false",
            hint="give them by number, from 0",
        )
    for side, language in enumerate(languages):
        name = given[side]
        if isinstance(name, str):
            given[side] = _column_number(name, cells, fields, path)
        elif name is not None and name >= len(cells):
            raise unknown_field(
                str(name), [str(number) for number in range(len(cells))], fields, path
            )
        elif name is None and has_header and language in names:
            given[side] = names.index(language)
    source, target = given
    free = (column for column in range(len(cells)) if column not in given)
    source = next(free) if source is None else source
    target = next(free) if target is None else target
    if source == target:
        raise DataError(f"{path}: column {source} is named for both sides")
    return has_header, int(source), int(target)


def _column_number(name: str, cells: Sequence[str], fields: Fields, path: str) -> int:
    numbers = [number for number, cell in enumerate(cells) if cell == name]
    if not numbers:
        raise unknown_field(name, cells, fields, path)
    if len(numbers) > 1:
        raise DataError(
            f"{path}: {len(numbers)} columns are named {name}",
            hint=f"give it by number, from 0, in {fields.setting}, and has_header: true",
        )
    return numbers[0]


def _tsv_rows(path: Path) -> Iterator[_Row]:
    for number, line in enumerate(read_lines(path), start=1):
        yield number, None if line is None else line.split(b"\t")


def _csv_rows(path: Path, delimiter: bytes) -> Iterator[_Row]:
    """Rows with their quotes taken off; the standard reader also ends rows at a lone 0x0D."""
    row: list[bytes] = []
    open_field: list[bytes] = []  # lines so far of a field whose closing quote has not come yet
    first_line = num_bytes = 0
    for number, line in enumerate(read_lines(path), start=1):
        if number == 1 and line is not None and _SEPARATOR_LINE.fullmatch(line):
            continue
        if line is None:
            row, open_field = [], []
            yield number, None
            continue
        if not open_field:
            if b'"' not in line:
                yield number, line.split(delimiter)
                continue
            row, first_line, num_bytes = [], number, 0
        num_bytes += len(line)
        if num_bytes > MAX_LINE_BYTES:
            raise _unclosed(path, first_line)
        open_field = _cut_line(line, delimiter, row, open_field)
        if not open_field:
            yield first_line, row
    if open_field:
        raise _unclosed(path, first_line)


def _cut_line(
    line: bytes, delimiter: bytes, row: list[bytes], open_field: list[bytes]
) -> list[bytes]:
    """Append the fields of a line to the row; what is left is a field that the next line goes on with."""
    position = 0
    is_quoted = bool(open_field)
    while True:
        if not is_quoted and line.startswith(b'"', position):
            is_quoted, position = True, position + 1
        text = b""
        if is_quoted:
            quoted = _QUOTED.match(line, position)
            assert quoted is not None  # it can match nothing at all
            text = quoted.group().replace(b'""', b'"')
            if quoted.end() == len(line):
                return [*open_field, text]
            text, position = b"\n".join([*open_field, text]), quoted.end() + 1
            is_quoted, open_field = False, []
        end = line.find(delimiter, position)
        row.append(text + line[position : end if end >= 0 else len(line)])
        if end < 0:
            return []
        position = end + 1


class _UnclosedQuote(DataError):
    pass


def _unclosed(path: Path, line: int) -> _UnclosedQuote:
    return _UnclosedQuote(
        f"{path}:{line}: a quote opens a field here and does not close",
        hint="double the quotes that are part of a sentence, or save as TSV",
    )


def _sniff_delimiter(path: Path) -> bytes:
    """The delimiter that cuts the first rows into the same number of columns, two or more."""
    beginning = next(read_lines(path), b"") or b""
    named = _SEPARATOR_LINE.fullmatch(beginning)
    if named:
        return named[1]
    shares = {}
    for delimiter in _DELIMITERS:
        counts = _num_columns(path, delimiter)
        shares[delimiter] = (
            counts.count(counts[0]) / len(counts) if counts and counts[0] > 1 else 0.0
        )
    # Of equals the first: sentences hold commas more often than semicolons, and hardly ever tabs.
    return max(shares, key=lambda delimiter: shares[delimiter])


def _num_columns(path: Path, delimiter: bytes) -> list[int]:
    try:
        rows = islice(_csv_rows(path, delimiter), _NUM_SNIFFED_ROWS)
        return [len(row) for _, row in rows if row is not None and row != [b""]]
    except _UnclosedQuote:  # with another delimiter it may close; a damaged file stays one
        return []
