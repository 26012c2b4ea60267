"""Reads TSV and CSV files as bytes, so that damaged text cannot shift a column."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.config.data import FilesData, HubData
from transformer_cli.data.sources.lines import MAX_LINE_BYTES, RawPair, carriage_return_error, read_lines
from transformer_cli.data.sources.watching import warn_of_corpus
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import shortened
from transformer_cli.text.languages import LANGUAGE_OF_NAME
from transformer_cli.text.legacy_encodings import encoding_that_reads

# Usual column names of parallel corpora in lower case: roles, and languages by name and by code.
ROLES = frozenset(["source", "target", "src", "tgt", "trg", "reference", "translation", "original", "sentence", "text"])
_COLUMN_NAMES = ROLES | LANGUAGE_OF_NAME.keys()
_VALUE_CHARACTERS = 30


class Fields(NamedTuple):
    """The source and target field of the config; languages find a field that is not given."""

    source: int | str | None
    target: int | str | None
    source_language: str
    target_language: str
    setting: str
    """The entry of the config that names them, such as data.corpora.0."""

    @classmethod
    def of(cls, data: FilesData | HubData, index: int) -> "Fields":
        """The fields of `data.corpora[index]`."""
        corpus, languages = data.corpora[index], data.directions_of(index)[0]
        return cls(corpus.source_field, corpus.target_field, *languages, f"data.corpora.{index}")


def field_paths(names: Sequence[str], fields: Fields, where: str) -> tuple[str, str]:
    """The path of the source field and of the target field, in rows with fields of these names.

    A field that the config does not give is translation.LANGUAGE if rows have the field translation,
    as on the hub; else the field named like its language, if both exist; else the first or second.
    """
    sides = (fields.source, fields.target)
    if any(isinstance(side, int) for side in sides):
        raise DataError(
            f"{fields.setting}: columns of {where} must be given by name, not by number",
            hint=f"its columns are {', '.join(names)}",
        )
    languages = (fields.source_language, fields.target_language)
    if "translation" in names:
        defaults = tuple(f"translation.{language}" for language in languages)
    elif all(language in names for language in languages):
        defaults = languages
    elif len(names) >= 2:
        defaults = (names[0], names[1])
        places = [names.index(side) if side in names else place for place, side in enumerate(sides)]
        file_name = re.sub(r":\d+$", "", where)
        warn_of_unused_columns(names, places, fields, file_name, are_by_place=None in sides)
    elif None in sides:
        raise DataError(f"{where}: one column only, {names[0]}, where two are needed")
    else:
        defaults = ("", "")
    source, target = (str(side or default) for side, default in zip(sides, defaults, strict=True))
    for path in (source, target):
        if path not in names and path.split(".")[0] not in names:
            raise unknown_field(path, names, fields, where)
    if source == target:
        raise DataError(f"{where}: field {source} is both source and target", hint=_hint(fields))
    return source, target


def value_at(row: Mapping[str, Any], path: str, where: str) -> bytes:
    """The text at a path such as translation.en, as UTF-8 bytes; empty if the value is null.

    Raises:
        DataError: the row has no such field, or the field does not hold text.
    """
    value: Any = row
    if path in row:
        value = row[path]
    else:
        for name in path.split("."):
            if not isinstance(value, Mapping) or name not in value:
                found = ", ".join(map(str, value)) if isinstance(value, Mapping) else kind_of(value)
                raise DataError(f"{where}: no field {path}, found {found}")
            value = value[name]
    if value is None:
        return b""
    if not isinstance(value, str):
        raise DataError(f"{where}: field {path} holds {kind_of(value)}, where text is expected")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # JSON can contain lone surrogates
        return value.encode("utf-8", "surrogatepass")


def unknown_field(name: str, found: Sequence[str], fields: Fields, where: str) -> DataError:
    """The error for a field that does not exist."""
    close = difflib.get_close_matches(name, found, n=1)
    return DataError(
        f"{where}: no column {name}, found {', '.join(found) or 'none'}",
        hint=(f"did you mean {close[0]}? " if close else "") + _hint(fields),
    )


def warn_of_likely_header(source: str, target: str, fields: Fields, path: str) -> None:
    """Log a warning if the two cells of a first row, read as a sentence pair, look like a header."""
    names = source.casefold(), target.casefold()
    # Two names of one language, such as English and Inglese, are a sentence pair and no header.
    meanings = [LANGUAGE_OF_NAME.get(name, name) for name in names]
    known = {*_COLUMN_NAMES, fields.source_language.casefold(), fields.target_language.casefold()}
    if meanings[0] != meanings[1] and all(
        name in known or name.replace("_", "-").split("-")[0] in known for name in names
    ):
        warn_of_corpus(
            f"{path}: the first row, {source} and {target}, looks like a header but is read as a sentence pair; if it is a header, "
            f"set {fields.setting}.has_header: true, or set source_field and target_field to these names; if it is a pair, set "
            "has_header: false"
        )


def warn_of_unused_columns(
    names: Sequence[str], chosen: Sequence[int], fields: Fields, path: str, *, are_by_place: bool
) -> None:
    """Log a warning if columns were chosen by their place alone and others are not used.

    Args:
        names: the names of the columns, or their first cells.
        chosen: the numbers of the source column and of the target column.
        are_by_place: whether a chosen column was found by its place, not by the config or its name.
    """
    shown = [f"{number} ({_excerpt(name)})" for number, name in enumerate(names)]
    unused = [text for number, text in enumerate(shown) if number not in chosen]
    if not unused or not are_by_place:
        return
    others = ", ".join(unused[:5]) + (f" and {len(unused) - 5} more" if len(unused) > 5 else "")
    source, target = (shown[number] for number in chosen)
    warn_of_corpus(
        f"{path}: the source is column {source}, the target is column {target}; not used: {others}; to choose other columns, or to "
        f"say that these are right, set source_field and target_field of {fields.setting}"
    )


def _excerpt(text: str) -> str:
    return repr(shortened(text, _VALUE_CHARACTERS))


def kind_of(value: Any) -> str:
    """The type of a JSON value in words, for messages."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return kinds.get(type(value), "an object")


