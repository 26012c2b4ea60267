"""Reads glossaries from files: text with tabs, CSV, and spreadsheets.

A row has a source term and its target term. Further columns say more about the entry: `case` (capital letters count) and
`form=...` (another form of the target term, once for each form). A blank row is skipped. If the first row names the columns, other
columns are left out.
"""

import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from pkgutil import resolve_name

from transformer_cli.data.sources.lines import HOW_TO_CONVERT, MAX_LINE_BYTES, UTF_16_MARKS, read_chunks
from transformer_cli.data.sources.tables import rows_of_any_table
from transformer_cli.data.unknown_files import encoding_of_table
from transformer_cli.decoding.glossary import Glossary, GlossaryEntry
from transformer_cli.process.errors import DataError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.languages import code_of_language, named_language

logger = logging.getLogger(__name__)

SHEET_AS_TSV = "transformer_cli.extensions.corpora.spreadsheets:sheet_as_tsv"
_CASE, _FORM = "case", "form="
_COLUMNS = (
    "on each line a source term, a tab (in CSV: a comma or semicolon), a target term; "
    "then perhaps, in further columns, case or form=TEXT"
)
_ROLES = (
    re.compile(r"(?:source|src)(?:[ _-](?:term|text|word|phrase))?", re.IGNORECASE),
    re.compile(r"(?:target|tgt|trg|translation)(?:[ _-](?:term|text|word|phrase))?", re.IGNORECASE),
)
_MAY_BE_NUMBERS = ("id", "no")  # codes of languages, too
_SHOWN_CHARACTERS = 60


def read_glossary(path: str | Path, encoding: str | None = None) -> Glossary:
    """The glossary of a file: text with tabs or CSV, perhaps compressed, or a spreadsheet (.xlsx), of which the first sheet is read.

    Args:
        encoding: of a text that is not UTF-8; None: it is found out.

    Raises:
        MissingInputError: there is no such file.
        DataError: a line has no source or target term or an unknown column, or is too long; or the encoding is not clear.
        UsageError: no encoding has this name; or the package that reads spreadsheets is missing.
    """
    path = Path(path)
    if path.suffix.lower() not in (".xlsx", ".xlsm") or not path.is_file():
        return _read_text(path, str(path), encoding)
    require_extra("corpora", ("openpyxl",), purpose="a spreadsheet (.xlsx)")
    with tempfile.TemporaryDirectory(prefix="tfm-glossary-") as folder:
        table = Path(folder) / "sheet.tsv"
        resolve_name(SHEET_AS_TSV)(path, table, None)
        return _read_text(table, str(path), None)


def _read_text(path: Path, name: str, given: str | None) -> Glossary:
    """The glossary of a text; `name` is that of the file that was given."""
    encoding = None
    if path.is_file():  # a pipe is read once, as UTF-8
        encoding, doubt = encoding_of_table(path, given)
        if doubt is not None:
            logger.warning("%s", doubt)
    with ExitStack() as opened:
        rows = list(_rows(_with_line_feeds(path, opened), name, encoding))
    if all(map(_languages_behind, [cells for _, cells in rows])):
        _require_one_direction(rows)
        rows = [(place, cells[:2]) for place, cells in rows]
    entries: list[GlossaryEntry] = []
    if rows and (columns := _named_columns(rows[0][1])) is not None:
        (place, names), *rows = rows
        _log_left_out(names, columns, rows, place)
        if not _ROLES[0].fullmatch(names[columns[0]]):  # the languages are compared with those of the translation
            entries.append(GlossaryEntry(names[columns[0]], names[columns[1]], place=place))
        rows = [(place, _entry_cells(names, cells, columns)) for place, cells in rows]
    entries += [_entry(cells, place) for place, cells in rows]
    if not entries:
        logger.warning("%s: no term is in this glossary", name)
    return Glossary(tuple(entries))


def _with_line_feeds(path: Path, opened: ExitStack) -> Path:
    """The file; a copy with line feeds, if its lines end with carriage returns alone, as those of old Macs."""
    if not path.is_file():
        return path
    text = b"".join(read_chunks(path))
    if b"\n" in text or b"\r" not in text or text.startswith(UTF_16_MARKS):
        return path
    copy = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tfm-glossary-"))) / "lines"
    copy.write_bytes(text.replace(b"\r", b"\n"))
    return copy


