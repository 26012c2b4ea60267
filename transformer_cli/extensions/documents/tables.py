"""CSV and TSV: the cells of chosen columns are translated, in their place or into another column; the dialect, quotes and line ends of all others stay."""

import csv
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from transformer_cli.extensions.documents.character_encoding import decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.segments import (
    Change,
    LineNumbers,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    spliced,
)
from transformer_cli.extensions.documents.strings import string_of, tagged_segment
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.normalization import has_letter

logger = logging.getLogger(__name__)

_DELIMITERS = ",;\t|"
# A cell may hold line breaks and other signs that separate cells; a lone mark before a word encloses none.
_QUOTED_CELL = re.compile(rf'(?:^|(?<=[{_DELIMITERS}]))"(?>(?:[^"]++|"")*)"(?=[{_DELIMITERS}\r\n]|\Z)')
_NAMED_DELIMITER = re.compile(r'"?sep=([,;\t|])"?(?:\r\n|\r|\n)', re.IGNORECASE)
# Of a spreadsheet: =SUM(A1:A9), =B2*1.2, =A1&" x"
_FORMULA = re.compile(r"=\s*(?:[+-]\s*)?(?:[A-Z][A-Z0-9.]*\(|'?[^'\s=]{0,100}'?!|\$?[A-Z]{1,3}\$?\d)")
_LINE_END = re.compile("\\r\\n|\\r|\\n")
_SAMPLE = 100_000
_MOST_NAMES = 30
_MOST_WARNINGS = 5
TRUST_COLUMN = "green"
"""The name of a column that says how far the translations before it can be trusted."""
_MARK = re.compile(r"|memory|glossary|(?:not )?green \d\.\d{3}")


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


def _read_table(data: bytes, options: ReadingOptions, delimiter_of: Callable[[str], str]) -> SplicedDocument:
    content = decoded(data, given=options.encoding)
    text = content.text
    # Excel writes the delimiter on a line of its own: sep=;
    named = _NAMED_DELIMITER.match(text)
    delimiter = named[1] if named else delimiter_of(text)
    start = named.end() if named else 0
    numbered = _rows(text, delimiter, options.watch, start)
    numbers, rows = list(numbered), list(numbered.values())
    if not rows:
        return SplicedDocument(content, ())
    width = _width(rows, options.columns)
    names = [*(cell.value.strip() for cell in rows[0]), *[""] * (width - len(rows[0]))]
    ways = _ways(names, options.columns, has_trust=options.has_trust)
    if options.has_trust:
        ways = _with_marks(ways, rows, names)
    if options.has_trust and not options.is_repeated and all(way.trust is None for way in ways):
        logger.warning(
            "--mark: no column of marks is written, because the columns are translated in their place; "
            "messages name the texts that are not green; with --columns SOURCE=TARGET there is one"
        )
    if not options.is_repeated:
        _warn_of_longer_rows(numbered, delimiter, width)
    # Columns with names have a first row that is not translated.
    has_names = any(not way.has_number for way in ways)
    copied_text, copied = _with_copies(text, rows, ways, delimiter, has_names=has_names)
    content = replace(content, text=copied_text)
    slots = []
    table = rows if copied_text == text else list(_rows(copied_text, delimiter, options.watch, start).values())
    for index in range(has_names, len(rows)):
        for way in ways:
            if way.source >= len(rows[index]):
                continue
            source = rows[index][way.source]
            if not _is_translated(source) or (way.target != way.source and (index, way.target) not in copied):
                continue
            cell = table[index][way.target]
            place = f"row {numbers[index]}, column {way.source + 1}"
            segment = replace(tagged_segment(cell.value, place), is_label=False)
            options.watch.counted(segment)
            behind = table[index][way.trust : way.trust + 1] if way.trust is not None else []
            # A row with more cells than the first one may have something there.
            trust_at = behind[0].start if behind and behind[0].start == behind[0].end else None
            slots.append(Slot(cell.start, cell.end, segment, partial(_written, cell, delimiter), trust_at))
    return SplicedDocument(content, tuple(slots))