def _hint(fields: Fields) -> str:
    return f"set {fields.setting}.source_field and .target_field"


# Reads TSV and CSV files as bytes, so that damaged text cannot shift a column.


_Row = tuple[int, list[bytes] | None]  # number of its first line; None: a line is too long
_DELIMITERS = {b"\t": "a tab", b";": "a semicolon", b",": "a comma"}
OTHER_SEPARATORS = {
    "|": "a vertical bar (|)",
    "\x01": "the control character 0x01",
    "\x1f": "the control character 0x1F",
    "#": "a number sign (#)",
}
"""What separates the columns of some tables that are not read."""
_NUM_SNIFFED_ROWS = 100
_EXCERPT_CHARACTERS = 40
_SEPARATOR_LINE = re.compile(rb"sep=([,;\t])", re.IGNORECASE)  # Excel names a delimiter so
# The text from an opening quote to the closing one; a doubled quote inside means one quote.
_QUOTED = re.compile(rb'[^"]*(?:""[^"]*)*')


def read_table(
    path: Path, kind: str, fields: Fields, *, has_header: bool | None, encoding: str | None = None
) -> Iterator[RawPair]:
    """Yield one pair for each row of a TSV or CSV file.

    TSV: tabs separate fields, and quotes are ordinary text. CSV: commas, semicolons or tabs separate
    fields; a field in quotes may contain the delimiter, line ends and doubled quotes.

    Raises:
        DataError: a column does not exist, a row has more or fewer columns than the first, or the
            quotes of a CSV file do not enclose whole fields.
    """
    delimiter = b"\t" if kind == "tsv" else _sniff_delimiter(path, encoding)
    rows = _tsv_rows(path, encoding) if kind == "tsv" else _csv_rows(path, delimiter, encoding)
    num_columns, source, target = 0, 0, 1
    for line, row in rows:
        if row is None:
            yield RawPair(line, None, None)
            continue
        if row == [b""]:
            yield RawPair(line, b"", b"")
            continue
        if not num_columns:
            try:
                header, source, target = _find_columns(row, fields, has_header, str(path))
            except DataError as error:
                if any(b"\r" in cell for cell in row):
                    problem = error.message.removeprefix(f"{path}: ").split("\r")[0]
                    raise carriage_return_error(f"{path}:{line}", path, problem) from error
                raise
            num_columns = len(row)
            if header:
                continue
        if len(row) != num_columns:
            raise _unequal_columns(f"{path}:{line}", path, row, num_columns, kind, delimiter)
        yield RawPair(line, row[source], row[target])