def _rows(path: Path, name: str, encoding: str | None) -> Iterator[tuple[str, list[str]]]:
    """The place and the cells of each row that is not blank."""
    for number, row in rows_of_any_table(path, encoding):
        place = f"{name}:{number}"
        if row is None:
            raise DataError(f"{place}: a line of more than {MAX_LINE_BYTES:,} bytes", hint=f"give {_COLUMNS}")
        line = b"\t".join(row)
        try:
            line.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{place}: byte {error.start + 1} of the line (0x{line[error.start]:02X}) is not {encoding or 'UTF-8'}",
                hint=HOW_TO_CONVERT,
            ) from error
        cells = [cell.decode().strip() for cell in row]
        if any(cells):
            yield place, cells


def _named_columns(cells: Sequence[str]) -> tuple[int, int] | None:
    """The columns of the source and the target, if a first row of more than two columns names them: by these words, or by two languages."""
    if len([cell for cell in cells if cell]) <= 2 or all(map(_is_flag, cells[2:])):
        return None
    source, target = ([n for n, cell in enumerate(cells) if role.fullmatch(cell)] for role in _ROLES)
    if len(source) == len(target) == 1:
        return source[0], target[0]
    named = [
        n for n, cell in enumerate(cells) if cell and cell.casefold() not in _MAY_BE_NUMBERS and named_language(cell)
    ]
    return (named[0], named[1]) if len(named) == 2 and len({named_language(cells[n]) for n in named}) == 2 else None


def _log_left_out(
    names: Sequence[str], columns: Sequence[int], rows: Sequence[tuple[str, list[str]]], place: str
) -> None:
    source, target = (on_one_line(names[column], _SHOWN_CHARACTERS) for column in columns)
    used = {n for _, cells in rows for n in range(len(cells)) if _flag(names, cells, n)}
    others = ", ".join(name for n, name in enumerate(names) if name and n not in {*columns, *used})
    left_out = f"; left out: {on_one_line(others, 200)}" if others else ""
    logger.info("%s: the terms are in the columns %s and %s%s", place, source, target, left_out)


def _entry_cells(names: Sequence[str], cells: Sequence[str], columns: Sequence[int]) -> list[str]:
    """The source term, the target term, and what else says something about the entry."""
    terms = [cells[column] if column < len(cells) else "" for column in columns]
    return terms + [flag for n in range(len(cells)) if n not in columns and (flag := _flag(names, cells, n))]


def _flag(names: Sequence[str], cells: Sequence[str], number: int) -> str:
    """What a cell says about its entry, as `case` or `form=TEXT`; in a column named form the text alone is enough. Else nothing."""
    cell = cells[number]
    if cell and not _is_flag(cell) and number < len(names) and names[number].casefold() in ("form", _FORM):
        cell = _FORM + cell
    return cell if _is_flag(cell) else ""


def _require_one_direction(rows: Sequence[tuple[str, list[str]]]) -> None:
    """Refuse rows with other languages than those of the first one."""
    first = _languages_behind(rows[0][1]) if rows else []
    for place, cells in rows:
        if (found := _languages_behind(cells)) != first:
            raise DataError(
                f"{place}: from {' into '.join(found)}, where the lines above are from {' into '.join(first)}",
                hint="keep the lines of one direction",
            )


def _languages_behind(cells: Sequence[str]) -> list[str]:
    """The codes of two languages behind the two terms, as DeepL exports a glossary; else nothing."""
    codes = [re.split("[-_]", cell)[0].lower() for cell in cells[2:]]
    return codes if len(codes) == 2 and all(map(code_of_language, codes)) else []


def _is_flag(cell: str) -> bool:
    return not cell or cell == _CASE or bool(cell.startswith(_FORM) and cell.removeprefix(_FORM).strip())


def _entry(cells: list[str], place: str) -> GlossaryEntry:
    source, *others = cells
    if not source or not others or not others[0]:
        missing = "source" if not source else "target"
        shown = on_one_line("\t".join(cells).strip(), _SHOWN_CHARACTERS)
        raise DataError(f"{place}: no {missing} term: {shown}", hint=f"give {_COLUMNS}")
    target, *flags = others
    forms = []
    for flag in filter(None, flags):
        if not _is_flag(flag):
            raise DataError(
                f"{place}: {on_one_line(flag, _SHOWN_CHARACTERS)!r} is not a column of a glossary",
                hint=f"give {_COLUMNS}; of a table with other columns, a first line must name two as source and target, or by "
                "their languages",
            )
        if flag != _CASE:
            forms.append(flag.removeprefix(_FORM).strip())
    return GlossaryEntry(source, target, tuple(forms), _CASE in flags, place)
