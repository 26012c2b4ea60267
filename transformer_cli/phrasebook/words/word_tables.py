"""Reads the tables of words: tab-separated lines, after comments that explain the columns."""

from __future__ import annotations

from importlib.resources import files

PACKAGE = "transformer_cli.phrasebook.words"


def read_table(name: str, *, columns: int, package: str = PACKAGE) -> list[tuple[str, ...]]:
    """The rows of a table.

    Args:
        package: the package in whose folder the table stands.

    Raises:
        ValueError: a row has more or fewer columns.
    """
    rows = []
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    for line_number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        row = tuple(line.split("\t"))
        if len(row) != columns:
            raise ValueError(
                f"{name}, line {line_number}: expected {columns} columns, found {len(row)}"
            )
        rows.append(row)
    return rows