def _unequal_columns(
    where: str, path: Path, row: Sequence[bytes], num_columns: int, kind: str, delimiter: bytes
) -> DataError:
    found = f"{len(row)} column{'s' if len(row) > 1 else ''}, where the first row has {num_columns}"
    if any(b"\r" in cell for cell in row):
        return carriage_return_error(where, path, found)
    return DataError(f"{where}: {found}", hint=_hint_of_columns(kind, delimiter, are_too_many=len(row) > num_columns))


def require_equal_columns(path: Path, kind: str, num_rows: int, encoding: str | None = None) -> None:
    """Refuse a TSV or CSV file if one of its first rows has more or fewer columns than the first.

    Raises:
        DataError: with the line of this row, and what may be wrong with it.
    """
    delimiter = b"\t" if kind == "tsv" else _sniff_delimiter(path, encoding)
    rows = _tsv_rows(path, encoding) if kind == "tsv" else _csv_rows(path, delimiter, encoding)
    filled = ((line, row) for line, row in rows if row is not None and row != [b""])
    num_columns = 0
    for line, row in islice(filled, num_rows):
        num_columns = num_columns or len(row)
        if len(row) != num_columns:
            raise _unequal_columns(f"{path}:{line}", path, row, num_columns, kind, delimiter)


def first_rows(path: Path, kind: str, num_rows: int, encoding: str | None = None) -> list[list[str]]:
    """The first rows of a TSV or CSV file, the header included; bytes that are not UTF-8 are replaced.

    Raises:
        DataError: the file cannot be read as a table.
    """
    rows = _tsv_rows(path, encoding) if kind == "tsv" else _csv_rows(path, _sniff_delimiter(path, encoding), encoding)
    found = (row for _, row in rows if row is not None and row != [b""])
    return [[cell.decode(errors="replace") for cell in row] for row in islice(found, num_rows)]


def rows_of_any_table(path: Path, encoding: str | None = None) -> Iterator[_Row]:
    """The rows of a table by their numbers, as bytes, with the delimiter that is found out; rows may differ in their number of columns.

    Where a row near the beginning has a tab, tabs separate the columns; quotes mean what a spreadsheet means by them where each
    encloses a whole field. Else commas or semicolons separate the columns, as in CSV. A pipe is read once, with tabs.
    """
    if not path.is_file():
        return _tsv_rows(path, encoding)
    beginning = islice(read_lines(path, encoding), _NUM_SNIFFED_ROWS)
    if any(b"\t" in line for line in beginning if line is not None):
        return _csv_rows(path, b"\t", encoding) if has_quoted_fields(path, encoding) else _tsv_rows(path, encoding)
    return _csv_rows(path, _sniff_delimiter(path, encoding), encoding)


def has_quoted_fields(path: Path, encoding: str | None = None) -> bool:
    """Whether a file is a table with tabs of which every quote at the start of a field encloses the field, as spreadsheets save it."""
    try:
        rows = _csv_rows(path, b"\t", encoding)
        widths = {len(row) for _, row in rows if row is not None and row != [b""]}
    except DataError:  # a quote is ordinary text, as in "Yes," he said
        return False
    return len(widths) == 1 and widths != {1}


def _hint_of_columns(kind: str, delimiter: bytes, *, are_too_many: bool) -> str:
    name = _DELIMITERS[delimiter]
    if kind == "tsv" and are_too_many:
        return f"is there {name} inside a sentence? if such fields are in quotes, set format: csv"
    if kind == "tsv":
        return (
            f"is {name} missing, or is there a line end inside a sentence? "
            "if such fields are in quotes, set format: csv"
        )
    if are_too_many:
        return f"is there {name} inside a sentence? a field that contains one must be in quotes"
    return (
        f"is {name} missing, or is there a line end or an unpaired quote inside a sentence? "
        "a field that contains one must be in quotes, and its own quotes must be doubled"
    )


