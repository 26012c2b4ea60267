"""Reads a glossary from a file: on each line a source term, a tab and its target term.

Further columns say more about the entry: `case` (capital letters count) and `form=...` (another form of the target term,
once for each form). A blank line is skipped.
"""

from pathlib import Path

from transformer_cli.data.sources.lines import HOW_TO_CONVERT, MAX_LINE_BYTES, read_lines
from transformer_cli.decoding.glossary.entries import Glossary, GlossaryEntry
from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import on_one_line

_CASE, _FORM = "case", "form="
_COLUMNS = (
    "on each line a source term, a tab, a target term; then perhaps a tab and case or form=TEXT"
)
_SHOWN_CHARACTERS = 60


def read_glossary(path: str | Path) -> Glossary:
    """The glossary of a file in UTF-8, perhaps compressed.

    Raises:
        MissingInputError: there is no such file.
        DataError: a line is not UTF-8, has no source or target term or an unknown column, or is too long.
    """
    path = Path(path)
    entries = []
    for number, raw in enumerate(read_lines(path), start=1):
        place = f"{path}:{number}"
        if raw is None:
            raise DataError(
                f"{place}: a line of more than {MAX_LINE_BYTES:,} bytes", hint=f"give {_COLUMNS}"
            )
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            raise DataError(
                f"{place}: byte {error.start + 1} of the line (0x{byte:02X}) is not UTF-8",
                hint=HOW_TO_CONVERT,
            ) from error
        if line.strip():
            entries.append(_entry(line, place))
    return Glossary(tuple(entries))


def _entry(line: str, place: str) -> GlossaryEntry:
    source, *others = (column.strip() for column in line.split("\t"))
    if not source or not others or not others[0]:
        missing = "source" if not source else "target"
        raise DataError(
            f"{place}: no {missing} term: {on_one_line(line, _SHOWN_CHARACTERS)}",
            hint=f"give {_COLUMNS}",
        )
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