def _rows(text: str, delimiter: str, watch: ReadingWatch, start: int) -> dict[int, list[Cell]]:
    """The rows of a table that are no blank lines, by their numbers in a spreadsheet, where blank lines count."""
    rows = enumerate(rows_of_table(text, delimiter, watch, start=start), 1)
    return {number: row for number, row in rows if len(row) > 1 or row[0].value}


def _width(rows: Sequence[Sequence[Cell]], wanted: Sequence[str]) -> int:
    """How many columns a table has: the cells of its first row; those of its longest row, if a person counts further."""
    first, longest = len(rows[0]), max(map(len, rows))
    numbers = (int(one) for each in wanted for one in each.split("=", 1) if one.strip().isdecimal())
    return longest if any(first < number <= longest for number in numbers) else first


def _warn_of_longer_rows(rows: Mapping[int, Sequence[Cell]], delimiter: str, width: int) -> None:
    """Name the rows with more cells than the table has columns: one of their texts may be divided."""
    longer = [(number, row) for number, row in rows.items() if len(row) > width]
    sign = {"\t": "a tab", ",": "a comma", ";": "a semicolon"}.get(delimiter, delimiter)
    for number, row in longer[:_MOST_WARNINGS]:
        logger.warning(
            "row %d: it has %d cells, and the first row has %d: if a text of it has %s inside, put this text in quotation marks, and translate again",
            number,
            len(row),
            width,
            sign,
        )
    if len(longer) > _MOST_WARNINGS:
        logger.warning("%d more rows have more cells than the first row", len(longer) - _MOST_WARNINGS)


def _is_translated(cell: Cell) -> bool:
    return has_letter(cell.value) and not _FORMULA.match(cell.value)


class _Way(NamedTuple):
    """From which column a text is read, and into which its translation goes."""

    source: int
    target: int
    has_number: bool  # whether a person has named both by numbers
    new_name: str = ""  # of a column that the table does not have yet
    trust: int | None = None  # the column of its marks
    trust_name: str = TRUST_COLUMN


def _with_copies(
    text: str,
    rows: Sequence[Sequence[Cell]],
    ways: Sequence[_Way],
    delimiter: str,
    *,
    has_names: bool,
) -> tuple[str, set[tuple[int, int]]]:
    """The table with the texts of source columns also in the target columns, where their translations will stand.

    New columns, also the empty ones for marks, stand behind each row. A cell of a target column that has a text already
    stays, so a table that is translated in part can be translated further.

    Returns:
        The text, and row and column of each cell that has been filled.
    """
    changes, filled = list[Change](), set[tuple[int, int]]()
    others = [way for way in ways if way.target != way.source]
    for index, row in enumerate(rows):
        inside, behind = dict[int, str](), dict[int, str]()  # the row, which may be shorter than the first one
        for way in others:
            source = row[way.source] if way.source < len(row) else None
            is_text = source is not None and not _FORMULA.match(source.value)
            copy = text[source.start : source.end] if source is not None and is_text else ""
            is_first = has_names and index == 0
            if way.trust is not None and way.trust >= len(row):
                behind[way.trust] = _quoted(way.trust_name, delimiter) * is_first
            if is_first:
                copy = _quoted(way.new_name, delimiter)
            if way.target < len(row):
                place = row[way.target]
                if not copy or is_first or place.value.strip():
                    continue
                inside[way.target] = copy
                if way.trust is not None and way.trust < min(len(row), len(rows[0])):  # of an earlier translation
                    inside[way.trust] = ""
            elif copy or way.new_name:
                behind[way.target] = copy
            filled.add((index, way.target))
        if behind:
            cells = (delimiter + behind.get(column, "") for column in range(len(row), max(behind) + 1))
            last = len(row) - 1
            inside[last] = "".join([inside.get(last, text[row[last].start : row[last].end]), *cells])
        changes += (Change(row[column].start, row[column].end, cell) for column, cell in inside.items())
    return spliced(text, changes), filled


