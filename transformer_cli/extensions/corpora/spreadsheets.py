"""Spreadsheets in XLSX: a sheet becomes a TSV file, whose columns are then found as those of any table."""

import tempfile
import zipfile
from collections.abc import Iterable
from datetime import datetime, time
from pathlib import Path
from typing import Any, TextIO

from transformer_cli.extensions.corpora.pairs import one_line
from transformer_cli.process.errors import DataError, TfmError
from transformer_cli.storage import REAL, errors_explained

MAX_BYTES = 4 << 30
"""A workbook that unpacks to more than this is refused."""
_MAX_RATIO = 100
_ERRORS = frozenset({"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"})


def sheet_as_tsv(path: Path, output: Path, sheet: str | None) -> None:
    """Write the cells of a sheet as TSV; empty rows at its end are left out, and rows keep their numbers.

    Args:
        sheet: its name; None: the first sheet.

    Raises:
        DataError: the file is no XLSX, there is no such sheet, or it unpacks beyond all measure.
    """
    import openpyxl

    try:
        _refuse_bombs(path)
        with path.open("rb") as packed:  # openpyxl leaves a damaged file open
            workbook = openpyxl.load_workbook(packed, read_only=True, data_only=True, keep_links=False)
            try:
                found = _sheet(workbook, sheet, path)
                # Some programs write a wrong size of the sheet, beyond which openpyxl would read nothing.
                found.reset_dimensions()
                rows = found.iter_rows(values_only=True)
                with (
                    errors_explained(output, fs=REAL, only_full_disk=True),
                    output.open("w", encoding="utf-8", errors="replace", newline="\n") as file,
                ):
                    _write(rows, file)
            finally:
                workbook.close()
    except TfmError:
        raise
    except Exception as error:  # openpyxl checks little: a damaged workbook raises errors of many kinds
        raise DataError(
            f"{path}: cannot be read as an XLSX workbook: {error}",
            hint="save it again as Excel Workbook (.xlsx), or as CSV (UTF-8)",
        ) from error


def _write(rows: Iterable[Iterable[Any]], file: TextIO) -> None:
    """Write the rows, all with as many columns as the one that has the most."""
    num_tabs, empty = 0, 0
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", newline="\n") as unpadded:
        for row in rows:
            line = "\t".join(map(_text_of, row)).rstrip("\t")
            if not line:
                empty += 1
                continue
            num_tabs = max(num_tabs, line.count("\t"))
            unpadded.write("\n" * empty + line + "\n")
            empty = 0
        unpadded.seek(0)
        for line in unpadded:
            missing = num_tabs - line.count("\t") if line != "\n" else 0
            file.write(line.rstrip("\n") + "\t" * missing + "\n")


def _text_of(cell: Any) -> str:
    """The text of a cell; empty for the error of a formula, such as #N/A."""
    if cell is None or cell in _ERRORS:
        return ""
    is_day = isinstance(cell, datetime) and cell.time() == time()
    return one_line(str(cell.date() if is_day else cell))


def _sheet(workbook: Any, name: str | None, path: Path) -> Any:
    names = [one.title for one in workbook.worksheets]
    if name is None and names:
        return workbook.worksheets[0]
    if name not in names:
        raise DataError(
            f"{path}: no sheet {name!r}, found {', '.join(map(repr, names)) or 'none'}",
            hint="give one of them with --sheet",
        )
    return workbook[name]


def _refuse_bombs(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    total = sum(part.file_size for part in parts)
    if total > MAX_BYTES or total > _MAX_RATIO * max(1 << 20, path.stat().st_size):
        raise DataError(
            f"{path}: unpacks from {path.stat().st_size:,} to {total:,} bytes, which no ordinary workbook does",
            hint="save the sheet as CSV (UTF-8), and import that",
        )
