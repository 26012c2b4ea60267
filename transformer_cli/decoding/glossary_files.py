"""Reads glossaries from files: text with tabs, CSV, and spreadsheets.

A row has a source term and its target term. Further columns say more about the entry: `case` (capital letters count) and
`form=...` (another form of the target term, once for each form). A blank row is skipped.
"""

import logging
import tempfile
from pathlib import Path
from pkgutil import resolve_name

from transformer_cli.data.sources.lines import HOW_TO_CONVERT, MAX_LINE_BYTES
from transformer_cli.data.sources.tables import rows_of_any_table
from transformer_cli.data.unknown_files import encoding_of_table
from transformer_cli.decoding.glossary import Glossary, GlossaryEntry
from transformer_cli.process.errors import DataError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import on_one_line

logger = logging.getLogger(__name__)

SHEET_AS_TSV = "transformer_cli.extensions.corpora.spreadsheets:sheet_as_tsv"
_CASE, _FORM = "case", "form="
_COLUMNS = (
    "on each line a source term, a tab (in CSV: a comma or semicolon), a target term; "
    "then perhaps, in further columns, case or form=TEXT"
)
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
        return _of_text(path, str(path), encoding)
    require_extra("corpora", ("openpyxl",), purpose="a spreadsheet (.xlsx)")
    with tempfile.TemporaryDirectory(prefix="tfm-glossary-") as folder:
        table = Path(folder) / "sheet.tsv"
        resolve_name(SHEET_AS_TSV)(path, table, None)
        return _of_text(table, str(path), None)


def _of_text(path: Path, name: str, given: str | None) -> Glossary:
    """The glossary of a text; `name` is that of the file that was given."""
    encoding = None
    if path.is_file():  # a pipe is read once, as UTF-8
        encoding, doubt = encoding_of_table(path, given)
        if doubt is not None:
            logger.warning("%s", doubt)
    entries = []
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
            entries.append(_entry(cells, place))
    if not entries:
        logger.warning("%s: no term is in this glossary", name)
    return Glossary(tuple(entries))


def _entry(cells: list[str], place: str) -> GlossaryEntry:
    source, *others = cells
    if not source or not others or not others[0]:
        missing = "source" if not source else "target"
        shown = on_one_line("\t".join(cells).strip(), _SHOWN_CHARACTERS)
        raise DataError(f"{place}: no {missing} term: {shown}", hint=f"give {_COLUMNS}")
    target, *flags = others
    forms = []
    for flag in filter(None, flags):
        form = flag.removeprefix(_FORM).strip() if flag.startswith(_FORM) else ""
        if form:
            forms.append(form)
        elif flag != _CASE:
            raise DataError(
                f"{place}: {on_one_line(flag, _SHOWN_CHARACTERS)!r} is not a column of a glossary",
                hint=f"give {_COLUMNS}",
            )
    return GlossaryEntry(source, target, tuple(forms), _CASE in flags, place)