def _find_columns(
    first_row: Sequence[bytes], fields: Fields, has_header: bool | None, path: str
) -> tuple[bool, int, int]:
    """Whether the first row is a header, and the numbers of the source and the target column."""
    cells = [cell.decode(errors="replace").strip() for cell in first_row]
    if len(cells) < 2:
        raise DataError(
            f"{path}: one column only, where two are needed; it begins with {cells[0][:60]!r}",
            hint="tabs separate columns in TSV; commas, semicolons or tabs separate them in CSV",
        )
    names = [cell.casefold() for cell in cells]
    languages = [fields.source_language.casefold(), fields.target_language.casefold()]
    given = [fields.source, fields.target]
    named = any(isinstance(side, str) for side in given)
    is_guessed = has_header is None
    if has_header is None:
        has_header = named or (given == [None, None] and all(name in names for name in languages))
    if named and not has_header:
        raise DataError(
            f"{fields.setting}: columns are given by name, but has_header is false", hint="give them by number, from 0"
        )
    for side, language in enumerate(languages):
        name = given[side]
        if isinstance(name, str):
            given[side] = _column_number(name, first_row, fields, path)
        elif name is not None and name >= len(cells):
            raise unknown_field(str(name), [str(number) for number in range(len(cells))], fields, path)
        elif name is None and has_header and language in names:
            given[side] = names.index(language)
    source, target = given
    free = (column for column in range(len(cells)) if column not in given)
    source = next(free) if source is None else source
    target = next(free) if target is None else target
    if source == target:
        raise DataError(f"{path}: column {source} is both source and target")
    if is_guessed and not has_header:
        warn_of_likely_header(cells[int(source)], cells[int(target)], fields, path)
    chosen = int(source), int(target)
    warn_of_unused_columns(cells, chosen, fields, path, are_by_place=None in given)
    return has_header, *chosen


def _header_not_utf_8(name: str, header: Sequence[bytes], fields: Fields, path: str) -> DataError:
    """The error for a column that is not found in a header whose bytes are not UTF-8."""
    found = next(filter(None, (encoding_that_reads(cell.strip(), name) for cell in header)), None)
    cells = ", ".join(cell.decode(found or "utf-8", "replace") for cell in header)
    setting = f"{fields.setting}.encoding: {found}" if found else f"{fields.setting}.encoding, such as windows-1252"
    return DataError(
        f"{path}: no column {name} in the header, because the file is not UTF-8; "
        f"{f'as {found}' if found else 'found'}: {cells}",
        hint=f"name the encoding of the file: {setting}; tfm init finds it out: copy the entry of the file from the config that it writes",
    )


def _column_number(name: str, header: Sequence[bytes], fields: Fields, path: str) -> int:
    cells = [cell.decode(errors="replace").strip() for cell in header]
    numbers = [number for number, cell in enumerate(cells) if cell == name]
    if not numbers:
        if "\ufffd" in "".join(cells):
            raise _header_not_utf_8(name, header, fields, path)
        raise unknown_field(name, cells, fields, path)
    if len(numbers) > 1:
        raise DataError(
            f"{path}: {len(numbers)} columns are named {name}",
            hint=f"in {fields.setting}, give its number, counted from 0, and set has_header: true",
        )
    return numbers[0]


def _tsv_rows(path: Path, encoding: str | None) -> Iterator[_Row]:
    for number, line in enumerate(read_lines(path, encoding), start=1):
        yield number, None if line is None else line.split(b"\t")


def _csv_rows(path: Path, delimiter: bytes, encoding: str | None, *, is_strict: bool = True) -> Iterator[_Row]:
    """Yield rows without their quotes; not by the `csv` module, which ends rows at a lone 0x0D too.

    Args:
        is_strict: text between a closing quote and the next delimiter raises an error.
    """
    row: _QuotedRow | None = None  # a row that continues in the next line
    for number, line in enumerate(read_lines(path, encoding), start=1):
        if number == 1 and line is not None and _SEPARATOR_LINE.fullmatch(line):
            continue
        if line is None:
            row = None
            yield number, None
            continue
        if row is None:
            if b'"' not in line:
                yield number, line.split(delimiter)
                continue
            row = _QuotedRow(number)
        row.num_bytes += len(line)
        if row.num_bytes > MAX_LINE_BYTES:
            raise _UnclosedQuote(path, row)
        row.add(line, number, delimiter)
        if is_strict and row.text_after_quote:
            raise _text_after_quote(path, number, row, delimiter)
        if not row.open_field:
            yield row.first_line, row.fields
            row = None
    if row is not None:
        raise _UnclosedQuote(path, row)


