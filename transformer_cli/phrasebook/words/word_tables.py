"""How the tables of the lexicon are read: tab-separated lines, with comments at the head."""

from __future__ import annotations

from importlib.resources import files

PACKAGE = "transformer_cli.phrasebook.words"


def read_table(name: str, *, columns: int) -> list[tuple[str, ...]]:
    """The rows of a table that lies beside this module.

    Raises:
        ValueError: a row has another number of columns.
    """
    rows = []
    text = files(PACKAGE).joinpath(name).read_text(encoding="utf-8")
    for line_number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        row = tuple(line.split("\t"))
        if len(row) != columns:
            raise ValueError(f"{name}, line {line_number}: {len(row)} columns, not {columns}")
        rows.append(row)
    return rows