def rows_of_table(text: str, delimiter: str, watch: ReadingWatch, *, start: int = 0) -> Iterator[list[Cell]]:
    """The rows of a table; a quotation mark inside a quoted cell is doubled.

    Between tabs, marks that do not enclose a whole cell are text: few programs that write tabs put cells in marks.

    Raises:
        DataError: a quoted cell never ends, in a table without tabs.
    """
    place, row = start, list[Cell]()
    width: int | None = None  # of the first row
    while place < len(text):
        watch.look()
        cell = _cell_at(text, place, delimiter, len(row), width)
        row.append(cell)
        place = cell.end
        if text.startswith(delimiter, place):
            place += 1
            if place == len(text):
                row.append(Cell(place, place, "", is_quoted=False))
            continue
        yield row
        width = width or len(row)
        row = []
        place += 2 if text.startswith("\r\n", place) else 1
    if row:
        yield row


def _cell_at(text: str, start: int, delimiter: str, num_before: int, width: int | None) -> Cell:
    """The cell that begins here.

    Args:
        num_before: cells that its row has before it.
        width: cells of the first row; None: this is the first.
    """
    place = _closing_mark(text, start) if text.startswith('"', start) else None
    if place is None or (delimiter == "\t" and not _encloses(text, start, place, num_before, width)):
        end = _end_of_cell(text, start, delimiter)
        return Cell(start, end, text[start:end], is_quoted=False)
    if place < 0:
        line = LineNumbers(text).number_at(start)
        raise DataError(
            f"line {line}: a quotation mark opens a cell and is never closed",
            hint="double the marks that are part of a text, and put the whole cell in marks; or separate the cells with tabs",
        )
    # What stands behind the closing mark belongs to the cell, as Python's csv reads it.
    end = _end_of_cell(text, place + 1, delimiter)
    value = text[start + 1 : place].replace('""', '"') + text[place + 1 : end]
    return Cell(start, end, value, is_quoted=True)


def _end_of_cell(text: str, start: int, delimiter: str) -> int:
    end = start
    while end < len(text) and text[end] not in (delimiter, "\r", "\n"):
        end += 1
    return end


def _closing_mark(text: str, start: int) -> int:
    """The place of the mark that closes the one at `start`; a doubled mark is a part of the cell. -1: there is none."""
    place = text.find('"', start + 1)
    while text.startswith('""', place):
        place = text.find('"', place + 2)
    return place


def _encloses(text: str, start: int, closing: int, num_before: int, width: int | None) -> bool:
    """Whether two marks in a table with tabs enclose a whole cell; see `_cell_at`.

    Two lone marks of different rows do not: each line from the one to the other is a whole row.
    """
    if closing < 0 or text[closing + 1 : closing + 2] not in ("", "\t", "\r", "\n"):
        return False
    end = _LINE_END.search(text, closing)
    lines = _LINE_END.split(text[start : end.start() if end else None])
    widths = [line.count("\t") + 1 for line in lines]
    widths[0] += num_before
    return len(lines) == 1 or width in (None, 1) or any(one != width for one in widths)


def _delimiter(text: str) -> str:
    """The sign that separates the cells of the first row; of several, the one that stands there most often.

    A title above a table has none; there it is the sign that stands equally often in all other rows.
    """
    lines = _LINE_END.split(_QUOTED_CELL.sub("x", text[:_SAMPLE]))
    try:
        return csv.Sniffer().sniff(lines[0], _DELIMITERS).delimiter
    except csv.Error:
        whole = [line for line in lines[1 : len(lines) - (len(text) > _SAMPLE)] if line]
        numbers = {sign: {line.count(sign) for line in whole} for sign in _DELIMITERS}
        return next((sign for sign, found in numbers.items() if len(found) == 1 and found != {0}), ",")