@dataclass(slots=True)
class _QuotedRow:
    """A row with quotes, while its lines are read."""

    first_line: int
    fields: list[bytes] = field(default_factory=list)
    open_field: list[bytes] = field(default_factory=list)
    """The lines read so far of a field whose closing quote was not found yet."""
    quote_line: int = 0
    """The number of the line in which the last field in quotes begins."""
    text_after_quote: bytes = b""
    """The first text found between a closing quote and the end of its field; should be empty."""
    line_of_that_field: int = 0
    """The number of the line in which that field begins."""
    num_bytes: int = 0

    def add(self, line: bytes, number: int, delimiter: bytes) -> None:
        """Split a line into fields; the last field may continue in the next line."""
        position = 0
        while True:
            is_quoted = bool(self.open_field)
            if not is_quoted and line.startswith(b'"', position):
                is_quoted, position, self.quote_line = True, position + 1, number
            text = b""
            if is_quoted:
                quoted = _QUOTED.match(line, position)
                assert quoted is not None  # the pattern also matches empty text
                self.open_field.append(quoted.group().replace(b'""', b'"'))
                if quoted.end() == len(line):
                    return
                text, position = b"\n".join(self.open_field), quoted.end() + 1
                self.open_field = []
            end = line.find(delimiter, position)
            rest = line[position : end if end >= 0 else len(line)]
            if is_quoted and not self.text_after_quote:
                self.text_after_quote, self.line_of_that_field = rest, self.quote_line
            self.fields.append(text + rest)
            if end < 0:
                return
            position = end + 1


class _UnclosedQuote(DataError):
    def __init__(self, path: Path, row: _QuotedRow) -> None:
        super().__init__(
            f"{path}:{row.quote_line}: a quote opens a field here, and no quote closes it",
            hint="double the quotes that are part of a sentence, or save as TSV",
        )
        self.num_columns = len(row.fields) + 1


def _text_after_quote(path: Path, line: int, row: _QuotedRow, delimiter: bytes) -> DataError:
    found = row.text_after_quote.decode(errors="replace")[:_EXCERPT_CHARACTERS]
    place = "" if line == row.line_of_that_field else f" in line {line}"
    meant = OTHER_SEPARATORS.get(found[:1])
    hint = "double the quotes that are part of a sentence, or save as TSV"
    if meant is not None:
        hint = f"{meant} may be meant to separate the columns: save it with commas, semicolons or tabs; else {hint}"
    return DataError(
        f"{path}:{row.line_of_that_field}: a quote opens a field here, and the one that closes it{place} "
        f"is followed by {found!r}, where {_DELIMITERS[delimiter]} or the end of the line is expected",
        hint=hint,
    )


def _sniff_delimiter(path: Path, encoding: str | None) -> bytes:
    """The delimiter that splits the first rows into the same number of columns, two or more."""
    beginning = next(read_lines(path, encoding), b"") or b""
    named = _SEPARATOR_LINE.fullmatch(beginning)
    if named:
        return named[1]
    # Equal scores: the first wins. Sentences often contain commas, seldom semicolons, hardly ever tabs.
    return max(_DELIMITERS, key=lambda delimiter: _delimiter_score(path, delimiter, encoding))


def _delimiter_score(path: Path, delimiter: bytes, encoding: str | None) -> tuple[float, bool]:
    """Share of the first rows that have as many columns as row 1, and whether all quotes are closed."""
    counts: list[int] = []
    is_closed = True
    try:
        # Not strict: an error about a quote must come from reading with the right delimiter, later.
        rows = _csv_rows(path, delimiter, encoding, is_strict=False)
        for _, row in islice(rows, _NUM_SNIFFED_ROWS):
            if row is not None and row != [b""]:
                counts.append(len(row))
    except _UnclosedQuote as damage:
        is_closed = False
        counts = counts or [damage.num_columns]
    is_table = bool(counts) and counts[0] > 1
    return (counts.count(counts[0]) / len(counts) if is_table else 0.0), is_closed