def _ways(names: Sequence[str], wanted: Sequence[str], *, has_trust: bool) -> list[_Way]:
    """What `--columns` says: NAME is translated in its place, SOURCE=TARGET into another column, which may be a new one.

    Raises:
        UsageError: as of `_chosen`; or the columns of SOURCE=TARGET are equal, or of several with one name.
    """
    found, new_names = list[_Way](), list[str]()
    in_place = [one for one in wanted if one in names or "=" not in one]
    if in_place or not wanted:
        are_numbers = all(one.isdecimal() for one in in_place)
        found += [_Way(number, number, are_numbers) for number in _chosen(names, in_place)]
    for one in wanted:
        if one in in_place:
            continue
        source, target = (part.strip() for part in one.split("=", 1))
        sources, targets = _chosen(names, [source]), [len(names) + len(new_names) * (1 + has_trust)]
        is_new = target not in names and not target.isdecimal()
        if is_new:
            new_names.append(target)
        else:
            targets = _chosen(names, [target])
        if not target or len(sources) > 1 or len(targets) > 1 or sources == targets or new_names.count(target) > 1:
            raise UsageError(
                f"--columns {on_one_line(one, 60)}: one column and another one are expected, as in English=Italian",
                hint="a number, counted from 1, also names a column",
            )
        found.append(_Way(sources[0], targets[0], source.isdecimal() and target.isdecimal(), target if is_new else ""))
    if len({way.target for way in found}) < len(found):
        raise UsageError("--columns: two translations would go into one column")
    return found


def _with_marks(ways: Sequence[_Way], rows: Sequence[Sequence[Cell]], names: Sequence[str]) -> list[_Way]:
    """The ways with their columns of marks: directly behind a new column, else where the table has them, or at the end."""
    width = max(len(names), *(way.target + 2 for way in ways if way.new_name), 0)
    num_old = sum(way.target != way.source and not way.new_name for way in ways)
    found = list[_Way]()
    for way in ways:
        if way.new_name:
            way = way._replace(trust=way.target + 1)
        elif way.target != way.source:
            name = TRUST_COLUMN if num_old == 1 else f"{TRUST_COLUMN} {names[way.target]}"
            # A column of this name may have something else.
            mark_columns = (
                at
                for at, each in enumerate(names)
                if each == name and all(_MARK.fullmatch(row[at].value) for row in rows[1:] if at < len(row))
            )
            at = next(mark_columns, width)
            way = way._replace(trust=at, trust_name=name)
            width += at == width
        found.append(way)
    return found


def _chosen(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The indices of the wanted columns, each once; of a name that several have, all of them.

    Raises:
        UsageError: no column is wanted, or there is none of this name or number.
    """
    shown = ", ".join(on_one_line(name, 40) or "(no name)" for name in names[:_MOST_NAMES])
    has_all = f"the table has {len(names)} column{'s' * (len(names) != 1)}: {shown}"
    if not wanted:
        raise UsageError(
            "which columns are to be translated?",
            hint=f"{has_all}; name one or more: --columns NAME, --columns NUMBER, or --columns SOURCE=TARGET for a column of translations",
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
    if delimiter == "\t" and not cell.is_quoted and cell.value.startswith('"'):
        needs_marks = text.startswith('"') and text.endswith('"')  # they could be read as marks around the cell
    else:
        needs_marks = cell.is_quoted or text.startswith('"') or ('"' in text and '"' not in cell.value)
    return _quoted(text, delimiter, is_quoted=needs_marks)


def _quoted(text: str, delimiter: str, *, is_quoted: bool = False) -> str:
    """A text as it stands in a table: in quotation marks if it must be."""
    if is_quoted or any(sign in text for sign in ("\r", "\n", delimiter)):
        return '"' + text.replace('"', '""') + '"'
    return text
